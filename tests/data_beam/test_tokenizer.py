import hashlib
import json
import random
import subprocess
import sys

import pytest

from data_beam import train_tokenizer
from data_beam.corpus_files import find_documents
from data_beam.train_tokenizer import sample_documents, sentences
from maxlm.config import ConfigError
from maxlm.data.tokenizer import SentencePieceTokenizer, Tokenizer
from tests.data_beam.file_limits import file_size_limit
from tests.document_corpora import document, write_corpus

ENGLISH = ("The quick brown fox jumps over the lazy dog. " * 3 + "\n\n    indented\ttab 1234\n") * 4
CHINESE = ("你好，世界！今天天气很好。“引号”、全角（括号）１２３。\n" * 6)
TEXTS = [
    "Full-width，。！？；：“”（）【】　space",
    "\tdef f(x):\n\t\treturn  x  \n\n\n    y = 'é'\r\n",
    "  leading and trailing  ",
    " ",
    "🙂 👩‍👩‍👧 𝔘𝔫𝔦 𠮷野家",
    "<s> </s> <unk> <pad> <0x41> [MED] literal",
    "\u2581 and \u2585 and \0 and \ufeff and \u2047",
    "2026年11月30日 12345",
    "が カ\u3099 ﬁ Å A\u030a",
    "",
]


def rows():
    letters = random.Random(0)
    words = ["".join(letters.choices("abcdefghijklmnopqrstuvwxyz", k=5)) for _ in range(300)]
    for i in range(40):
        yield document(i, ENGLISH + " ".join(letters.choices(words, k=50)), "web")
        yield document(i, f"{CHINESE}第{i}篇文章" + chr(0x4E00 + i), "zh", "domain")
        yield document(100 + i, "held out " + "zebra " * 5, "web", split="validation")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("c") / "corpus", rows())


def run(corpus, output, *flags):
    return train_tokenizer.main([f"--corpus={corpus}", f"--output={output}", "--vocab_size=450",
                                 *flags])


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def trained(request, corpus, tmp_path_factory):
    output = tmp_path_factory.mktemp("t") / "tok"
    assert run(corpus, output, f"--model_type={request.param}",
               "--user_defined_symbols=[MED],[LAW]") == 0
    return output


@pytest.mark.parametrize("text", TEXTS)
def test_texts_come_back_exactly(trained, text):
    tokenizer = Tokenizer.load(trained / "tokenizer.model")
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer.unk_id not in ids


def test_special_ids_and_symbols(trained):
    tokenizer = Tokenizer.load(trained / "tokenizer.model")
    assert tokenizer.vocab_size == 450
    assert (tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id, tokenizer.unk_id) == (0, 1, 2, 3)
    assert tokenizer.pieces(range(6)) == ["<pad>", "<s>", "</s>", "<unk>", "[MED]", "[LAW]"]
    assert tokenizer.pieces(tokenizer.encode("a[MED]b")) == ["a", "[MED]", "b"]
    # Literal control symbols stay text.
    assert not {0, 1, 2, 3} & set(tokenizer.encode("<pad><s></s><unk>"))
    assert tokenizer.pieces(tokenizer.encode("12"))[-2:] == ["1", "2"]  # digits are split
    assert tokenizer.pieces(tokenizer.encode("a\n\nb\tc")) == ["a", "\n\n", "b", "\t", "c"]


def test_report_counts_characters_and_tokens(trained, corpus):
    report = json.loads((trained / "report.json").read_text())
    model = (trained / "tokenizer.model").read_bytes()
    assert report["sha256"] == hashlib.sha256(model).hexdigest()
    assert report["trained_on"]["documents"] == report["trained_on"]["of_documents"] == 80
    assert report["trained_on"]["skipped_sentences"] == 0
    tokenizer = SentencePieceTokenizer(model)
    for source in ("web", "zh"):
        texts = [row["text"] for row in rows()
                 if row["source"] == source and row["split"] == "train"]
        tokens = sum(len(tokenizer.encode(text)) for text in texts)
        entry = report["sources"][source]
        assert entry["characters"] == sum(map(len, texts))
        assert entry["tokens"] == tokens
        assert entry["characters_per_token"] == pytest.approx(
            entry["characters"] / tokens, abs=1e-4)
        assert entry["bytes_per_token"] == pytest.approx(
            sum(len(text.encode()) for text in texts) / tokens, abs=1e-4)
    assert set(report["domains"]) == {"general", "domain"}


def test_same_inputs_give_the_same_bytes_and_are_not_trained_again(corpus, tmp_path, capsys):
    run(corpus, tmp_path / "one")
    capsys.readouterr()
    before = (tmp_path / "one" / "tokenizer.model").stat().st_mtime_ns
    run(corpus, tmp_path / "one")
    assert "nothing to do" in capsys.readouterr().out
    assert (tmp_path / "one" / "tokenizer.model").stat().st_mtime_ns == before
    run(corpus, tmp_path / "two")
    for name in ("tokenizer.model", "report.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    with pytest.raises(ConfigError, match="made with another character_coverage"):
        run(corpus, tmp_path / "one", "--character_coverage=0.99")
    # A run that was stopped between its two files goes on.
    (tmp_path / "two" / "tokenizer.model").unlink()
    run(corpus, tmp_path / "two")
    for name in ("tokenizer.model", "report.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.parametrize("files, message", [
    ({"tokenizer.model": "mine"}, "tokenizer.model is there without a report.json"),
    ({"report.json": "mine"}, "report.json is damaged or no report of a tokenizer .no JSON"),
    ({"report.json": "[]"}, "the whole is no dict"),
    ({"report.json": "{}", "tokenizer.model": "mine"}, "sha256 is missing"),
    ({"report.json": '{"sha256": "0", "inputs": {}, "sources": {"a": {}}}'}, "is missing"),
])
def test_files_of_something_else_are_not_overwritten(corpus, tmp_path, capsys, files, message):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=message):
        run(corpus, tmp_path)
    assert capsys.readouterr().out == ""  # it is said before the training
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == files


