"""JSON lines and arrays: a bad value costs itself, and each value has one outcome."""

import gzip
import json
import time
import tracemalloc

import hypothesis
import pytest
from hypothesis import strategies as st

from data_beam.base.records import DeadLetter
from data_beam.readers import streams
from data_beam.readers.json_records import lines
from tests.data_beam.readers.reading import LIMIT, outcomes, read


def flipped(packed: bytes) -> bytes:
    """With a wrong checksum."""
    return packed[:-6] + bytes([packed[-6] ^ 1]) + packed[-5:]


TWO = ["one", "two"]
TWO_LINES = b'{"text": "one"}\n{"text": "two"}\n'


@pytest.mark.parametrize("members, expected", [
    # Lines that span members: a part of a line is no record, and no dead letter of its own.
    ([b'{"text": "one"}\n{"te', None, b'e"}\n{"text": "two"}\n'], TWO),
    ([b'{"text": "one"}\n"a \\', None, b'"}\n{"text": "two"}'], TWO),
    ([b'{"text": "one"}\n{"a": [1, ', None, b'12\n{"text": "two"}'], TWO),
    # The line next to the damage is used where it is whole.
    ([b'{"text": "one"}', None, b'{"text": "two"}\n'], TWO),
    ([b'"one"', None, b'\n"two"'], TWO),
    ([None, b'"one"\n"two"'], TWO),
    ([b'"' + b"x" * LIMIT, None, b'x"\n"one"\n'], ["one"]),
])
def test_lines_next_to_a_damaged_member(tmp_path, members, expected):
    (tmp_path / "a").write_bytes(b"".join(
        flipped(gzip.compress(b"lost")) if data is None else gzip.compress(data)
        for data in members))
    items = read(tmp_path)
    assert [item.text for item in items if not isinstance(item, DeadLetter)] == expected
    assert [(item.reason, item.origin.record) for item in items
            if isinstance(item, DeadLetter)] == [("corrupt gzip", None)]


@pytest.mark.parametrize("cut, last, text", [
    *((4, last, "three") for last in (b'{"text": "three"}', b'"three"', b'{"text": "three"}\n')),
    *((8, last, None) for last in (b'{"text": "thr', b'{"text": "three"', b'"thr', b"12", b"tru",
                                   b"\xe8", b'{"text": "' + b"x" * LIMIT))])
def test_the_last_line_of_a_file_cut_short_is_used_where_it_is_whole(tmp_path, cut, last, text):
    (tmp_path / "a").write_bytes(gzip.compress(TWO_LINES + last, 0)[:-cut])
    third = [("Record", 3, text)] if text else []
    assert outcomes(read(tmp_path)) == [
        ("Record", 1, "one"), ("Record", 2, "two"), *third, ("DeadLetter", None, "truncated gzip")]


@pytest.mark.parametrize("record, words", [
    ({"body": "x", "id": 1}, "'text' is not there; found: 'body', 'id'"),
    ({"Text": "x"}, "found: 'Text'"), ({}, "there are no fields"),
    ({str(i): i for i in range(13)}, "'11', ..."), ({"text": 7, "body": "x"}, "is not a text"),
    ({"text": None}, "'text' is not a text"), (7, "a value of type int has no field 'text'")])
@pytest.mark.parametrize("format", ["jsonl", "json"])
def test_a_missing_field_is_told_with_those_that_are_there(tmp_path, format, record, words):
    value = json.dumps(record)
    (tmp_path / "a").write_text(value if format == "jsonl" else f"[{value}]")
    item, = read(tmp_path, format=format)
    assert (item.reason, item.origin.record) == ("missing field", 1) and words in item.detail


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path):
    (tmp_path / "a").write_bytes(b'\xef\xbb\xbf"one"\n"two"')
    assert outcomes(read(tmp_path)) == [("Record", 1, "one"), ("Record", 2, "two")]


def split(data: bytes, limit: int, piece: int) -> list:
    return list(lines((data[i:i + piece] for i in range(0, len(data), piece)), limit))


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 1000])
def test_lines_agree_with_pythons_split_however_the_bytes_arrive(piece):
    data = "α\nb\r\n\n\nlong line here\nlast without end".encode()
    truth = [line.removesuffix(b"\r") for line in data.split(b"\n")]
    got = split(data, 100, piece)
    assert [line.content for line in got] == truth
    assert [line.number for line in got] == list(range(1, len(truth) + 1))


@pytest.mark.parametrize("piece", [1, 5, 1000])
def test_a_line_over_the_cap_loses_its_content_and_no_other(piece):
    got = split(b"ok\n" + b"x" * 50 + b"\nfine\n", 10, piece)
    assert [(line.content, line.size) for line in got] == [(b"ok", 2), (None, 50), (b"fine", 4)]


