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

from data_beam.base.records import DeadLetter, Document, Dropped, Record
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


def test_files_that_are_one_document(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbftext\r\n")
    (tmp_path / "b.txt").write_bytes(b"")
    (tmp_path / "c.txt").write_bytes(gzip.compress(b""))
    (tmp_path / "d.txt").write_bytes(gzip.compress(b"zipped"))
    (tmp_path / "e.txt").write_bytes(b"x" * (LIMIT + 1))
    (tmp_path / "f.txt").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (tmp_path / "g.txt").write_bytes(gzip.compress(b"cut" * 100)[:-9])
    items = read(tmp_path, format="text")
    assert outcomes(items) == [
        ("Record", None, "text\r\n"), ("Dropped", None, "empty file"),
        ("Dropped", None, "empty file"), ("Record", None, "zipped"),
        ("DeadLetter", None, "too large"), ("DeadLetter", None, "binary content"),
        ("DeadLetter", None, "truncated gzip")]
    assert items[0].bytes_sha256 == hashlib.sha256(b"\xef\xbb\xbftext\r\n").hexdigest()


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


CHINESE = "茶是一种饮料，起源于中国。后来传到世界各地，成为人们日常的饮料，也是各国贸易的大宗货物。"


def test_a_code_tree(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/main.rs").write_bytes(b"fn main() {\r\n    // (cid:1)\r\n}\r\n\r\n")
    (tmp_path / "src/old.c.gz").write_bytes(gzip.compress(
        f'char *s = "{CHINESE}";\n'.encode("gbk")))
    (tmp_path / "src/latin.py").write_bytes(b"# coding: latin-1\ns = '\xe9'\n")
    (tmp_path / "LICENSE").write_text("free")
    (tmp_path / "z.js").write_bytes(bytes(range(256)))
    items = read(tmp_path, pattern="**", format="code")
    kinds = {item.origin.path: item for item in items}
    assert kinds["LICENSE"].reason == "no known language" and kinds["LICENSE"].detail == "LICENSE"
    assert isinstance(kinds["LICENSE"], Dropped)
    assert kinds["z.js"].reason == "binary content"
    documents = {path: process(item, RECIPE) for path, item in kinds.items()
                 if isinstance(item, Record)}
    assert all(isinstance(d, Document) and d.is_code for d in documents.values())
    assert {path: d.language for path, d in documents.items()} == {
        "src/main.rs": "rust", "src/old.c.gz": "c", "src/latin.py": "python"}
    assert documents["src/main.rs"].text == "fn main() {\n    // (cid:1)\n}\n"
    assert documents["src/old.c.gz"].text == f'char *s = "{CHINESE}";\n'
    assert documents["src/latin.py"].text.endswith("s = 'é'\n")


def test_files_of_bytes_are_handed_on_undecoded(tmp_path):
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7 \xff")
    (tmp_path / "b.pdf.gz").write_bytes(gzip.compress(b"%PDF-1.7 \xff"))
    (tmp_path / "c.pdf").write_bytes(b"x" * (LIMIT + 1))
    items = read(tmp_path, format="pdf")
    assert [getattr(item, "data", item) for item in items[:2]] == [b"%PDF-1.7 \xff"] * 2
    assert outcomes(items) == [("Record", None, ""), ("Record", None, ""),
                           ("DeadLetter", None, "too large")]
    assert items[0].bytes_sha256 == hashlib.sha256(b"%PDF-1.7 \xff").hexdigest()


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


def test_every_reader_survives_every_format(tmp_path):
    """Nothing raises, and every file has an outcome."""
    samples = [b"", b" ", b"\n", b"word", b"\xff\xfe", b"\0" * 50, b"[]", b"{}", b"null",
               b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh91AY&SY", b"x" * (10 * LIMIT + 1),
               b"%PDF-1.4",
               b"PK\x03\x04", b"WARC/1.0\r\n\r\n", b"PAR1" * 3, JSONL, b'["text"]',
               "中文".encode("gbk"), *GOOD.values()]
    for number, data in enumerate(samples):
        (tmp_path / f"{number:02d}.py").write_bytes(data)
    for format in FORMATS:
        items = process_all(tmp_path, format)
        paths = {f"{number:02d}.py" for number in range(len(samples))}
        assert {item.origin.path for item in items} == paths
        assert all(isinstance(item, Document | Dropped | DeadLetter) for item in items)
        assert any(isinstance(item, Document) for item in items) or format in (
            "sqlite", "package_description"), format


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
