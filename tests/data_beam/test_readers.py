"""Files to records: each document read comes out once, as a record, a drop or a dead letter."""

import bz2
import gzip
import hashlib
import io
import json
import os
import random
import sqlite3

import pyarrow as pa
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from data_beam.base.records import DeadLetter, Document, Dropped, Record
from data_beam.config import FORMATS, InputConfig, RecipeConfig, SourceConfig
from data_beam.extract.document import process
from data_beam.readers.listing import fingerprint, list_files
from data_beam.readers.programming_languages import language_of
from data_beam.readers.read_file import read_file
from maxlm.config.schema import ConfigError, build
from tests.data_beam import epub_files, pdf_files, warc_files

LIMIT = 1000


def source(root, pattern="*", format="jsonl", **fields) -> SourceConfig:
    return SourceConfig("s", "general", "CC0-1.0",
                        (InputConfig(str(root), pattern, format, **fields),))


RECIPE = RecipeConfig(sources=(source("raw"),))


def read(root, limit: int = LIMIT, **fields) -> list:
    config = source(root, **fields)
    return [item for file in list_files(RecipeConfig(sources=(config,)))
            for item in read_file(file, config, limit)]


def ends(items) -> list[tuple]:
    """Kind, record number and reason (or text) of each."""
    return [(type(item).__name__, item.origin.record,
             item.text if isinstance(item, Record) else item.reason) for item in items]


JSONL = b"\n".join([
    b'\xef\xbb\xbf{"text": "first"}',
    b"",
    b'{"text": "broken',
    b'{"text": "\xff bad byte"}',
    b'{"text": "' + b"x" * LIMIT + b'"}',
    b'{"no text": 1}',
    b'{"text": 7}',
    b'{"text": "half a pair \\ud83d"}',
    b"[1, 2]",
    b'"a bare text"\r',
    b"[" * 100_000,
    '{"text": "中文\\n末尾"}'.encode(),
]) + b"\n"
JSONL_ENDS = [
    ("Record", 1, "first"),
    ("DeadLetter", 3, "invalid JSON"),
    ("DeadLetter", 4, "bad encoding"),
    ("DeadLetter", 5, "too large"),
    ("DeadLetter", 6, "missing field"),
    ("DeadLetter", 7, "missing field"),
    ("DeadLetter", 8, "bad encoding"),
    ("DeadLetter", 9, "missing field"),
    ("Record", 10, "a bare text"),
    ("DeadLetter", 11, "too large"),
    ("Record", 12, "中文\n末尾"),
]


@pytest.mark.parametrize("compress", [lambda data: data, gzip.compress, zstandard.compress,
                                      bz2.compress], ids=["plain", "gzip", "zstd", "bzip2"])
def test_jsonl_uses_the_good_lines_and_names_the_bad(tmp_path, compress):
    (tmp_path / "a.jsonl").write_bytes(compress(JSONL))
    items = read(tmp_path)
    assert ends(items) == JSONL_ENDS
    assert items[0].bytes_sha256 == hashlib.sha256(b'{"text": "first"}').hexdigest()


def test_deeply_nested_json_is_a_dead_letter(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"[" * 900 + b"\n")
    assert ends(read(tmp_path)) == [("DeadLetter", 1, "invalid JSON")]


