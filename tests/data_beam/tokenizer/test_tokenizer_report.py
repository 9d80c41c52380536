import json
import shutil

import pytest
import rjieba
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from data_beam import tokenizer_report
from data_beam.tokenizer.fertility import count_document, count_words, fertility
from maxlm.config import ConfigError
from maxlm.data.tokenizer import SentencePieceTokenizer, Tokenizer
from tests.document_corpora import document, write_corpus
from tests.token_corpora import tiny_tokenizer

TOKENIZER = SentencePieceTokenizer(tiny_tokenizer())
ZH = "患者每天服用阿司匹林，共两次。"
EN = "The patient, aged 61, took it twice."


def byte_level() -> tokenizers.Tokenizer:
    """A token for each byte."""
    model = tokenizers.Tokenizer(models.BPE(
        {character: i for i, character in enumerate(pre_tokenizers.ByteLevel.alphabet())}, []))
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = decoders.ByteLevel()
    return model


@pytest.mark.parametrize("text, language, words", [
    (EN, "en", 7),
    ("患者 每天 服用", "zh", 3),
    (ZH, "zh", 8),  # 患者 每天 服用 阿司匹林 共 两次, see below
    ("", "zh", 0),
    ("，。！", "zh", 0),
    (ZH, "und", 8),
    ("two words", "und", 2),
    ("これは文です", "ja", None),
    ("def f(x):\n    return x", "python", 4),
])
def test_words(text, language, words):
    if text == ZH:
        words = len([w for w in rjieba.cut(ZH) if w not in "，。"])
        assert 5 <= words <= 9
    assert count_words(text, language) == words


def test_counts_of_a_document_by_hand():
    text = "word1 文字龘"
    pieces = TOKENIZER.pieces(TOKENIZER.encode(text))
    assert pieces[-3:] == ["<0xE9>", "<0xBE>", "<0x98>"]
    counts = count_document(TOKENIZER, text, "en")
    assert (counts.characters, counts.bytes, counts.words) == (9, 15, 2)
    assert counts.tokens == counts.word_tokens == len(pieces)
    assert (counts.byte_pieces, counts.unknown) == (3, 0)
    assert count_document(TOKENIZER, "これ", "ja").word_tokens == 0


def test_ratios_are_over_sums_and_not_means_of_documents():
    rows = [document(0, "word1 " * 50, "a"), document(1, "文字" * 3, "a", "domain"),
            {**document(2, ZH, "b", "domain"), "language": "zh"}]
    found = fertility(TOKENIZER, rows, 10**9)
    tokens = [len(TOKENIZER.encode(row["text"])) for row in rows]
    entry = found["sources"]["a"]
    assert entry["tokens"] == tokens[0] + tokens[1] and entry["documents"] == 2
    assert entry["characters_per_token"] == round(306 / (tokens[0] + tokens[1]), 4)
    assert entry["bytes_per_token"] == round((300 + 18) / (tokens[0] + tokens[1]), 4)
    assert entry["tokens_per_word"] == round((tokens[0] + tokens[1]) / 51, 4)
    assert found["domains"]["domain"]["tokens"] == tokens[1] + tokens[2]
    assert found["languages"]["zh"]["tokens_per_word"] == round(
        tokens[2] / count_words(ZH, "zh"), 4)
    assert found["all"]["all"]["tokens"] == sum(tokens)
    # A group that is full takes no more, the others do.
    limited = fertility(TOKENIZER, rows, 300)
    assert limited["sources"]["a"]["documents"] == 1
    assert limited["domains"]["domain"]["documents"] == 2


def test_unknown_characters_and_languages_without_words():
    model = tokenizers.Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    model.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = Tokenizer.from_files({"tokenizer.json": model.to_str().encode(),
                                      "tokenizer_config.json": b"{}"})
    row = {**document(0, "a b a c"), "language": "ja"}
    entry = fertility(tokenizer, [row], 10**9)["languages"]["ja"]
    assert (entry["unknown"], entry["unknown_share"], entry["tokens_per_word"]) == (2, 0.5, None)


@pytest.fixture
def inputs(tmp_path):
    rows = [{**document(i, f"{ZH}第{i}次", "zh", "domain"), "language": "zh"} for i in range(9)]
    rows += [document(i, f"{EN} {i}", "web") for i in range(9)]
    rows += [document(99, "held out", "web", split="validation")]
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "tokenizer.model").write_bytes(tiny_tokenizer())
    (tmp_path / "theirs").mkdir()
    byte_level().save(str(tmp_path / "theirs" / "tokenizer.json"))
    write_corpus(tmp_path / "corpus", rows)
    return tmp_path


def test_two_tokenizers_side_by_side(inputs, capsys):
    flags = [f"--corpus={inputs / 'corpus'}", f"--tokenizer={inputs / 'ours/tokenizer.model'}",
             f"--compare={inputs / 'theirs'}"]
    assert tokenizer_report.main([*flags, f"--output={inputs / 'r.json'}"]) == 0
    report = json.loads((inputs / "r.json").read_text())
    assert report["documents"] == 18 and list(report["tokenizers"]) == ["ours", "theirs"]
    theirs = report["tokenizers"]["theirs"]
    assert (theirs["kind"], theirs["vocab_size"]) == ("huggingface", 256)
    for part in ("sources", "domains", "languages"):
        for group, entry in theirs[part].items():
            assert entry["bytes_per_token"] == 1.0  # a token for each byte
            assert entry["tokens"] == entry["bytes"]
            assert entry["bytes"] == report["tokenizers"]["ours"][part][group]["bytes"]
    assert theirs["languages"]["en"]["byte_share"] == 0
    assert theirs["languages"]["zh"]["byte_share"] > 0.9
    shown = capsys.readouterr().out.splitlines()
    line = next(i for i, text in enumerate(shown) if text.startswith("zh  "))
    assert shown[line].split()[1] == "ours" and shown[line + 1].split()[0] == "theirs"
    assert shown[line + 1].split()[3] == "1.00"
    tokenizer_report.main([*flags, "--split=validation", f"--output={inputs / 'r.json'}"])
    assert json.loads((inputs / "r.json").read_text())["documents"] == 1


@pytest.mark.parametrize("flags, message", [
    (["--split=trian"], "--split: no split 'trian'; did you mean 'train'"),
    (["--split=test"], "no documents in its split 'test'"),
    (["--sample_bytes=nan"], "--sample_bytes"),
    (["--compare=none.json"], "--compare: no file 'none.json'"),
])
def test_mistakes_are_named(inputs, flags, message):
    with pytest.raises(ConfigError, match=message):
        tokenizer_report.main([f"--corpus={inputs / 'corpus'}", f"--tokenizer={inputs / 'ours'}",
                               *flags])
    with pytest.raises(ConfigError, match="given twice"):
        tokenizer_report.main([f"--corpus={inputs / 'corpus'}", "--tokenizer=a", "--compare=a"])


def test_names_of_equal_folders_are_whole_paths(inputs):
    shutil.copytree(inputs / "ours", inputs / "other" / "ours")
    found = tokenizer_report.report(str(inputs / "corpus"), [
        str(inputs / "ours"), str(inputs / "other" / "ours")], "train", 10**6)
    assert list(found["tokenizers"]) == [str(inputs / "ours"), str(inputs / "other" / "ours")]
