import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import xxhash
from array_record.python.array_record_module import ArrayRecordReader

from data_beam import tokenize
from data_beam.readers.corpus_files import read_rows
from maxlm.config import ConfigError
from maxlm.data.corpus import TokenCorpus, decode_record
from maxlm.data.tokenizer import Tokenizer
from tests.data_beam.file_limits import file_size_limit
from tests.data_beam.job_service import portable_options
from tests.data_beam.runs import TWO_PROCESSES, contents, sentencepiece_model
from tests.document_corpora import document, write_corpus
from tests.token_corpora import tiny_tokenizer


def rows():
    for i in range(60):
        split = "validation" if i % 10 == 0 else "train"
        yield document(i, f"word{i} \u2581 文字🙂\n\t" + "long text " * (i % 7), "web",
                       split=split)
        if i % 3 == 0:
            yield document(i, f"def f{i}():\n    return '</s>'", "code", "code", split=split)
    yield document(0, "只有训练", "zh", "domain")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "tokenizer.model").write_bytes(tiny_tokenizer())
    return write_corpus(folder / "corpus", rows(), shards=3), folder / "tokenizer.model"


def flags(inputs, output, *more):
    return [f"--corpus={inputs[0]}", f"--tokenizer={inputs[1]}", f"--output={output}",
            "--shard_bytes=1000", *more]


def run(*arguments, **options):
    return subprocess.run([sys.executable, "-m", "data_beam.tokenize", *arguments],
                          capture_output=True, text=True, **options)


def one_error(*arguments, **options) -> str:
    """The only line beside those of the progress."""
    result = run(*arguments, **options)
    assert result.returncode == 2
    line, = (line for line in result.stderr.splitlines() if not line.startswith("tokenize "))
    return line


@pytest.fixture(scope="module")
def tokens(inputs, tmp_path_factory):
    output = tmp_path_factory.mktemp("tokens") / "tokens"
    assert tokenize.main(flags(inputs, output)) == 0
    return output


def records(tokens, split):
    """Record number, source, shard file, id and token ids of every record."""
    corpus = TokenCorpus.open(tokens, split)
    for source in corpus.sources:
        for shard in source.shards:
            reader = ArrayRecordReader(str(corpus.directory / shard.file))
            index = pq.read_table(corpus.directory / shard.index).to_pylist()
            assert reader.num_records() == shard.documents == len(index)
            for number in range(reader.num_records()):
                content, = reader.read([number])
                doc_id, ids, _, _ = decode_record(content, corpus.dtype, index[number]["tokens"])
                assert index[number]["id"] == doc_id
                yield source, shard, doc_id, ids, index[number]["bytes"]


@pytest.mark.parametrize("split", ["train", "validation"])
def test_every_document_comes_back_from_its_shard(tokens, split):
    tokenizer = Tokenizer.load(tokens / "tokenizer.model")
    found = {}
    for source, _, doc_id, ids, size in records(tokens, split):
        ids = ids.tolist()
        assert ids[0] == tokenizer.bos_id and ids[-1] == tokenizer.eos_id
        text = tokenizer.decode(ids[1:-1])
        assert size == len(text.encode())
        found[doc_id.hex()] = (source.name, text)
    assert found == {row["id"]: (row["source"], row["text"]) for row in rows()
                     if row["split"] == split}


def test_shards_are_the_hash_and_sorted_by_it(tokens):
    corpus = TokenCorpus.open(tokens, "train")
    assert len(corpus.source("web").shards) > 1
    last = {}
    for source, shard, doc_id, _, _ in records(tokens, "train"):
        order = xxhash.xxh3_64_intdigest(doc_id)
        assert source.shards[order % len(source.shards)] == shard
        assert last.get(shard.file, -1) < order
        last[shard.file] = order


