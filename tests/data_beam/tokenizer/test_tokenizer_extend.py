import json

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from data_beam import export_tokenizer, extend_tokenizer
from maxlm.config import ConfigError
from maxlm.data.sentencepiece_model import Kind, Piece, exact_unigram, parse, with_pieces
from maxlm.data.tokenizer import SentencePieceTokenizer, Tokenizer
from maxlm.data.tokenizer_export import to_huggingface
from tests.data_beam.runs import sentencepiece_model
from tests.token_corpora import tiny_tokenizer

TERMS = ["急性心肌梗死", "word7 文字", "[MED]", "梗死", "myocardial infarction"]
OLD_TEXTS = ["word1 文字一", "  two  spaces\n\n\ttab", "心肌 梗", "[MED", "🙂\u2581", "<s>"]


def unigram() -> bytes:
    return sentencepiece_model(
        [f"word{i} 文字{chr(0x4E00 + i)} 好的 人们" for i in range(40)] * 5, model_type="unigram",
        vocab_size=318, byte_fallback=True, user_defined_symbols=["\n", "[X]"],
        character_coverage=0.99)


MEDICAL = ["急性心肌梗死", "急性心肌梗死后", "患者", "atrial flutter", "flutter"]


def medical(kind: str, folder) -> None:
    """Writes a tokenizer that has learned the words of MEDICAL as pieces."""
    texts = [f"{word}{chr(0x4E00 + i)}" for word in MEDICAL for i in range(40)] + MEDICAL * 40
    special = {"bos_token": "<s>", "eos_token": "</s>"}
    if kind == "byte level json":
        built = tokenizers.Tokenizer(models.BPE())
        built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        built.decoder = decoders.ByteLevel()
        built.train_from_iterator(texts, trainers.BpeTrainer(
            vocab_size=330, special_tokens=list(special.values()), show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
        files = {"tokenizer.json": built.to_str().encode(),
                 "tokenizer_config.json": json.dumps(special).encode()}
    else:
        whole = sentencepiece_model(
            texts, model_type=kind.split()[0], vocab_size=400, hard_vocab_limit=False,
            byte_fallback=True, split_by_whitespace=False,
            user_defined_symbols=["[X]"] if kind == "unigram with symbols" else [])
        if kind.startswith("unigram") and kind != "unigram with symbols":
            whole = exact_unigram(whole)
        tokenizer = SentencePieceTokenizer(whole)
        files = (to_huggingface(tokenizer) if kind.endswith("json") else tokenizer).files
    for name, content in files.items():
        (folder / name).write_bytes(content)


def extended(folder, output, *terms: str) -> dict:
    (folder / "add.txt").write_text("\n".join(terms), encoding="utf-8")
    assert extend_tokenizer.main([f"--tokenizer={folder}", f"--add={folder / 'add.txt'}",
                                  f"--output={output}"]) == 0
    return json.loads((output / "report.json").read_text(encoding="utf-8"))


def byte_level() -> bytes:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {"<|end|>": 0} | {character: i for i, character in enumerate(alphabet, 1)}
    model = tokenizers.Tokenizer(models.BPE(vocabulary, []))
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = decoders.ByteLevel()
    model.add_special_tokens(["<|end|>"])
    return model.to_str().encode()


MODELS = {
    "bpe": ("tokenizer.model", tiny_tokenizer),
    "unigram": ("tokenizer.model", lambda: exact_unigram(unigram())),
    "unigram with symbols": ("tokenizer.model", unigram),
    "byte level": ("tokenizer.json", byte_level),
}


@pytest.fixture(scope="module", params=MODELS)
def folder(request, tmp_path_factory):
    """A tokenizer, the terms, and TOK2."""
    folder = tmp_path_factory.mktemp("extend")
    name, make = MODELS[request.param]
    (folder / name).write_bytes(make())
    if name == "tokenizer.json":
        (folder / "tokenizer_config.json").write_text(
            json.dumps({"bos_token": "<|end|>", "eos_token": "<|end|>"}))
    (folder / "terms.txt").write_text("\n".join([*TERMS, "", "梗死"]) + "\n", encoding="utf-8")
    assert extend_tokenizer.main([f"--tokenizer={folder / name}", f"--add={folder / 'terms.txt'}",
                                  f"--output={folder / 'TOK2'}"]) == 0
    return folder


def test_new_pieces_come_last_and_old_ids_stay(folder):
    old, new = Tokenizer.load(folder), Tokenizer.load(folder / "TOK2")
    assert new.vocab_size == old.vocab_size + len(TERMS)
    assert new.pieces(range(old.vocab_size)) == old.pieces(range(old.vocab_size))
    for name in ("pad_id", "bos_id", "eos_id", "unk_id"):
        assert getattr(new, name) == getattr(old, name)
    for text in OLD_TEXTS:
        assert new.encode(text) == old.encode(text)


@pytest.mark.parametrize("before, after", [("", ""), ("好的", "人们"), ("x ", " y"), ("\n", "\n")])
def test_new_pieces_are_taken_whole(folder, before, after):
    old, new = Tokenizer.load(folder), Tokenizer.load(folder / "TOK2")
    for number, term in enumerate(TERMS):
        ids = new.encode(before + term + after)
        assert ids.count(old.vocab_size + number) == 1
        assert new.decode(ids) == before + term + after
        assert new.piece_bytes()[ids].sum() == len((before + term + after).encode())
    # The longer of two pieces that begin at different places, and the shorter by itself.
    assert new.encode("急性心肌梗死梗死") == [old.vocab_size, old.vocab_size + 3]


def test_the_report(folder, capsys):
    old = Tokenizer.load(folder)
    report = json.loads((folder / "TOK2" / "report.json").read_text())
    assert report["extended_from"] == old.sha256
    assert report["sha256"] == Tokenizer.load(folder / "TOK2").sha256
    assert [entry["piece"] for entry in report["added"]] == TERMS
    for number, entry in enumerate(report["added"]):
        assert entry["id"] == old.vocab_size + number
        assert entry["before"] == old.pieces(old.encode(entry["piece"])) != []
    assert report["existed"] == [] and report["left_out"] == {"empty": 1, "repeated": 1}


def test_again_and_further(folder, tmp_path, capsys):
    flags = [f"--tokenizer={folder}", f"--add={folder / 'terms.txt'}",
             f"--output={folder / 'TOK2'}"]
    before = {path.name: path.read_bytes() for path in (folder / "TOK2").iterdir()}
    assert extend_tokenizer.main(flags) == 0
    assert {path.name: path.read_bytes() for path in (folder / "TOK2").iterdir()} == before
    # From the longer one on: what is there is told apart from what is new.
    (tmp_path / "more.txt").write_text("梗死\n新词\n")
    flags = [f"--tokenizer={folder / 'TOK2'}", f"--add={tmp_path / 'more.txt'}"]
    assert extend_tokenizer.main([*flags, f"--output={tmp_path / 'TOK3'}"]) == 0
    assert "1 pieces added, 1 were pieces already" in capsys.readouterr().out
    report = json.loads((tmp_path / "TOK3" / "report.json").read_text())
    assert report["existed"] == ["梗死"] and [e["piece"] for e in report["added"]] == ["新词"]
    with pytest.raises(ConfigError, match="is of another tokenizer"):
        extend_tokenizer.main([*flags, f"--output={folder / 'TOK2'}"])
    (tmp_path / "more.txt").write_text("梗死\n")
    with pytest.raises(ConfigError, match="all of its pieces are in the tokenizer already"):
        extend_tokenizer.main([*flags, f"--output={tmp_path / 'TOK4'}"])
    (tmp_path / "more.txt").write_text("\n")
    with pytest.raises(ConfigError, match="the file has no pieces"):
        extend_tokenizer.main([*flags, f"--output={tmp_path / 'TOK4'}"])
    assert not (tmp_path / "TOK4").exists()


def test_the_longer_model_is_exported_with_its_ids(folder, tmp_path):
    if (folder / "tokenizer.json").exists():
        return
    export_tokenizer.main([f"--tokenizer={folder / 'TOK2'}", f"--output={tmp_path}"])
    new, exported = Tokenizer.load(folder / "TOK2"), Tokenizer.load(tmp_path)
    for text in [*OLD_TEXTS, *(f"好的{term}人们" for term in TERMS)]:
        assert exported.encode(text) == new.encode(text)


def test_a_model_of_words_is_refused(tmp_path):
    (tmp_path / "tokenizer.model").write_bytes(sentencepiece_model(
        ["to be or not"] * 9, vocab_size=20, hard_vocab_limit=False, model_type="word"))
    assert "of kind 'word' cannot be extended" in refused(tmp_path, "急性")


@pytest.fixture(params=["bpe", "unigram", "unigram with symbols", "bpe json", "unigram json",
                        "byte level json"])
def learned(request, tmp_path):
    medical(request.param, tmp_path)
    return tmp_path, request.param


def forms(folder) -> list[Tokenizer]:
    """The tokenizer, and its tokenizer.json where it is a SentencePiece model."""
    tokenizer = Tokenizer.load(folder)
    return [tokenizer, to_huggingface(tokenizer)] if isinstance(
        tokenizer, SentencePieceTokenizer) else [tokenizer]


def test_a_requested_piece_that_holds_a_new_one_stays_whole(learned, capsys):
    folder, kind = learned
    old = Tokenizer.load(folder)
    terms = ["性心", "急性心肌梗死", "患者急性心肌", "患者"]
    (before,), (patient,) = old.encode("急性心肌梗死"), old.encode("患者")
    report = extended(folder, folder / "TOK2", *terms)
    # A byte-level piece is not spelled as its text, so that it cannot be raised: a new id.
    byte_level = kind == "byte level json"
    renewed = [terms[1]] if byte_level else []
    breaks = kind != "unigram with symbols"  # whose symbols, at -0.1, win over no longer piece here
    assert [entry["piece"] for entry in report["added"]] == ["性心", *renewed, "患者急性心肌"]
    assert report["existed"] == [term for term in (terms[1], terms[3]) if term not in renewed]
    assert report["raised"] == ([terms[1]] if breaks and not byte_level else [])
    if byte_level:
        assert report["added"][1]["before"] == old.pieces([before])
        before = old.vocab_size + 1
    assert len(old.encode("急性心肌梗死后")) == 1
    assert ("急性心肌梗死后" in report["cut"]) == breaks and terms[1] not in report["cut"]
    assert (f"{len(report['cut'])} old pieces are split now" in capsys.readouterr().out) == breaks
    for new in forms(folder / "TOK2"):
        assert new.pieces(range(old.vocab_size)) == old.pieces(range(old.vocab_size))
        assert [new.encode(term) for term in terms] == [
            [old.vocab_size], [before], [report["added"][-1]["id"]], [patient]]
        ids = new.encode("一急性心肌梗死，急性心肌梗死")
        assert ids.count(before) == 2 and new.decode(ids) == "一急性心肌梗死，急性心肌梗死"
        for text in ("患者急性", "心肌梗死后", "atrial flutter, 患者\n", "🙂"):
            assert new.encode(text) == old.encode(text)


def test_a_piece_with_a_space_stays_whole(learned):
    folder, kind = learned
    if kind == "byte level json":  # which cuts at spaces
        return
    old = Tokenizer.load(folder)
    report = extended(folder, folder / "TOK2", "atrial flutter", "ial flu")
    assert report["existed"] == ["atrial flutter"]
    for new in forms(folder / "TOK2"):
        for text in ("atrial flutter", "患者 atrial flutter"):
            assert new.encode(text) == old.encode(text) and new.decode(new.encode(text)) == text
        assert new.encode("ial flu") == [old.vocab_size]


def test_old_pieces_that_nobody_asked_for_are_counted(learned):
    folder, kind = learned
    old = Tokenizer.load(folder)
    report = extended(folder, folder / "TOK2", "性心肌梗")
    new = Tokenizer.load(folder / "TOK2")
    cut = {"急性心肌梗死", "急性心肌梗死后"}
    assert cut & set(report["cut"]) == (set() if kind == "unigram with symbols" else cut)
    texts = {old.decode([number]) for number in range(old.vocab_size)}
    assert set(report["cut"]) == {text for text in texts - {"性心肌梗"} if len(text) > 1
                                  and len(old.encode(text)) == 1 < len(new.encode(text))}
    assert report["existed"] == report["raised"] == []
    # They are whole again for who asks for them, from the longer tokenizer on.
    report = extended(folder / "TOK2", folder / "TOK3", "急性心肌梗死", "新词")
    for last in forms(folder / "TOK3"):
        assert len(last.encode("急性心肌梗死")) == len(last.encode("新词")) == 1
        assert last.encode("性心肌梗") == [old.vocab_size]


def test_an_old_piece_that_was_never_taken_gets_no_second_id(tmp_path, capsys):
    medical("bpe", tmp_path)
    model = (tmp_path / "tokenizer.model").read_bytes()
    (tmp_path / "tokenizer.model").write_bytes(with_pieces(
        model, [Piece("性心", 0.0, Kind.USER_DEFINED)]))
    old = Tokenizer.load(tmp_path)
    assert len(old.encode("急性心肌梗死")) > 1
    report = extended(tmp_path, tmp_path / "TOK2", "急性心肌梗死")
    assert report["added"] == [] and report["raised"] == ["急性心肌梗死"]
    for new in forms(tmp_path / "TOK2"):
        assert new.vocab_size == old.vocab_size
        assert new.pieces(new.encode("急性心肌梗死")) == ["急性心肌梗死"]
    assert "1 of the old ones now win over the pieces they contain: 急性心肌梗死" in \
        capsys.readouterr().out


def refused(folder, *terms: str) -> str:
    (folder / "add.txt").write_text("\n".join(terms), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        extend_tokenizer.main([f"--tokenizer={folder}", f"--add={folder / 'add.txt'}",
                               f"--output={folder / 'TOK2'}"])
    assert not (folder / "TOK2").exists()
    return str(caught.value)


def test_what_cannot_be_one_piece_ends_the_command(tmp_path):
    medical("bpe json", tmp_path)
    built = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    built.add_tokens([tokenizers.AddedToken("肌梗", normalized=False)])  # matched before all others
    built.save(str(tmp_path / "tokenizer.json"))
    message = refused(tmp_path, "急性心肌梗死", "新词")
    assert message.startswith("--add: '急性心肌梗死' would not be one piece, but ")
    assert "| 肌梗 |" in message and "leave it out" in message
    assert "'心肌梗死后' would not be one piece" in refused(tmp_path, "新词", "心肌梗死后")


def test_names_of_other_ids_are_refused(tmp_path):
    medical("byte level json", tmp_path)
    assert refused(tmp_path, "é").startswith("--add: 'é' is how the tokenizer spells an id")
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "tokenizer.model").write_bytes(sentencepiece_model(
        MEDICAL * 9, vocab_size=60, model_type="bpe", hard_vocab_limit=False,
        control_symbols=["<sep>"]))
    assert refused(tmp_path, "<sep>").startswith("--add: '<sep>' is how the tokenizer spells")


def test_a_changed_piece_is_the_only_change():
    model = tiny_tokenizer()
    pieces = parse(model).pieces
    changed = parse(with_pieces(model, [], {300: Piece("新", -1.5, Kind.USER_DEFINED)})).pieces
    assert changed[300] == Piece("新", -1.5, Kind.USER_DEFINED)
    assert (*changed[:300], *changed[301:]) == (*pieces[:300], *pieces[301:])
    same = with_pieces(model, [], {300: pieces[300]})
    assert parse(same) == parse(model)
    assert SentencePieceTokenizer(same).encode("word7 文字一") == \
        SentencePieceTokenizer(model).encode("word7 文字一")
