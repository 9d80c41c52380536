"""Rows of SQLite and Parquet, and the fields that rows and JSON values have in common."""

import hashlib
import io
import random
import sqlite3

import pyarrow as pa
import pyarrow.parquet
import pytest

from data_beam.base.records import DeadLetter, Record
from tests.data_beam.readers.reading import LIMIT, outcomes, read, write_rows

FIELDS = {"text_field": "body", "licence_field": "rights", "domain_field": "field",
          "url_field": "link"}
FULL = {"body": "t", "rights": "CC-BY-4.0", "field": "law", "link": "https://e.org/1"}
MAPPED = ("CC-BY-4.0", "law", "https://e.org/1")


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
    assert outcomes(items) == [("Record", 1, "t"), *(
        ("DeadLetter", number, "missing field") for number in range(2, len(wrong) + 2)),
        ("Record", len(wrong) + 2, "t")]
    assert items[1].detail == f"{name!r} is not a text"


def test_a_bare_text_has_no_fields_and_needs_none_but_itself(tmp_path):
    (tmp_path / "a").write_text('"a bare text"')
    item, = read(tmp_path, **FIELDS)
    assert (item.text, item.licence, item.domain, item.url) == (
        "a bare text", "CC0-1.0", "general", "")


def test_sqlite(tmp_path):
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("CREATE TABLE t (n INTEGER, body TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [
            (2, "two"), (1, "one"), (3, "x" * (LIMIT + 1))])
    connection.close()
    options = {"format": "sqlite", "text_field": "body"}
    assert outcomes(read(tmp_path, query="SELECT body FROM t ORDER BY n", **options)) == [
        ("Record", 1, "one"), ("Record", 2, "two"), ("DeadLetter", 3, "too large")]
    assert outcomes(read(tmp_path, query="SELECT body FROM t WHERE n > 9", **options)) == [
        ("Dropped", None, "empty file")]
    bad, = read(tmp_path, query="SELECT missing FROM t", **options)
    assert isinstance(bad, DeadLetter) and "no such column: missing" in bad.detail


TEXTS = ["first", "中文\n末尾", None, "x" * (LIMIT + 1), "last"]
PARQUET_OUTCOMES = [("Record", 1, "first"), ("Record", 2, "中文\n末尾"),
                ("DeadLetter", 3, "missing field"), ("DeadLetter", 4, "too large"),
                ("Record", 5, "last")]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(),
                                  pa.dictionary(pa.int32(), pa.string())], ids=str)
@pytest.mark.parametrize("rows", [1, 2, 100])
def test_parquet(tmp_path, kind, rows):
    table = pa.table({"n": range(5), "text": pa.array(TEXTS).cast(kind)})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet", row_group_size=rows)
    items = read(tmp_path, format="parquet")
    assert outcomes(items) == PARQUET_OUTCOMES
    assert items[1].bytes_sha256 == hashlib.sha256("中文\n末尾".encode()).hexdigest()


def test_missing_columns_of_parquet_are_named(tmp_path):
    pyarrow.parquet.write_table(pa.table({"body": ["t", "t"], "n": [1, 2]}), tmp_path / "a.parquet")
    for fields, words in (({"text_field": "gone"}, "'gone' is not there"),
                          ({"text_field": "n"}, "'n' is not text but int64"),
                          ({"text_field": "body", "licence_field": "n"}, "'n' is not text but")):
        dead, = read(tmp_path, format="parquet", **fields)
        assert (dead.reason, dead.origin.record) == ("missing field", None)
        assert words in dead.detail


def test_a_bad_text_in_parquet_costs_its_row_only(tmp_path):
    raw = pa.array([b"good", b"\xff bad", b"fine"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    pyarrow.parquet.write_table(pa.table({"text": text}), tmp_path / "a.parquet")
    assert outcomes(read(tmp_path, format="parquet")) == [
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
    assert outcomes(items[:-1]) == [("Record", i + 1, text) for i, text in enumerate(texts)
                                if not 20 <= i < 30]
    assert outcomes(items[-1:]) == [("DeadLetter", None, "damaged Parquet")]
    assert "row group 2 after 0 rows" in items[-1].detail
    for content in (data[:-20], b"PAR1PAR1"):
        (tmp_path / "a.parquet").write_bytes(content)
        assert outcomes(read(tmp_path, format="parquet")) == [
            ("DeadLetter", None, "invalid Parquet")]
    pyarrow.parquet.write_table(pa.table({"text": pa.array([], pa.string())}),
                                tmp_path / "a.parquet")
    assert outcomes(read(tmp_path, format="parquet")) == [("Dropped", None, "empty file")]
