"""JSON lines and arrays: a bad value costs itself, and each value has one outcome."""

import bz2
import gzip
import hashlib
import json
import time
import tracemalloc

import hypothesis
import pytest
import zstandard
from hypothesis import strategies as st

from data_beam.base.records import DeadLetter
from data_beam.readers import streams
from data_beam.readers.json_records import lines
from tests.data_beam.readers.reading import LIMIT, outcomes, read

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
JSONL_OUTCOMES = [
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
    assert outcomes(items) == JSONL_OUTCOMES
    assert items[0].bytes_sha256 == hashlib.sha256(b'{"text": "first"}').hexdigest()


def test_deeply_nested_json_is_a_dead_letter(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"[" * 900 + b"\n")
    assert outcomes(read(tmp_path)) == [("DeadLetter", 1, "invalid JSON")]


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


def flipped(packed: bytes, place: int = -6) -> bytes:
    data = bytearray(packed)
    data[place] ^= 1
    return bytes(data)


TWO = ["one", "two"]
TWO_LINES = b'{"text": "one"}\n{"text": "two"}\n'


@pytest.mark.parametrize("compress", [
    gzip.compress, bz2.compress, zstandard.ZstdCompressor(write_checksum=True).compress],
    ids=["gzip", "bzip2", "zstd"])
@pytest.mark.parametrize("members, bad, texts", [
    ([[1, 2], [3, 4], [5, 6]], 1, [1, 2, 5, 6]),
    ([[1, 2], [3, 4], [5, 6]], 0, [3, 4, 5, 6]),
    ([[1, 2], [3, 4], [5, 6]], 2, [1, 2, 3, 4]),
    ([[1, 2, 3, 4]], 0, []),
    ([[1], [2], [3], [4]], 2, [1, 2, 4])])
def test_lines_of_a_damaged_member_are_not_used_and_others_are(
        tmp_path, compress, members, bad, texts):
    """Not one garbled line of it, wherever the bit is; one dead letter."""
    packed = [compress(b"".join(b'{"text": "%d and words that compress"}\n' % number
                                for number in numbers)) for numbers in members]
    for place in range(-len(packed[bad]) + 12, -4, 5):
        (tmp_path / "a").write_bytes(b"".join(
            flipped(data, place) if i == bad else data for i, data in enumerate(packed)))
        items = read(tmp_path)
        letters = [item for item in items if isinstance(item, DeadLetter)]
        found = [int(item.text.split()[0]) for item in items if item not in letters]
        if found == [number for numbers in members for number in numbers]:
            continue  # a bit without a meaning
        assert found == texts, place
        letter, = letters
        assert letter.origin.record is None and "the file is damaged" in letter.detail


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
    with open(path, "wb") as handle:
        handle.write(b"before\n")
        for _ in range(80):
            handle.write(b"x" * 2**20)
        handle.write(b"\nafter\n")
    tracemalloc.start()
    got = list(lines(streams.pieces(str(path)), 2**20))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [line.content for line in got] == [b"before", None, b"after"]
    assert got[1].size == 80 * 2**20
    assert peak < 16 * 2**20


A, B, C = ({"text": name * 5} for name in "abc")
KEPT = [("Record", 1, "aaaaa"), ("Record", 3, "ccccc")]


def of(tmp_path, data: bytes):
    (tmp_path / "a.json").write_bytes(data)
    return outcomes(read(tmp_path, format="json"))


def test_items_are_records(tmp_path):
    assert of(tmp_path, json.dumps(["one", {"text": "two"}, 3]).encode()) == [
        ("Record", 1, "one"), ("Record", 2, "two"), ("DeadLetter", 3, "missing field")]


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
def test_a_bad_item_costs_itself(tmp_path, monkeypatch, layout, good, bad, reason):
    whole = LAYOUTS[layout].encode()
    assert whole.count(good) == 1
    (tmp_path / "a.json").write_bytes(whole.replace(good, bad))
    assert outcomes(read(tmp_path, limit=1 << 20, format="json")) == [
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
    bad_sum = packed[:-6] + bytes([packed[-6] ^ 1]) + packed[-5:]
    assert of(tmp_path, bad_sum) == [("DeadLetter", None, "corrupt gzip")]
    assert of(tmp_path, gzip.compress(b'["aaaaa",') + bad_sum) == [
        KEPT[0], ("DeadLetter", None, "corrupt gzip")]
    no_array = gzip.compress(b'{"text": "aaaaa"}\n{"text": "bbbbb"}')
    assert of(tmp_path, no_array[:-4]) == [("DeadLetter", None, "truncated gzip")]


def test_numbers_of_any_length(tmp_path):
    number = "9" * 10_000
    data = f'[{{"n": {number}, "text": "aaaaa"}}, {{"n": -{number}, "text": "bbbbb"}}]'.encode()
    (tmp_path / "a.json").write_bytes(data)
    assert outcomes(read(tmp_path, limit=1 << 20, format="json")) == [
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
