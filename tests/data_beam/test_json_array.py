"""Arrays of JSON: what is bad in one costs the bad item, and each item has one end."""

import gzip
import json
import time

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.data_beam.test_readers import LIMIT, ends, read

A, B, C = ({"text": name * 5} for name in "abc")
KEPT = [("Record", 1, "aaaaa"), ("Record", 3, "ccccc")]


def of(tmp_path, data: bytes):
    (tmp_path / "a.json").write_bytes(data)
    return ends(read(tmp_path, format="json"))


def test_items_are_records(tmp_path):
    assert of(tmp_path, json.dumps(["one", {"text": "two"}, 3]).encode()) == [
        ("Record", 1, "one"), ("Record", 2, "two"), ("DeadLetter", 3, "missing field")]


@pytest.mark.parametrize("data, end", [
    (b"{}", ("DeadLetter", None, "invalid JSON")),
    (b'{"text": "a"}\n{"text": "b"}', ("DeadLetter", None, "invalid JSON")),
    (b'["cut', ("DeadLetter", 1, "invalid JSON")),
    (b'["\xff"]', ("DeadLetter", 1, "bad encoding")),
    (b"[]", ("Dropped", None, "empty file")),
    (b"\xef\xbb\xbf [ \n] \n", ("Dropped", None, "empty file")),
    (b"[", ("DeadLetter", None, "invalid JSON")),
    (b'["' + b"x" * LIMIT + b'"]', ("DeadLetter", None, "too large")),
])
def test_files_of_one_end(tmp_path, data, end):
    assert of(tmp_path, data) == [end]


