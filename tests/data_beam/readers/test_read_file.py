"""Files to records: each document read comes out once, as a record, a drop or a dead letter."""

import bz2
import gzip
import hashlib
import io
import random

import pyarrow as pa
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from data_beam.base.records import Document, Record
from data_beam.config import FORMATS, InputConfig, RecipeConfig
from data_beam.extract.document import process
from data_beam.readers.listing import list_files
from data_beam.readers.programming_languages import language_of
from data_beam.readers.read_file import read_file
from maxlm.config.schema import ConfigError, build
from tests.data_beam import warc_files
from tests.data_beam.broken_files import broken
from tests.data_beam.extract import epub_files, pdf_files
from tests.data_beam.readers.reading import LIMIT, outcomes, read, source, write_rows

RECIPE = RecipeConfig(sources=(source("raw"),))


def test_the_checksum_is_that_of_the_bytes_and_the_mark_is_no_text(tmp_path):
    data = b"\xef\xbb\xbftext\r\n"
    (tmp_path / "a.txt").write_bytes(gzip.compress(data))
    item, = read(tmp_path, format="text")
    assert (item.text, item.bytes_sha256) == ("text\r\n", hashlib.sha256(data).hexdigest())


def test_a_file_that_is_too_large_or_empty_once_decompressed(tmp_path):
    (tmp_path / "a.txt").write_bytes(gzip.compress(b"x" * (LIMIT + 1)))
    (tmp_path / "b.txt").write_bytes(gzip.compress(b""))
    for format in ("text", "pdf"):
        assert outcomes(read(tmp_path, format=format)) == [
            ("DeadLetter", None, "too large"), ("Dropped", None, "empty file")]


def test_a_file_that_disappears_is_a_dead_letter(tmp_path):
    (tmp_path / "a.txt").write_text("here")
    config = source(tmp_path, format="text")
    file, = list_files(RecipeConfig(sources=(config,)))
    (tmp_path / "a.txt").unlink()
    assert outcomes(read_file(file, config, LIMIT)) == [("DeadLetter", None, "unreadable file")]


@pytest.mark.parametrize("path, language", [
    ("a/b.py", "python"), ("b.PY", "python"), ("x.rs", "rust"), ("x.h", "c"), ("x.hpp", "c++"),
    ("Makefile", "makefile"), ("a/CMakeLists.txt", "cmake"), ("x.tar.gz", ""),
    ("x.py.gz", "python"),
    ("x.c.zst", "c"), ("README.md", ""), (".py", ""), ("py", ""), ("x.", ""), ("", ""),
    ("dir.py/x", "")])
def test_the_language_of_a_file_by_its_name(path, language):
    assert language_of(path) == language


JSONL = gzip.compress(b'{"text": "first"}\n{"text": 7}\n[1, 2]\n"a bare text"\n{"text": "\xff"}\n{')


def parquet_bytes() -> bytes:
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pa.table({"text": ["first text", "中文" * 50] * 5}), buffer,
                                row_group_size=4)
    return buffer.getvalue()


GOOD = {
    "jsonl": JSONL, "text": bz2.compress("中文 text\n".encode() * 20),
    "markdown": zstandard.compress(b"# title\n" * 20), "parquet": parquet_bytes(),
    "warc": warc_files.members([warc_files.response(b"<p>page</p>")] * 3),
    "epub": epub_files.book({"a.xhtml": epub_files.chapter("One", "The text of a chapter.")}),
    "pdf": pdf_files.make(pdf_files.lines(["A line of text.", "And another line."])),
}


def process_all(folder, format) -> list:
    """Every outcome of a folder's files, read and extracted."""
    query = {"query": "SELECT 1 AS text ORDER BY 1"} if format == "sqlite" else {}
    return [process(item, RECIPE) if isinstance(item, Record) else item
            for item in read(folder, 10 * LIMIT, format=format, **query)]


@settings(max_examples=60, deadline=None)
@given(st.data())
@pytest.mark.parametrize("format", FORMATS)
def test_any_bytes_have_an_outcome(tmp_path_factory, format, data):
    """Any bytes, and good files cut and flipped: an outcome for each file, never an exception."""
    good = data.draw(st.sampled_from([GOOD.get(format, JSONL), b"", gzip.compress(b"any")]))
    content = data.draw(broken(good)) + data.draw(st.binary(max_size=100))
    folder = tmp_path_factory.mktemp("any")
    (folder / "x.c").write_bytes(content)
    items = process_all(folder, format)
    assert items
    for item in items:
        assert isinstance(item, Document) or item.reason


@pytest.mark.parametrize("fields, message", [
    ({"format": "jsonl", "text_field": ""}, "text_field: must not be empty; name the field"),
    ({"format": "pdf", "url_field": "u"}, "url_field: format 'pdf' has no fields"),
    ({"format": "warc", "licence_field": "u"}, "licence_field: format 'warc' has no fields"),
    ({"format": "parquet", "query": "SELECT 1"}, "query: must be set for format 'sqlite'"),
    ({"format": "sqlite"}, "query: must be set"),
    ({"format": "pfd"}, "'pfd' is not one of .* did you mean 'pdf'"),
])
def test_inputs_that_make_no_sense_are_refused(fields, message):
    with pytest.raises(ConfigError, match=message):
        build(InputConfig, {"root": "r", "pattern": "*", **fields})


@pytest.mark.parametrize("kind", ["jsonl", "gzip", "json", "sqlite"])
def test_progress_is_told_inside_a_file(tmp_path, kind):
    letters = random.Random(0)
    texts = ["".join(letters.choices("abcdefgh", k=900)) for _ in range(8000)]
    fields = write_rows(tmp_path, "jsonl" if kind == "gzip" else kind,
                        [{"text": text} for text in texts])
    if kind == "gzip":
        (tmp_path / "a").write_bytes(gzip.compress((tmp_path / "a").read_bytes(), 1))
    config = source(tmp_path, **fields)
    file, = list_files(RecipeConfig(sources=(config,)))
    position, seen = [0.0], []
    for number, item in enumerate(read_file(file, config, 10**8, lambda p: position.append(p)), 1):
        assert isinstance(item, Record)
        seen.append((number / len(texts), position[-1] / file.size))
    assert position == sorted(position) and position[-1] <= file.size
    assert all(abs(read - told) < 0.45 for read, told in seen)
    assert 0.3 < seen[len(seen) // 2][1] < 0.7
