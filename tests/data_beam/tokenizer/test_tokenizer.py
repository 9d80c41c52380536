import hashlib
import json
import random
import subprocess
import sys

import pytest

from data_beam import train_tokenizer
from data_beam.models.samples import sample_documents
from data_beam.readers.corpus_files import find_documents
from data_beam.tokenizer.training import han_share, sentences, symbol_lines
from data_beam.train_tokenizer import _SENTENCE_CHARACTERS, _SENTENCE_ENDS
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
def test_decoding_gives_the_exact_text(trained, text):
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
    ({"tokenizer.model": "mine"}, "tokenizer.model has no report.json"),
    ({"report.json": "mine"}, "report.json is damaged or from another command .no JSON"),
    ({"report.json": "[]"}, "the whole is no dict"),
    ({"report.json": "{}", "tokenizer.model": "mine"}, "sha256 is missing"),
    ({"report.json": '{"sha256": "0", "inputs": {}, "sources": {"a": {}}}'}, "is missing"),
])
def test_files_of_other_programs_are_not_overwritten(corpus, tmp_path, capsys, files, message):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=message):
        run(corpus, tmp_path)
    assert capsys.readouterr().out == ""  # it is said before the training
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == files


def test_a_model_that_is_not_that_of_the_report_is_kept(corpus, tmp_path):
    run(corpus, tmp_path / "t")
    (tmp_path / "t" / "tokenizer.model").write_text("mine")
    with pytest.raises(ConfigError, match=r"damaged or not the one of its report\.json"):
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
    parts = list(sentences(text, _SENTENCE_ENDS, _SENTENCE_CHARACTERS))
    assert "".join(parts) == "a b cdefg" + "x" * 10_000 + " " + "y" * 5_000
    assert max(map(len, parts)) <= 4096
    assert list(sentences("\n \n", _SENTENCE_ENDS, _SENTENCE_CHARACTERS)) == []


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
    (["--user_defined_symbols=<0x41>"], "special id"),
    (["--weights=web"], "'web' is not SOURCE=WEIGHT"),
    (["--weights=web=-1"], "'web=-1' is not SOURCE=WEIGHT"),
    (["--weights=web=nan"], "'web=nan' is not SOURCE=WEIGHT"),
    (["--weights=web=1,web=2"], "source 'web' is given twice"),
    (["--weights=web=1"], "source 'zh' has no weight; give zh=0"),
    (["--weights=web=1,zhh=2"], "no source 'zhh'; did you mean 'zh'"),
    (["--weights=web=0,zh=0"], "all are 0"),
    (["--phrases=no/such/file"], "--phrases: cannot read 'no/such/file'"),
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


def sizes(rows):
    found = {}
    for row in rows:
        found[row["source"]] = found.get(row["source"], 0) + len(row["text"].encode())
    return found


def test_weights_are_shares_of_the_bytes(corpus):
    """Counted here; a source is cut inside a character at most."""
    found = find_documents(str(corpus))
    available = sizes(row for row in rows() if row["split"] == "train")
    drawn, _ = sample_documents(found, 10_000, {"web": 1, "zh": 3})
    assert sizes(drawn)["web"] in range(2_497, 2_501) and sizes(drawn)["zh"] in range(7_497, 7_501)
    # A source that has too little makes the whole smaller, and the shares stay.
    drawn, _ = sample_documents(found, 10**9, {"web": 0.25, "zh": 0.75})
    assert sizes(drawn)["zh"] == available["zh"] < 10**6
    assert sizes(drawn)["web"] == pytest.approx(available["zh"] / 3, abs=4)
    drawn, _ = sample_documents(found, 10_000, {"web": 1, "zh": 0})
    assert set(sizes(drawn)) == {"web"}
    # The documents of a source are those of the smallest hashes, whatever the weights.
    few, _ = sample_documents(found, 5_000, {"web": 1, "zh": 1})
    more, _ = sample_documents(found, 20_000, {"web": 1, "zh": 1})
    assert {row["id"] for row in few} < {row["id"] for row in more}


def test_weights_steer_what_is_learned_and_are_recorded(corpus, tmp_path, capsys):
    def tokens(name, *flags):
        run(corpus, tmp_path / name, "--vocab_size=350", "--sample_bytes=12000",
            "--character_coverage=0.99", *flags)
        report = json.loads((tmp_path / name / "report.json").read_text())
        tokenizer = Tokenizer.load(tmp_path / name)
        return len(tokenizer.encode(ENGLISH)), report

    much, report = tokens("much", "--weights=web=0.95,zh=0.05")
    assert report["inputs"]["weights"] == {"web": 0.95, "zh": 0.05}
    assert report["trained_on"]["bytes_by_source"]["web"] == pytest.approx(11_400, abs=4)
    little, _ = tokens("little", "--weights=web=0.05,zh=0.95")
    assert much < little
    assert "web 95.0%, zh 5.0%" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="made with another weights"):
        tokens("much", "--weights=web=1,zh=1")