LAYOUTS = {"one line": json.dumps([A, B, C]), "a line each": ",\n".join(
    ["[\n" + json.dumps(A), json.dumps(B), json.dumps(C) + "\n]"]),
    "spread": json.dumps([A, B, C], indent=2), "spread by tabs": json.dumps([A, B, C], indent="\t"),
    "closed together": json.dumps([A, B, C]).replace(", ", "\r\n ,")}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("good, bad, reason", [
    (b"bbbbb", b"bb\xffbb", "bad encoding"),
    (b"bbbbb", b"bb\x01bb", "invalid JSON"),
    (b"bbbbb", b"bb\\xbb", "invalid JSON"),
    (b'"bbbbb"', b"bbbbb", "invalid JSON"),
    (b'"bbbbb"', b"[bbbbb, {}]", "invalid JSON"),
    (b'"text": "bbbbb"', b'"text" "bbbbb"', "invalid JSON"),
    (b'"bbbbb"', b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
    (b'"bbbbb"', b"null", "missing field"),
])
def test_a_bad_item_costs_itself(tmp_path, monkeypatch, layout, good, bad, reason):
    whole = LAYOUTS[layout].encode()
    assert whole.count(good) == 1
    (tmp_path / "a.json").write_bytes(whole.replace(good, bad))
    assert sorted(ends(read(tmp_path, limit=1 << 20, format="json")), key=lambda end: end[1]) == [
        KEPT[0], ("DeadLetter", 2, reason), KEPT[1]]


@pytest.mark.parametrize("layout", ["a line each", "spread", "spread by tabs"])
@pytest.mark.parametrize("good, bad", [
    (b'bbbbb"', b"bbbbb"), (b'"bbbbb"', b"[[[[{:"), (b'"bbbbb"', b"}}}]")])
def test_items_on_lines_of_their_own_need_no_matching_brackets(tmp_path, layout, good, bad):
    assert of(tmp_path, LAYOUTS[layout].encode().replace(good, bad)) == [
        KEPT[0], ("DeadLetter", 2, "invalid JSON"), KEPT[1]]


def test_what_follows_an_item_without_end_is_not_read(tmp_path):
    (tmp_path / "a.json").write_bytes(LAYOUTS["one line"].encode().replace(b'"bbbbb"', b"[[[["))
    first, second = read(tmp_path, format="json")
    assert ends([first, second]) == [KEPT[0], ("DeadLetter", 2, "invalid JSON")]
    assert second.detail.endswith("; what follows it is not read")


@pytest.mark.parametrize("data", [
    b'["aaaaa", "bbbbb", ]', b'["aaaaa" "bbbbb"]', b'["aaaaa",,"bbbbb"]'])
def test_commas_do_not_matter(tmp_path, data):
    assert of(tmp_path, data) == [("Record", 1, "aaaaa"), ("Record", 2, "bbbbb")]


def test_more_behind_the_end(tmp_path):
    assert of(tmp_path, b'["aaaaa"] ["bbbbb"]') == [
        ("Record", 1, "aaaaa"), ("DeadLetter", None, "invalid JSON")]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_cut_anywhere(tmp_path, layout):
    """Items before the cut are records, and the cut is one dead letter."""
    whole = LAYOUTS[layout].encode()
    closed = [whole.index(word) + len(word) for word in (b"aaaaa", b"bbbbb", b"ccccc")]
    closed = [whole.index(b"}", place) + 1 for place in closed]
    for size in range(1, len(whole.rstrip())):
        *found, last = of(tmp_path, whole[:size])
        assert len(found) == sum(size >= place for place in closed)
        assert [end[0] for end in found] == ["Record"] * len(found)
        assert last[0] == "DeadLetter" and last[2] == "invalid JSON"


def test_items_before_the_damage_of_a_compressed_file(tmp_path):
    packed = gzip.compress(LAYOUTS["a line each"].encode() * 1, 0)
    cut = packed.index(b"ccccc")
    assert of(tmp_path, packed[:cut]) == [
        KEPT[0], ("Record", 2, "bbbbb"), ("DeadLetter", None, "truncated gzip")]
    assert of(tmp_path, packed[:-6] + b"\0" + packed[-5:])[3:] == [
        ("DeadLetter", None, "corrupt gzip")]


def test_what_is_no_array_is_none_in_a_damaged_file_either(tmp_path):
    packed = gzip.compress(b'{"text": "aaaaa"}\n{"text": "bbbbb"}')
    assert of(tmp_path, packed[:-4]) == [("DeadLetter", None, "truncated gzip")]


def test_numbers_of_any_length(tmp_path):
    number = "9" * 10_000
    data = f'[{{"n": {number}, "text": "aaaaa"}}, {{"n": -{number}, "text": "bbbbb"}}]'.encode()
    (tmp_path / "a.json").write_bytes(data)
    assert ends(read(tmp_path, limit=1 << 20, format="json")) == [
        ("Record", 1, "aaaaa"), ("Record", 2, "bbbbb")]


@pytest.mark.parametrize("piece", [
    b"\n[", b"\n{", b'\n"', b'\n{"a":', b"[", b'"\\', b"\n[1,", b"},", b"{a},", b"\n{a",
    b"\n[[[[[[[[[[[[[[[]", b"\n 1 x", b"\n[" * 900 + b"1," * 600_000])
def test_time_is_linear(tmp_path, piece):
    (tmp_path / "a.json").write_bytes(b"[" + piece * max(1, 500_000 // len(piece)))
    begin = time.process_time()
    for _ in read(tmp_path, limit=1 << 22, format="json"):
        pass
    assert time.process_time() - begin < 20


@hypothesis.given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), min_size=1, max_size=9),
    st.integers(0), st.binary())
@hypothesis.settings(
    deadline=None, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
def test_whatever_stands_on_a_line_costs_its_item(tmp_path, texts, which, stretch):
    """But for a line break and for brackets that the items behind may stand in."""
    which %= len(texts)
    lines = [json.dumps({"text": text}).encode() for text in texts]
    lines[which] = b'{"text": ' + stretch.translate(None, b"\r\n[{") + b"}"
    found = of(tmp_path, b"[\n" + b",\n".join(lines) + b"\n]")
    records = [text for kind, number, text in found if kind == "Record" and number != which + 1]
    good = texts[:which] + texts[which + 1:]
    assert records[:which] == good[:which]
    assert records[len(records) - (len(good) - which):] == good[which:]
