"""tokenizer.json of SentencePiece models, against SentencePiece itself and transformers."""

import random

import pytest
import sentencepiece
from tokenizers import models

from data_beam import export_tokenizer, tokenize
from maxlm.config import ConfigError
from maxlm.data import tokenizer_export
from maxlm.data.corpus import TokenCorpus
from maxlm.data.sentencepiece_model import exact_unigram, parse
from maxlm.data.tokenizer import SentencePieceTokenizer, Tokenizer
from maxlm.data.tokenizer_export import CHECKED_TEXTS, to_huggingface
from tests.data_beam.runs import sentencepiece_model
from tests.document_corpora import document, write_corpus
from tests.token_corpora import tiny_tokenizer

ALPHABET = "abcde  -=_.。！的患者心肌梗死人们们 \n\t🙂<>s/0x41E2[]MED１２é\u2581"
SYMBOLS = ["[MED]", "\n", "\n\n", "\t", "\t\t", "心肌梗死", "心肌", "的人", "ab\u2581cd", "--"]


def some_texts(count: int, longest: int, seed: int) -> list[str]:
    letters = random.Random(seed)
    texts = ["".join(letters.choices(ALPHABET, k=letters.randrange(longest))) for _ in range(count)]
    return [text.replace("=", "=" * letters.randrange(9)).replace(" ", " " * letters.randrange(9))
            for text in texts] + [f"{a}{symbol}{b}".replace("\u2581", " ") for symbol in SYMBOLS
                                  for a, b in (("", ""), ("好的", "们"), ("x", "y"), ("\n", "\n"))]


@pytest.fixture(scope="module", params=["bpe", "unigram", "bpe without bytes",
                                        "unigram without bytes"])
def model(request) -> bytes:
    kind, _, without = request.param.partition(" ")
    lines = [line for text in some_texts(600, 60, 0) for line in text.split("\n")]
    written = sentencepiece_model(
        lines, model_type=kind, vocab_size=(700 if kind == "bpe" else 480) - 255 * bool(without),
        byte_fallback=not without, allow_whitespace_only_pieces=True, split_digits=True,
        character_coverage=0.999, user_defined_symbols=SYMBOLS)
    return written if kind == "bpe" else exact_unigram(written)


def test_ids_are_those_of_sentencepiece(model):
    exported = to_huggingface(SentencePieceTokenizer(model))
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    raw = exported._tokenizer  # as other programs use it
    for text in [*CHECKED_TEXTS, *some_texts(2_000, 60, 1), *some_texts(3, 30_000, 2)]:
        ids = processor.encode(text)
        assert raw.encode(text, add_special_tokens=False).ids == ids, text
        if processor.unk_id() not in ids:
            assert raw.decode(ids) == processor.decode(ids)
    assert [raw.id_to_token(i) for i in range(processor.vocab_size())] == [
        processor.id_to_piece(i) for i in range(processor.vocab_size())]
    assert raw.encode("a").ids == [1, *processor.encode("a")]  # BOS and no EOS