def test_character_coverage_follows_the_share_of_chinese(tmp_path, capsys):
    assert han_share(["患者 ab", "𠮷"]) == 3 / 5
    assert han_share([" \n"]) == 0
    for share, coverage in ((0.05, 0.9999), (0.2, 0.9995)):
        text = "word " * int(250 * (1 - share)) + "患者" * int(500 * share)
        corpus = write_corpus(tmp_path / f"c{share}", [document(0, text)])
        run(corpus, tmp_path / f"t{share}", "--vocab_size=280")
        report = json.loads((tmp_path / f"t{share}" / "report.json").read_text())
        assert report["character_coverage"] == coverage
        assert report["han_share"] == pytest.approx(han_share([text]), abs=1e-4)
        assert f"character coverage {coverage}" in capsys.readouterr().out


PHRASES = ["急性心肌梗死", "心肌", "myocardial infarction", "infarction", "的人"]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_phrases_are_one_piece_wherever_they_stand(corpus, tmp_path, capsys, kind):
    """Also where pieces that reach over both their ends are cheap: 好的 and 人们 beside 的人."""
    text = "\n".join(["好的", "人们", "的", "人", "好", "们", "好的吗", "人们说"] * 40)
    corpus = write_corpus(tmp_path / "c", [*rows(), document(5, text, "more")])
    (tmp_path / "phrases.txt").write_text(
        "\ufeff" + "\r\n".join([*PHRASES, "", "心肌"]) + "\n", encoding="utf-8")
    run(corpus, tmp_path / "t", f"--phrases={tmp_path / 'phrases.txt'}", f"--model_type={kind}",
        "--user_defined_symbols=[MED]", "--vocab_size=480")
    assert "5 phrases" in capsys.readouterr().out
    tokenizer = Tokenizer.load(tmp_path / "t" / "tokenizer.model")
    assert [piece.replace("\u2581", " ") for piece in tokenizer.pieces(range(4, 10))] == [
        "[MED]", *PHRASES]
    for phrase in ["[MED]", *PHRASES]:
        for before, after in (("", ""), ("好", "们"), ("the ", " of"), ("x", "y"), ("\n", "\t\t")):
            pieces = tokenizer.pieces(tokenizer.encode(before + phrase + after))
            assert phrase.replace(" ", "\u2581") in pieces, (kind, pieces)
    assert tokenizer.pieces(tokenizer.encode("急性心肌梗死心肌")) == ["急性心肌梗死", "心肌"]
    for sample in [*TEXTS, "\n" * 5 + "\t" * 7]:
        assert tokenizer.decode(tokenizer.encode(sample)) == sample
    assert len(tokenizer.encode("\n\n")) == len(tokenizer.encode("\t\t\t\t")) == 1


@pytest.mark.parametrize("content, message", [
    ("a\n b\n", r"line 2: ' b' begins or ends with white space"),
    ("a\tb\n", r"line 1: 'a\\tb' has white space other than single spaces"),
    ("a  b", "other than single spaces"),
    ("a\u3000b", "other than single spaces"),
    ("x" * 65, r"line 1: 65 characters \('x+'\.\.\.\); a piece has at most 64"),
    ("a\u2581b", "keeps for itself"),
    ("<s>", "special id"),
    (b"\xff\xfe", "not UTF-8 at byte 0"),
])
def test_lines_that_cannot_be_a_piece_are_named(tmp_path, content, message):
    path = tmp_path / "phrases.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError, match=message) as caught:
        symbol_lines(str(path), "--phrases", 64)
    assert str(caught.value).startswith("--phrases: ") and str(path) in str(caught.value)


def test_left_out_lines_are_counted(tmp_path):
    path = tmp_path / "phrases.txt"
    path.write_text("a\n\nb b\na\n\n")
    assert symbol_lines(str(path), "--phrases", 64) == (["a", "b b"], {"empty": 2, "repeated": 1})
    path.write_text("")
    assert symbol_lines(str(path), "--phrases", 64) == ([], {"empty": 0, "repeated": 0})


def test_digits_join_only_when_asked(tmp_path):
    corpus = write_corpus(tmp_path / "c", [document(0, "2026 2026 2026 2027 2028 " * 20)])
    for flag, size, pieces in (("--split_digits", 272, list("2026")),
                               ("--nosplit_digits", 276, ["202", "6"])):
        run(corpus, tmp_path / flag, f"--vocab_size={size}", flag)
        tokenizer = Tokenizer.load(tmp_path / flag)
        assert tokenizer.pieces(tokenizer.encode("2026")) == pieces


def test_a_long_line_is_cut_and_not_skipped(tmp_path):
    """SentencePiece leaves lines out that are longer than its limit."""
    line = "患者每天服用阿司匹林。" * 6_000  # 198 kB in one line
    corpus = write_corpus(tmp_path / "c", [document(0, line)])
    run(corpus, tmp_path / "t", "--vocab_size=285", "--split_digits")
    report = json.loads((tmp_path / "t" / "report.json").read_text())
    assert report["trained_on"]["skipped_sentences"] == 0
    assert report["trained_on"]["sentences"] == -(-66_000 // 4096)
    assert len(Tokenizer.load(tmp_path / "t").encode(line)) <= 3 * 6_000  # of 11 characters