def test_manifest_counts_and_checksums(tokens):
    corpus = TokenCorpus.open(tokens, "train")
    corpus.verify()
    manifest = corpus.manifest
    training = [row for row in rows() if row["split"] == "train"]
    assert manifest.documents == len(training)
    assert manifest.bytes == sum(len(row["text"].encode()) for row in training)
    assert manifest.tokens == sum(len(ids) for _, _, _, ids, _ in records(tokens, "train"))
    assert corpus.tokenizer_sha256 == hashlib.sha256(
        (tokens / "tokenizer.model").read_bytes()).hexdigest()
    assert {(s.name, s.domain, s.licence) for s in corpus.sources} == {
        ("web", "general", "CC0-1.0"), ("code", "code", "CC0-1.0"), ("zh", "domain", "CC0-1.0")}
    assert TokenCorpus.open(tokens, "validation").source("zh").documents == 0
    assert TokenCorpus.open(tokens, "test").manifest.documents == 0
    assert not (tokens / "_temporary").exists()


def test_other_inputs_in_the_same_output_are_refused(inputs, tokens, tmp_path):
    other = write_corpus(tmp_path / "c", [document(0, "word1")])
    with pytest.raises(ConfigError, match=r"--output: .* another corpus"):
        tokenize.main(flags((other, inputs[1]), tokens))
    with pytest.raises(ConfigError, match=r"--output: .*shard size"):
        tokenize.main([*flags(inputs, tokens), "--shard_bytes=2000"])