def test_half_a_gzip_gives_its_good_lines_and_reports_the_file(tmp_path):
    lines = [json.dumps({"text": f"document {i} {hashlib.sha256(bytes([i % 256])).hexdigest()}"})
             for i in range(2000)]
    data = gzip.compress("\n".join(lines).encode())
    (tmp_path / "a.jsonl.gz").write_bytes(data[:len(data) // 2])
    items = read(tmp_path)
    good, last = items[:-1], items[-1]
    assert 200 < len(good) < 2000
    assert [item.text for item in good] == [json.loads(line)["text"] for line in lines[:len(good)]]
    assert isinstance(last, DeadLetter) and last.origin.record is None
    assert last.reason == "truncated gzip" and "damaged" in last.detail


FIELDS = {"text_field": "body", "licence_field": "rights", "domain_field": "field",
          "url_field": "link"}
FULL = {"body": "t", "rights": "CC-BY-4.0", "field": "law", "link": "https://e.org/1"}
MAPPED = ("CC-BY-4.0", "law", "https://e.org/1")


def write_rows(folder, format: str, rows: list[dict]) -> dict:
    """Writes rows in a format with fields; what an input of them needs besides."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if format == "jsonl":
        (folder / "a").write_text("\n".join(map(json.dumps, rows)))
    elif format == "json":
        (folder / "a").write_text(json.dumps(rows))
    elif format == "parquet":
        pyarrow.parquet.write_table(
            pa.table({name: [row.get(name) for row in rows] for name in names}), folder / "a")
    else:
        (folder / "a").unlink(missing_ok=True)
        with sqlite3.connect(folder / "a") as connection:
            connection.execute(f"CREATE TABLE t ({', '.join(names)})")
            connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(names))})",
                                   [tuple(row.get(name) for name in names) for row in rows])
        connection.close()
        return {"format": format, "query": "SELECT * FROM t ORDER BY rowid"}
    return {"format": format}


@pytest.mark.parametrize("format", ["jsonl", "json", "sqlite", "parquet"])
def test_a_record_without_licence_domain_or_url_has_those_of_its_input_or_source(tmp_path, format):
    fallback = {"rights": "CC0-1.0", "field": "general", "link": ""}
    rows = [FULL]
    for name in fallback:
        rows += [{**FULL, name: None}, {**FULL, name: ""}, {**FULL, name: " \n\u3000"},
                 {key: value for key, value in FULL.items() if key != name}]
    items = read(tmp_path, **FIELDS, **write_rows(tmp_path, format, rows))
    assert {type(item) for item in items} == {Record}
    assert [(item.licence, item.domain, item.url) for item in items] == [MAPPED] + [
        tuple(fallback[key] if key == name else FULL[key] for key in fallback)
        for name in fallback for _ in range(4)]
    items = read(tmp_path, licence="MIT", **FIELDS, **write_rows(tmp_path, format, rows))
    assert [item.licence for item in items[:5]] == ["CC-BY-4.0"] + ["MIT"] * 4
    # A whole file without them, too.
    one, = read(tmp_path, **FIELDS, **write_rows(tmp_path, format, [{"body": "茶"}]))
    assert (one.text, one.licence, one.domain, one.url) == ("茶", *fallback.values())
    one, = read(tmp_path, **FIELDS, **write_rows(tmp_path, format, [{**FULL, "rights": None}]))
    assert (one.licence, one.url) == ("CC0-1.0", "https://e.org/1")  # null all the way down
    for row in ({**FULL, "body": None}, {"rights": "MIT"}):  # the text must be there
        one, = read(tmp_path, **FIELDS, **write_rows(tmp_path, format, [row]))
        assert (type(one), one.reason) == (DeadLetter, "missing field") and "'body'" in one.detail


@pytest.mark.parametrize("format", ["jsonl", "json", "sqlite"])
@pytest.mark.parametrize("name", ["rights", "field", "link"])
def test_a_licence_domain_or_url_that_is_no_text_costs_its_record(tmp_path, format, name):
    wrong = (7, 0, 1.5) if format == "sqlite" else (7, 0, False, ["MIT"], [], {"a": "MIT"})
    rows = [FULL, *({**FULL, name: value} for value in wrong), FULL]
    items = read(tmp_path, **FIELDS, **write_rows(tmp_path, format, rows))
    assert ends(items) == [("Record", 1, "t"), *(
        ("DeadLetter", number, "missing field") for number in range(2, len(wrong) + 2)),
        ("Record", len(wrong) + 2, "t")]
    assert items[1].detail == f"{name!r} is not a text"


def test_a_bare_text_has_no_fields_and_needs_none_but_itself(tmp_path):
    (tmp_path / "a").write_text('"a bare text"')
    item, = read(tmp_path, **FIELDS)
    assert (item.text, item.licence, item.domain, item.url) == (
        "a bare text", "CC0-1.0", "general", "")


@pytest.mark.parametrize("harm, reason", [
    (lambda packed: packed + b"JUNK", "corrupt gzip"),
    (lambda packed: packed[:-4], "truncated gzip"),
    (lambda packed: packed[:-6] + b"\0" + packed[-5:], "corrupt gzip")])
@pytest.mark.parametrize("last", [b'{"text": "three"}', b'"three"', b'{"text": "three"}\n'])
def test_the_last_line_before_the_damage_is_used_where_it_is_whole(tmp_path, harm, reason, last):
    packed = gzip.compress(b'{"text": "one"}\n{"text": "two"}\n' + last, 0)
    (tmp_path / "a.gz").write_bytes(harm(packed))
    assert ends(read(tmp_path)) == [
        ("Record", 1, "one"), ("Record", 2, "two"), ("Record", 3, "three"),
        ("DeadLetter", None, reason)]


@pytest.mark.parametrize("last", [
    b'{"text": "thr', b'{"text": "three"', b'"thr', b"12", b"tru", b"\xe8",
    b'{"text": "' + b"x" * LIMIT])
def test_what_may_be_half_a_line_is_no_record(tmp_path, last):
    packed = gzip.compress(b'{"text": "one"}\n' + last, 0)
    (tmp_path / "a.gz").write_bytes(packed[:-8])
    assert ends(read(tmp_path)) == [
        ("Record", 1, "one"), ("DeadLetter", None, "truncated gzip")]


def test_sqlite(tmp_path):
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("CREATE TABLE t (n INTEGER, body TEXT, link TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", [
            (3, "three", "u3"), (1, "one", "u1"), (2, None, "u2"), (4, "x" * (LIMIT + 1), "u4")])
        connection.execute("INSERT INTO t VALUES (5, CAST(x'ff41' AS TEXT), 'u5')")
    connection.close()
    options = {"format": "sqlite", "text_field": "body", "url_field": "link"}
    items = read(tmp_path, query="SELECT body, link FROM t ORDER BY n", **options)
    assert ends(items) == [("Record", 1, "one"), ("DeadLetter", 2, "missing field"),
                           ("Record", 3, "three"), ("DeadLetter", 4, "too large"),
                           ("DeadLetter", 5, "missing field")]
    assert items[0].url == "u1"
    assert ends(read(tmp_path, query="SELECT body, link FROM t WHERE n > 9", **options)) == [
        ("Dropped", None, "empty file")]
    bad, = read(tmp_path, query="SELECT missing FROM t", **options)
    assert isinstance(bad, DeadLetter) and "no such column: missing" in bad.detail
    data = (tmp_path / "a.db").read_bytes()
    (tmp_path / "a.db").write_bytes(data[:100] + b"\xff" * (len(data) - 100))
    assert ends(read(tmp_path, query="SELECT body, link FROM t ORDER BY n", **options)) == [
        ("DeadLetter", None, "bad database")]


def test_files_that_are_one_document(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbftext\r\n")
    (tmp_path / "b.txt").write_bytes(b"")
    (tmp_path / "c.txt").write_bytes(gzip.compress(b""))
    (tmp_path / "d.txt").write_bytes(gzip.compress(b"zipped"))
    (tmp_path / "e.txt").write_bytes(b"x" * (LIMIT + 1))
    (tmp_path / "f.txt").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (tmp_path / "g.txt").write_bytes(gzip.compress(b"cut" * 100)[:-9])
    items = read(tmp_path, format="text")
    assert ends(items) == [
        ("Record", None, "text\r\n"), ("Dropped", None, "empty file"),
        ("Dropped", None, "empty file"), ("Record", None, "zipped"),
        ("DeadLetter", None, "too large"), ("DeadLetter", None, "binary content"),
        ("DeadLetter", None, "truncated gzip")]
    assert items[0].bytes_sha256 == hashlib.sha256(b"\xef\xbb\xbftext\r\n").hexdigest()


def test_a_gbk_page_records_how_it_was_decoded(tmp_path):
    (tmp_path / "a.html").write_bytes(
        '<meta charset="gb2312"><p>茶的历史</p>'.encode("gbk"))
    record, = read(tmp_path, format="html")
    assert "茶的历史" in record.text and record.transforms == ("decode:gb18030",)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_a_dead_letter(tmp_path):
    (tmp_path / "a.txt").write_text("secret")
    (tmp_path / "a.txt").chmod(0)
    assert ends(read(tmp_path, format="text")) == [("DeadLetter", None, "unreadable file")]


def test_a_file_that_disappears_is_a_dead_letter(tmp_path):
    (tmp_path / "a.txt").write_text("here")
    config = source(tmp_path, format="text")
    file, = list_files(RecipeConfig(sources=(config,)))
    (tmp_path / "a.txt").unlink()
    assert ends(read_file(file, config, LIMIT)) == [("DeadLetter", None, "unreadable file")]


TEXTS = ["first", "中文\n末尾", None, "x" * (LIMIT + 1), "last"]
PARQUET_ENDS = [("Record", 1, "first"), ("Record", 2, "中文\n末尾"),
                ("DeadLetter", 3, "missing field"), ("DeadLetter", 4, "too large"),
                ("Record", 5, "last")]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(),
                                  pa.dictionary(pa.int32(), pa.string())], ids=str)
@pytest.mark.parametrize("rows", [1, 2, 100])
def test_parquet(tmp_path, kind, rows):
    table = pa.table({"n": range(5), "text": pa.array(TEXTS).cast(kind)})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet", row_group_size=rows)
    items = read(tmp_path, format="parquet")
    assert ends(items) == PARQUET_ENDS
    assert items[1].bytes_sha256 == hashlib.sha256("中文\n末尾".encode()).hexdigest()


def test_parquet_fields_are_mapped_and_missing_ones_named(tmp_path):
    pyarrow.parquet.write_table(pa.table({
        "body": ["t", "t"], "rights": ["CC-BY-4.0", "MIT"], "field": ["law", "law"],
        "link": ["https://e.org/1", None], "n": [1, 2]}), tmp_path / "a.parquet")
    first, second = read(tmp_path, format="parquet", **FIELDS)
    assert (first.licence, first.domain, first.url) == MAPPED
    assert (second.licence, second.url) == ("MIT", "")
    dead, = read(tmp_path, format="parquet", text_field="body", licence_field="n")
    assert (dead.reason, dead.detail) == ("missing field", "'n' is no text but int64")
    for name, words in (("gone", "'gone' is not there"), ("n", "'n' is no text but int64")):
        dead, = read(tmp_path, format="parquet", text_field=name)
        assert (dead.reason, dead.origin.record) == ("missing field", None)
        assert words in dead.detail


def test_a_bad_text_in_parquet_costs_its_row_only(tmp_path):
    raw = pa.array([b"good", b"\xff bad", b"fine"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    pyarrow.parquet.write_table(pa.table({"text": text}), tmp_path / "a.parquet")
    assert ends(read(tmp_path, format="parquet")) == [
        ("Record", 1, "good"), ("DeadLetter", 2, "bad encoding"), ("Record", 3, "fine")]


def test_a_damaged_row_group_costs_its_rows_and_the_file_is_named(tmp_path):
    rng = random.Random(0)
    texts = ["".join(rng.choices("abcdefgh", k=500)) for _ in range(40)]
    pyarrow.parquet.write_table(pa.table({"text": texts}), tmp_path / "a.parquet",
                                row_group_size=10, write_page_checksum=True, use_dictionary=False)
    data = bytearray((tmp_path / "a.parquet").read_bytes())
    column = pyarrow.parquet.ParquetFile(io.BytesIO(data)).metadata.row_group(2).column(0)
    data[column.data_page_offset + column.total_compressed_size - 1000] ^= 1
    (tmp_path / "a.parquet").write_bytes(data)
    items = read(tmp_path, format="parquet")
    assert ends(items[:-1]) == [("Record", i + 1, text) for i, text in enumerate(texts)
                                if not 20 <= i < 30]
    assert ends(items[-1:]) == [("DeadLetter", None, "damaged Parquet")]
    assert "row group 2 after 0 rows" in items[-1].detail
    for content, end in ((data[:-20], ("DeadLetter", None, "invalid Parquet")),
                         (b"PAR1PAR1", ("DeadLetter", None, "invalid Parquet"))):
        (tmp_path / "a.parquet").write_bytes(content)
        assert ends(read(tmp_path, format="parquet")) == [end]
    pyarrow.parquet.write_table(pa.table({"text": pa.array([], pa.string())}),
                                tmp_path / "a.parquet")
    assert ends(read(tmp_path, format="parquet")) == [("Dropped", None, "empty file")]


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
    assert ends(items) == [("Record", None, ""), ("Record", None, ""),
                           ("DeadLetter", None, "too large")]
    assert items[0].bytes_sha256 == hashlib.sha256(b"%PDF-1.7 \xff").hexdigest()


def parquet_bytes() -> bytes:
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pa.table({"text": ["first text", "中文" * 50] * 5}), buffer,
                                row_group_size=4)
    return buffer.getvalue()


GOOD = {
    "jsonl": gzip.compress(JSONL), "text": bz2.compress("中文 text\n".encode() * 20),
    "markdown": zstandard.compress(b"# title\n" * 20), "parquet": parquet_bytes(),
    "warc": warc_files.members([warc_files.response(b"<p>page</p>")] * 3),
    "epub": epub_files.book({"a.xhtml": epub_files.chapter("One", "The text of a chapter.")}),
    "pdf": pdf_files.make(pdf_files.lines(["A line of text.", "And another line."])),
}


def process_all(folder, format) -> list:
    """Every end of a folder's files, read and extracted."""
    query = {"query": "SELECT 1 AS text ORDER BY 1"} if format == "sqlite" else {}
    return [process(item, RECIPE) if isinstance(item, Record) else item
            for item in read(folder, 10 * LIMIT, format=format, **query)]


def test_every_reader_survives_every_format(tmp_path):
    """Siblings of the known bad files: nothing raises, and every file has at least one end."""
    samples = [b"", b" ", b"\n", b"word", b"\xff\xfe", b"\0" * 50, b"[]", b"{}", b"null",
               b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh91AY&SY", b"x" * (10 * LIMIT + 1),
               b"%PDF-1.4",
               b"PK\x03\x04", b"WARC/1.0\r\n\r\n", b"PAR1" * 3, gzip.compress(JSONL), b'["text"]',
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
def test_any_bytes_have_at_least_one_end(tmp_path_factory, format, data):
    """Any bytes, and cuts and flips of good files: an end for each file, never an exception."""
    content = bytearray(data.draw(st.sampled_from(
        [GOOD.get(format, JSONL), b"", gzip.compress(b"any")])))
    if content and data.draw(st.booleans()):
        for _ in range(data.draw(st.integers(0, 6))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        content = content[:data.draw(st.integers(0, len(content)))]
    content += data.draw(st.binary(max_size=100))
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
    ({"format": "pfd"}, "'pfd' is not one of .* did you mean 'pdf'"),
])
def test_inputs_that_make_no_sense_are_refused(fields, message):
    with pytest.raises(ConfigError, match=message):
        build(InputConfig, {"root": "r", "pattern": "*", **fields})


def make_tree(root) -> None:
    for name in ("b/two.py", "a/one.py", "a/tests/test_one.py", "a/readme.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)


def test_listing_is_relative_sorted_and_cut_by_patterns(tmp_path):
    make_tree(tmp_path)
    config = source(tmp_path, "**.py", "python", exclude=("*/tests/*",), prefix="v1/")
    files = list_files(RecipeConfig(sources=(config,)))
    assert [file.path for file in files] == ["v1/a/one.py", "v1/b/two.py"]
    assert [file.size for file in files] == [8, 8]


def test_max_bytes_takes_files_by_the_hash_of_their_path(tmp_path):
    make_tree(tmp_path)
    names = ["a/one.py", "b/two.py", "a/readme.md"]
    by_hash = sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())
    sizes = {name: len(name) for name in names}
    for count in (1, 2, 3):
        limit = sum(sizes[name] for name in by_hash[:count])
        config = SourceConfig("s", "code", "CC0-1.0", (
            InputConfig(str(tmp_path), "**", "text", exclude=("*/tests/*",)),), max_bytes=limit)
        files = list_files(RecipeConfig(sources=(config,)))
        assert {file.path for file in files} == set(by_hash[:count])


def test_mistakes_in_inputs_are_named(tmp_path):
    make_tree(tmp_path)
    with pytest.raises(ConfigError, match=r"source 's', input 0: no file matches .*nothing"):
        list_files(RecipeConfig(sources=(source(tmp_path / "nothing"),)))
    twice = SourceConfig("s", "code", "CC0-1.0", (
        InputConfig(str(tmp_path), "a/*.py", "python"),
        InputConfig(str(tmp_path), "**.py", "docstrings")))
    with pytest.raises(ConfigError, match=r"inputs 0 and 1 both have 'a/one.py'"):
        list_files(RecipeConfig(sources=(twice,)))
    small = SourceConfig("s", "code", "CC0-1.0", (
        InputConfig(str(tmp_path), "**.py", "python"),), max_bytes=1)
    with pytest.raises(ConfigError, match="max_bytes 1 is less"):
        list_files(RecipeConfig(sources=(small,)))


def test_the_fingerprint_sees_a_changed_file(tmp_path):
    make_tree(tmp_path)
    recipe = RecipeConfig(sources=(source(tmp_path, "**.py", "python"),))
    before = fingerprint(list_files(recipe))
    assert fingerprint(list_files(recipe)) == before
    os.utime(tmp_path / "a/one.py", (1, 1))
    touched = fingerprint(list_files(recipe))
    (tmp_path / "a/one.py").write_text("longer than before")
    os.utime(tmp_path / "a/one.py", (1, 1))
    assert len({before, touched, fingerprint(list_files(recipe))}) == 3


@pytest.mark.parametrize("kind", ["jsonl", "gzip", "json", "sqlite"])
def test_progress_is_told_inside_a_file(tmp_path, kind):
    letters = random.Random(0)
    texts = ["".join(letters.choices("abcdefgh", k=900)) for _ in range(8000)]
    path, fields = tmp_path / "big", {"format": "jsonl"}
    if kind == "json":
        path.write_text(json.dumps(texts))
        fields = {"format": "json"}
    elif kind == "sqlite":
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE t (text TEXT)")
            connection.executemany("INSERT INTO t VALUES (?)", [(text,) for text in texts])
        connection.close()
        fields = {"format": "sqlite", "query": "SELECT text FROM t ORDER BY rowid"}
    else:
        data = "\n".join(map(json.dumps, texts)).encode()
        path.write_bytes(gzip.compress(data, 1) if kind == "gzip" else data)
    config = source(tmp_path, **fields)
    file, = list_files(RecipeConfig(sources=(config,)))
    position, seen = [0.0], []
    for number, item in enumerate(read_file(file, config, 10**8, lambda p: position.append(p)), 1):
        assert isinstance(item, Record)
        seen.append((number / len(texts), position[-1] / file.size))
    assert position == sorted(position) and position[-1] <= file.size
    assert all(abs(read - told) < 0.45 for read, told in seen)
    assert 0.3 < seen[len(seen) // 2][1] < 0.7
