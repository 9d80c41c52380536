import io
import json

import pytest
import sentencepiece
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from data_beam import export_tokenizer, extend_tokenizer
from maxlm.config import ConfigError
from maxlm.data.sentencepiece_model import exact_unigram
from maxlm.data.tokenizer import Tokenizer
from tests.token_corpora import tiny_tokenizer

TERMS = ["急性心肌梗死", "word7 文字", "[MED]", "梗死", "myocardial infarction"]
OLD_TEXTS = ["word1 文字一", "  two  spaces\n\n\ttab", "心肌 梗", "[MED", "🙂\u2581", "<s>"]


def unigram(symbols) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([f"word{i} 文字{chr(0x4E00 + i)} 好的 人们" for i in range(40)] * 5),
        model_writer=model, model_type="unigram", vocab_size=318, pad_id=0, bos_id=1, eos_id=2,
        unk_id=3, byte_fallback=True, normalization_rule_name="identity", add_dummy_prefix=False,
        remove_extra_whitespaces=False, user_defined_symbols=symbols, character_coverage=0.99,
        minloglevel=2)
    return model.getvalue()


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
    "unigram": ("tokenizer.model", lambda: exact_unigram(unigram(["\n", "[X]"]))),
    "unigram with symbols": ("tokenizer.model", lambda: unigram(["\n", "[X]"])),
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
    assert "1 pieces added, 1 were one piece already" in capsys.readouterr().out
    report = json.loads((tmp_path / "TOK3" / "report.json").read_text())
    assert report["existed"] == ["梗死"] and [e["piece"] for e in report["added"]] == ["新词"]
    with pytest.raises(ConfigError, match="is there and of another tokenizer"):
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
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["to be or not"] * 9), model_writer=model, minloglevel=2,
        vocab_size=20, hard_vocab_limit=False, model_type="word")
    (tmp_path / "tokenizer.model").write_bytes(model.getvalue())
    (tmp_path / "terms.txt").write_text("急性\n")
    with pytest.raises(ConfigError, match="of kind 'word' cannot be extended"):
        extend_tokenizer.main([f"--tokenizer={tmp_path}", f"--add={tmp_path / 'terms.txt'}",
                               f"--output={tmp_path / 'out'}"])