def test_what_a_killed_run_left_is_made_again(inputs, tokens, tmp_path):
    output = tmp_path / "t"
    victim = subprocess.Popen([sys.executable, "-m", "data_beam.tokenize", *flags(inputs, output)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not list(output.glob("_temporary/parts/*")):
        assert victim.poll() is None
        time.sleep(0.005)
    victim.kill()
    victim.wait()
    (output / "train" / "web-00000-of-00003.array_record").write_bytes(b"half")
    (output / "_temporary" / "reports" / "read-x-0.json").write_text('{"counts": [["train",')
    with pytest.raises(ConfigError, match="no finished split"):
        TokenCorpus.open(output, "train")
    tokenize.main(flags(inputs, output))
    assert contents(output) == contents(tokens)


@pytest.mark.parametrize("name, damage, message", [
    ("test/manifest.json", Path.unlink, "test/manifest.json is missing"),
    ("test/manifest.json", lambda path: path.write_text("[]"), "damaged or from another command"),
    ("train/manifest.json", lambda path: path.write_text("{"), "damaged or from another command"),
    ("train/code-00000-of-00001.array_record", Path.unlink, "is missing"),
    ("train/code-00000-of-00001.array_record", lambda path: os.truncate(path, 9),
     "has 9 bytes instead of"),
    ("train/code-00000-of-00001.index.parquet", Path.unlink, "is missing"),
    ("train/code-00000-of-00001.index.parquet", lambda path: os.truncate(path, 99), "is damaged"),
    ("tokenizer.model", Path.unlink, "is missing"),
    ("tokenizer.model", lambda path: os.truncate(path, 99), "is damaged"),
])
def test_an_output_that_lost_a_file_is_incomplete(
        inputs, tokens, tmp_path, name, damage, message):
    output = tmp_path / "t"
    shutil.copytree(tokens, output)
    damage(output / name)
    before = contents(output)
    with pytest.raises(ConfigError, match=message) as caught:
        tokenize.main(flags(inputs, output))
    assert str(caught.value).startswith("--output: ") and str(output / name) in str(caught.value)
    assert contents(output) == before


@pytest.mark.parametrize("place", [0, 0.5, None])
def test_a_damaged_document_file_is_one_line(inputs, tmp_path, place):
    """The first page of the texts without its head or middle, or a file that is no Parquet."""
    folder = tmp_path / "c"
    write_corpus(folder, rows(), shards=1)
    path, = (folder / "documents").iterdir()
    content = bytearray(path.read_bytes())
    if place is None:
        content[:] = b"x" * len(content)
    else:
        column = pq.read_metadata(path).row_group(0).column(1)
        assert column.path_in_schema == "text"
        start = column.dictionary_page_offset + int(place * column.total_compressed_size)
        content[start:start + 64] = b"\xff" * 64
    path.write_bytes(content)
    error = one_error(*flags((folder, inputs[1]), tmp_path / "t"))
    assert error.startswith(f"error: --corpus: {path} is damaged or not a Parquet file (")
    with pytest.raises(ConfigError, match=re.escape(f"--corpus: {path} is damaged")):
        list(read_rows(str(path), ["id", "text"]))


def test_a_flipped_byte_in_a_file_of_documents_is_named(inputs, tmp_path):
    """In the column `path`, which the command does not read: all texts are what they were."""
    corpus = write_corpus(tmp_path / "c", rows(), shards=1)
    path, = (corpus / "documents").iterdir()
    content = bytearray(path.read_bytes())
    column = next(column for column in map(pq.read_metadata(path).row_group(0).column, range(17))
                  if column.path_in_schema == "path")
    content[column.dictionary_page_offset + column.total_compressed_size // 2] ^= 1
    path.write_bytes(content)
    assert len(list(read_rows(str(path), ["id", "text"]))) == 81
    with pytest.raises(ConfigError, match=re.escape(
            f"--corpus: {path} is damaged or not a Parquet file (it does not have the checksum of "
            "the manifest)")):
        tokenize.main(flags((corpus, inputs[1]), tmp_path / "t"))


def test_a_full_disk_is_one_line(inputs, tmp_path):
    error = one_error(*flags(inputs, tmp_path / "t"), preexec_fn=file_size_limit(20_000))
    assert error.startswith("error: --output: cannot write to ") and "file too large" in error


def test_two_workers_give_the_same_bytes(inputs, tokens, tmp_path):
    run(*flags(inputs, tmp_path / "t"), *TWO_PROCESSES, check=True)
    assert contents(tmp_path / "t") == contents(tokens)


def test_portable_runner_gives_the_same_bytes(inputs, tokens, tmp_path):
    with portable_options() as options:
        run(*flags(inputs, tmp_path / "t"), *options, check=True)
    assert contents(tmp_path / "t") == contents(tokens)


def test_a_text_that_decodes_to_another_is_named(inputs, tmp_path):
    (tmp_path / "lossy.model").write_bytes(sentencepiece_model(
        ["only ascii words"] * 10, vocab_size=30, model_type="bpe", hard_vocab_limit=False))
    corpus = write_corpus(tmp_path / "c", [document(7, "文字"), document(8, "only ascii words")])
    with pytest.raises(ConfigError, match=f"1 documents cannot .*{document(7, '')['id']} of a: "
                                          "decoding its tokens gives another text"):
        tokenize.main(flags((corpus, tmp_path / "lossy.model"), tmp_path / "t"))
    with pytest.raises(ConfigError):
        TokenCorpus.open(tmp_path / "t", "train")


def test_a_text_that_changed_after_its_checksum_is_named(inputs, tmp_path):
    """A flipped byte that still decodes, in a file whose own checksum fits: pages of Parquet have
    none unless asked for."""
    changed = {**document(3, "患者每天服用 5 毫克"), "text": "患者每天服用 7 毫克"}
    corpus = write_corpus(tmp_path / "c", [document(1, "word1"), changed], shards=1)
    with pytest.raises(ConfigError, match=(
            rf"--corpus: {re.escape(str(corpus))}/documents/documents-00000-of-00001\.parquet is "
            rf"damaged: document {changed['id']} of a: its text does not have the sha256")):
        tokenize.main(flags((corpus, inputs[1]), tmp_path / "t"))
    with pytest.raises(ConfigError, match="no finished split"):
        TokenCorpus.open(tmp_path / "t", "train")


def test_ids_that_are_no_ids_are_named(inputs, tmp_path):
    corpus = write_corpus(tmp_path / "c", [{**document(1, "word1"), "id": "0" * 31 + "x"}])
    with pytest.raises(ConfigError, match="not 32 hexadecimal digits"):
        tokenize.main(flags((corpus, inputs[1]), tmp_path / "t"))


def test_mistakes_are_one_line(inputs, tmp_path):
    output = tmp_path / "t"
    assert "does not exist" in one_error(*flags((tmp_path / "none", inputs[1]), output))
    size = "--shard_bytes: must be a number of at least 1"
    for arguments, message in (
            (flags((inputs[0], tmp_path / "no.model"), output), "--tokenizer: no file"),
            (flags(inputs, output, "--runer=FnApiRunner"), "--runer; did you mean '--runner'?"),
            (flags(inputs, output, "--bad=1"), "unknown option --bad; see --help"),
            *((flags(inputs, output, f"--shard_bytes={value}"), size)
              for value in ("0", "nan", "inf", "-inf"))):
        with pytest.raises(ConfigError, match=re.escape(message)):
            tokenize.main(arguments)