def test_what_is_written_is_read_as_the_same_tokenizer(model, tmp_path, capsys):
    (tmp_path / "tokenizer.model").write_bytes(model)
    flags = [f"--tokenizer={tmp_path}", f"--output={tmp_path / 'hf'}"]
    corpus = write_corpus(tmp_path / "c", [document(i, text) for i, text in enumerate(
        some_texts(20, 200, 3))])
    assert export_tokenizer.main([*flags, f"--corpus={corpus}"]) == 0
    assert "equal on all texts compared, 60 documents among them" in capsys.readouterr().out
    ours, theirs = Tokenizer.load(tmp_path), Tokenizer.load(tmp_path / "hf")
    for name in ("vocab_size", "bos_id", "eos_id", "pad_id", "unk_id"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert (ours.piece_bytes() == theirs.piece_bytes()).all()
    for text in [*CHECKED_TEXTS, *some_texts(200, 60, 4)]:
        ids = ours.encode(text)
        assert theirs.encode(text) == ids
        if ours.unk_id not in ids:
            assert theirs.decode(ids) == ours.decode(ids)
        assert [ours.is_byte(i) for i in ids] == [theirs.is_byte(i) for i in ids]
    before = (tmp_path / "hf" / "tokenizer.json").read_bytes()
    assert export_tokenizer.main(flags) == 0
    assert (tmp_path / "hf" / "tokenizer.json").read_bytes() == before


def test_transformers_reads_the_same_ids(model, tmp_path):
    transformers = pytest.importorskip("transformers")
    exported = to_huggingface(SentencePieceTokenizer(model))
    for name, content in exported.files.items():
        (tmp_path / name).write_bytes(content)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    bare = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    auto = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert (auto.bos_token_id, auto.eos_token_id, auto.pad_token_id, len(auto)) == (
        1, 2, 0, processor.vocab_size())
    for text in [*CHECKED_TEXTS, *some_texts(300, 60, 5)]:
        ids = processor.encode(text)
        for tokenizer in (bare, auto):
            assert tokenizer(text, add_special_tokens=False,
                             split_special_tokens=True).input_ids == ids
        if processor.unk_id() not in ids:
            assert auto.decode(ids, skip_special_tokens=True) == processor.decode(ids)


def test_tokens_made_with_either_form_are_the_same(model, tmp_path):
    if not parse(model).byte_fallback:
        return  # not every text comes back
    (tmp_path / "tokenizer.model").write_bytes(model)
    export_tokenizer.main([f"--tokenizer={tmp_path}", f"--output={tmp_path / 'hf'}"])
    corpus = write_corpus(tmp_path / "c", [document(i, text + "龘") for i, text in enumerate(
        some_texts(20, 200, 6))])
    made = {}
    for folder in (tmp_path, tmp_path / "hf"):
        tokenize.main([f"--corpus={corpus}", f"--tokenizer={folder}", f"--output={folder / 't'}"])
        made[folder] = TokenCorpus.open(folder / "t", "train")
    one, two = made.values()
    assert one.sources == two.sources  # checksums of the shards among them
    assert sorted(path.name for path in (tmp_path / "hf" / "t").iterdir() if path.is_file()) == [
        "tokenizer.json", "tokenizer_config.json"]
    # And nothing is done again; a file of the tokenizer that changed is seen.
    tokenize.main([f"--corpus={corpus}", f"--tokenizer={tmp_path / 'hf'}",
                   f"--output={tmp_path / 'hf' / 't'}"])
    (tmp_path / "hf" / "t" / "tokenizer_config.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"tokenizer_config\.json is damaged"):
        tokenize.main([f"--corpus={corpus}", f"--tokenizer={tmp_path / 'hf'}",
                       f"--output={tmp_path / 'hf' / 't'}"])


def test_an_export_that_would_give_other_ids_is_not_written(tmp_path, monkeypatch):
    (tmp_path / "tokenizer.model").write_bytes(tiny_tokenizer())

    def without_merges(model, tokenizer):
        return models.BPE({piece.text: i for i, piece in enumerate(model.pieces)}, [],
                          byte_fallback=True, fuse_unk=True, unk_token="<unk>")

    monkeypatch.setattr(tokenizer_export, "_bpe", without_merges)
    corpus = write_corpus(tmp_path / "c", [document(0, "word1 word12 文字")])
    with pytest.raises(ConfigError, match="would give other ids than the model on"):
        export_tokenizer.main([f"--tokenizer={tmp_path}", f"--output={tmp_path / 'hf'}",
                               f"--corpus={corpus}"])
    assert not (tmp_path / "hf").exists()


def test_models_without_a_counterpart_are_refused(tmp_path):
    for kind, message in (("bpe", "normalises texts"),
                          ("word", "of kind 'word' has no counterpart")):
        model = sentencepiece_model(["to be or not"] * 9, vocab_size=20, hard_vocab_limit=False,
                                    model_type=kind, normalization_rule_name="nmt_nfkc")
        with pytest.raises(ConfigError, match=message):
            to_huggingface(SentencePieceTokenizer(model))
    hf = tmp_path / "hf"
    (tmp_path / "tokenizer.model").write_bytes(tiny_tokenizer())
    export_tokenizer.main([f"--tokenizer={tmp_path}", f"--output={hf}"])
    with pytest.raises(ConfigError, match="is a Hugging Face tokenizer already"):
        export_tokenizer.main([f"--tokenizer={hf}", f"--output={tmp_path / 'hf2'}"])
    (tmp_path / "tokenizer.model").write_bytes(tiny_tokenizer(390))
    before = (hf / "tokenizer.json").read_bytes()
    with pytest.raises(ConfigError, match=r"tokenizer\.json is of another tokenizer"):
        export_tokenizer.main([f"--tokenizer={tmp_path}", f"--output={hf}"])
    assert (hf / "tokenizer.json").read_bytes() == before