def test_a_line_of_80_megabytes_takes_bounded_memory(tmp_path):
    path = tmp_path / "long.jsonl"
    path.write_bytes(b"before\n" + b"x" * (80 * 2**20) + b"\nafter\n")
    tracemalloc.start()
    got = list(lines(streams.pieces(str(path)), 2**20))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [line.content for line in got] == [b"before", None, b"after"]
    assert got[1].size == 80 * 2**20
    assert peak < 16 * 2**20


A, B, C = ({"text": name * 5} for name in "abc")
KEPT = [("Record", 1, "aaaaa"), ("Record", 3, "ccccc")]


def of(tmp_path, data: bytes, limit: int = LIMIT):
    (tmp_path / "a.json").write_bytes(data)
    return outcomes(read(tmp_path, limit, format="json"))


@pytest.mark.parametrize("data, outcome", [
    (b"{}", ("DeadLetter", None, "invalid JSON")),
    (b'{"text": "a"}\n{"text": "b"}', ("DeadLetter", None, "invalid JSON")),
    (b'["cut', ("DeadLetter", 1, "invalid JSON")),
    (b'["\xff"]', ("DeadLetter", 1, "bad encoding")),
    (b"[]", ("Dropped", None, "empty file")),
    (b"\xef\xbb\xbf [ \n] \n", ("Dropped", None, "empty file")),
    (b"[", ("DeadLetter", None, "invalid JSON")),
    (b'["' + b"x" * LIMIT + b'"]', ("DeadLetter", None, "too large")),
])
def test_files_of_one_outcome(tmp_path, data, outcome):
    assert of(tmp_path, data) == [outcome]


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
def test_a_bad_item_costs_itself(tmp_path, layout, good, bad, reason):
    whole = LAYOUTS[layout].encode()
    assert whole.count(good) == 1
    assert of(tmp_path, whole.replace(good, bad), 1 << 20) == [
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
    assert outcomes([first, second]) == [KEPT[0], ("DeadLetter", 2, "invalid JSON")]
    assert second.detail.endswith("; what follows it is not read")


@pytest.mark.parametrize("data, second", [
    (b'["aaaaa", "bbbbb", ]', ("Record", 2, "bbbbb")),
    (b'["aaaaa" "bbbbb"]', ("Record", 2, "bbbbb")),
    (b'["aaaaa",,"bbbbb"]', ("Record", 2, "bbbbb")),
    (b'["aaaaa"] ["bbbbb"]', ("DeadLetter", None, "invalid JSON"))])
def test_commas_do_not_matter_and_the_end_does(tmp_path, data, second):
    assert of(tmp_path, data) == [KEPT[0], second]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_cut_anywhere(tmp_path, layout):
    """Items before the cut are records, and the cut is one dead letter."""
    whole = LAYOUTS[layout].encode()
    closed = [whole.index(word) + len(word) for word in (b"aaaaa", b"bbbbb", b"ccccc")]
    closed = [whole.index(b"}", place) + 1 for place in closed]
    for size in range(1, len(whole.rstrip())):
        *found, last = of(tmp_path, whole[:size])
        assert len(found) == sum(size >= place for place in closed)
        assert [each[0] for each in found] == ["Record"] * len(found)
        assert last[0] == "DeadLetter" and last[2] == "invalid JSON"


def test_arrays_in_a_damaged_compressed_file(tmp_path):
    """Items before the damage are used where the file is cut, and none of a corrupt member."""
    packed = gzip.compress(LAYOUTS["a line each"].encode(), 0)
    assert of(tmp_path, packed[:packed.index(b"ccccc")]) == [
        KEPT[0], ("Record", 2, "bbbbb"), ("DeadLetter", None, "truncated gzip")]
    assert of(tmp_path, flipped(packed)) == [("DeadLetter", None, "corrupt gzip")]
    assert of(tmp_path, gzip.compress(b'["aaaaa",') + flipped(packed)) == [
        KEPT[0], ("DeadLetter", None, "corrupt gzip")]
    no_array = gzip.compress(b'{"text": "aaaaa"}\n{"text": "bbbbb"}')
    assert of(tmp_path, no_array[:-4]) == [("DeadLetter", None, "truncated gzip")]


def test_numbers_of_any_length(tmp_path):
    number = "9" * 10_000
    data = f'[{{"n": {number}, "text": "aaaaa"}}, {{"n": -{number}, "text": "bbbbb"}}]'.encode()
    assert of(tmp_path, data, 1 << 20) == [("Record", 1, "aaaaa"), ("Record", 2, "bbbbb")]


@pytest.mark.parametrize("piece", [
    b"\n[", b"\n{", b'\n"', b'\n{"a":', b"[", b'"\\', b"\n[1,", b"},", b"{a},", b"\n{a",
    b"\n[[[[[[[[[[[[[[[]", b"\n 1 x", b"\n[" * 900 + b"1," * 600_000])
def test_time_is_linear(tmp_path, piece):
    begin = time.process_time()
    of(tmp_path, b"[" + piece * max(1, 500_000 // len(piece)), 1 << 22)
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