def test_a_model_that_is_not_that_of_the_report_is_kept(corpus, tmp_path):
    run(corpus, tmp_path / "t")
    (tmp_path / "t" / "tokenizer.model").write_text("mine")
    with pytest.raises(ConfigError, match=r"damaged or not that of its report\.json"):
        run(corpus, tmp_path / "t")
    assert (tmp_path / "t" / "tokenizer.model").read_text() == "mine"


@pytest.mark.parametrize("limit, sources, message", [
    (1_000, 1, "error: TMPDIR: cannot write to "),  # the sentences
    (15_000, 100, "error: --output: cannot write to "),  # a report larger than text and model
])
def test_a_full_disk_is_one_line(tmp_path, limit, sources, message):
    corpus = write_corpus(tmp_path / "c", [
        document(i, f"to be or not to be {i}\n" + ENGLISH * (sources == 1), f"s{i % sources}")
        for i in range(100)])
    flags = [f"--corpus={corpus}", f"--output={tmp_path / 't'}", "--vocab_size=290"]
    result = subprocess.run([sys.executable, "-m", "data_beam.train_tokenizer", *flags],
                            capture_output=True, text=True, preexec_fn=file_size_limit(limit))
    assert result.returncode == 2, result.stderr
    assert result.stderr.splitlines()[-1].startswith(message) and "Traceback" not in result.stderr
    assert "file too large" in result.stderr
    assert not (tmp_path / "t" / "tokenizer.model").exists()


def test_held_out_documents_are_not_learned_from(corpus):
    sampled, seen = sample_documents(find_documents(str(corpus)), 10**9)
    assert seen == len(sampled) == 80
    assert not any("held out" in row["text"] for row in sampled)


def test_sample_is_bounded_and_does_not_follow_the_files(corpus, tmp_path):
    other = write_corpus(tmp_path / "other", reversed(list(rows())), shards=5)
    texts = []
    for path in (corpus, other):
        sampled, _ = sample_documents(find_documents(str(path)), 10_000)
        assert sum(len(row["text"].encode()) for row in sampled) in range(9_997, 10_001)
        texts.append([row["text"] for row in sampled])
    assert texts[0] == texts[1]
    assert 2 < len(texts[0]) < 80


def test_sentences_lose_only_what_pieces_cannot_hold():
    text = "a b\n\n c\td\0e\u2581f\u2585g\n" + "x" * 10_000 + " " + "y" * 5_000
    parts = list(sentences(text))
    assert "".join(parts) == "a b cdefg" + "x" * 10_000 + " " + "y" * 5_000
    assert max(map(len, parts)) <= 4096
    assert list(sentences("\n \n")) == []


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_vocabulary_larger_than_the_text_allows(tmp_path, kind):
    corpus = write_corpus(tmp_path / "c", [document(0, "to be or not to be")])
    with pytest.raises(ConfigError, match=r"--vocab_size: 5000 .* the most that is possible is "
                                          r"(\d+)") as caught:
        run(corpus, tmp_path / "t", "--vocab_size=5000", f"--model_type={kind}")
    most = str(caught.value).rsplit(" ", 1)[1]
    assert not (tmp_path / "t").exists()
    run(corpus, tmp_path / "t", f"--vocab_size={most}", f"--model_type={kind}")
    assert Tokenizer.load(tmp_path / "t" / "tokenizer.model").vocab_size == int(most)


def test_vocabulary_smaller_than_the_characters(corpus, tmp_path):
    with pytest.raises(ConfigError, match=r"--vocab_size: 280 is too small .* at least \d+"):
        run(corpus, tmp_path / "t", "--vocab_size=280")


@pytest.mark.parametrize("flags, message", [
    (["--vocab_size=5"], "--vocab_size: must be more than"),
    (["--character_coverage=1.5"], "--character_coverage"),
    (["--sample_bytes=0"], "--sample_bytes"),
    (["--sample_bytes=nan"], "--sample_bytes: must be a number"),
    (["--sample_bytes=inf"], "--sample_bytes: must be a number"),
    (["--character_coverage=nan"], "--character_coverage"),
    (["--user_defined_symbols=[A],[A]"], "given twice"),
    (["--user_defined_symbols=<s>"], "special id"),
    (["--user_defined_symbols=a b"], "spaces"),
    (["--model_type=wordpiece"], "model_type"),
])
def test_flags_out_of_range_are_named(corpus, tmp_path, flags, message):
    with pytest.raises(ConfigError, match=message):
        run(corpus, tmp_path / "t", *flags)


def test_mistakes_are_one_line(tmp_path):
    command = [sys.executable, "-m", "data_beam.train_tokenizer", "--output", str(tmp_path / "t")]
    for corpus, message in ((tmp_path / "none", "does not exist"), (tmp_path, "no manifest.json")):
        result = subprocess.run([*command, "--corpus", str(corpus)], capture_output=True, text=True)
        assert result.returncode == 2
        assert result.stderr.startswith("error: --corpus: ") and message in result.stderr
        assert result.stderr.count("\n") == 1


def test_corpus_that_lost_a_file_is_named(tmp_path):
    corpus = write_corpus(tmp_path / "c", rows())
    (corpus / "documents" / "documents-00001-of-00002.parquet").unlink()
    with pytest.raises(ConfigError, match=r"documents-00001-of-00002\.parquet is missing"):
        run(corpus, tmp_path / "t")
