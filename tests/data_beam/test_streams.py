"""Bytes in: compression by content, damage reported, lines in bounded memory and linear time."""

import bz2
import gzip
import random
import tracemalloc
import zlib

import pytest
import zstandard

from data_beam.readers import streams

TEXT = b"".join(b"line %d of some text\n" % i for i in range(20_000))


def collect(path) -> tuple[bytes, str | None]:
    """What could be had of a file, and the reason it is damaged."""
    got = []
    try:
        for piece in streams.chunks(str(path)):
            got.append(piece)
    except streams.DamagedFile as error:
        return b"".join(got), error.reason
    return b"".join(got), None


@pytest.mark.parametrize("compress", [
    lambda data: data,
    gzip.compress,
    lambda data: gzip.compress(data[:1000]) + gzip.compress(data[1000:]),
    lambda data: gzip.compress(data[:1000]) + b"\0" * 700 + gzip.compress(data[1000:]) + b"\0" * 5,
    zstandard.ZstdCompressor(write_checksum=True).compress,
    lambda data: zstandard.compress(data[:1000]) + zstandard.compress(data[1000:]),
    bz2.compress,
    lambda data: bz2.compress(data[:1000]) + bz2.compress(b"") + bz2.compress(data[1000:]),
    lambda data: bz2.compress(b"") + bz2.compress(data),
], ids=["plain", "gzip", "gzip members", "gzip padded", "zstd", "zstd frames", "bzip2",
        "bzip2 streams", "bzip2 empty first"])
def test_whole_files_come_back_whatever_their_name(tmp_path, compress):
    path = tmp_path / "name-says-nothing.txt"
    path.write_bytes(compress(TEXT))
    assert collect(path) == (TEXT, None)
    assert streams.read_all(str(path), len(TEXT)) == TEXT
    assert streams.read_all(str(path), len(TEXT) - 1) is None


@pytest.mark.parametrize("compress, reason", [(gzip.compress, "truncated gzip"),
                                              (zstandard.compress, "truncated zstd"),
                                              (lambda data: bz2.compress(data, 1),
                                               "truncated bzip2")])
def test_every_cut_of_a_compressed_file_is_noticed(tmp_path, compress, reason):
    data = compress(TEXT)
    generator = random.Random(0)
    cuts = [10, len(data) // 2, len(data) - 1, *(generator.sample(range(10, len(data)), 20))]
    for cut in cuts:
        path = tmp_path / "cut"
        path.write_bytes(data[:cut])
        got, found = collect(path)
        assert found == reason, cut
        assert TEXT.startswith(got)
    path.write_bytes(data[:len(data) // 2])
    assert len(collect(path)[0]) > len(TEXT) // 4  # half a file gives about half its text


def test_a_second_member_that_is_cut_is_noticed(tmp_path):
    path = tmp_path / "two"
    path.write_bytes(gzip.compress(TEXT) + gzip.compress(TEXT)[:-6])
    got, reason = collect(path)
    assert got.startswith(TEXT) and reason == "truncated gzip"


def test_a_flipped_byte_is_noticed_by_the_checksum(tmp_path):
    # Stored blocks: the flip leaves a valid stream, only the CRC can tell.
    encoder = zlib.compressobj(level=0, wbits=31)
    data = bytearray(encoder.compress(TEXT) + encoder.flush())
    data[len(data) // 2] ^= 1
    path = tmp_path / "flipped"
    path.write_bytes(data)
    got, reason = collect(path)
    assert reason == "corrupt gzip" and len(got) == len(TEXT)
    assert sum(a != b for a, b in zip(got, TEXT, strict=True)) == 1


@pytest.mark.parametrize("size", [100, 5_000, len(TEXT)])
def test_what_comes_before_a_wrong_checksum_is_used(tmp_path, size):
    data = bytearray(gzip.compress(TEXT[:size]))
    data[-6] ^= 1
    path = tmp_path / "wrong"
    path.write_bytes(data)
    assert collect(path) == (TEXT[:size], "corrupt gzip")
    path.write_bytes(gzip.compress(TEXT) + data)
    assert collect(path) == (TEXT + TEXT[:size], "corrupt gzip")


def test_a_flipped_byte_in_bzip2_is_noticed_wherever_it_is(tmp_path):
    data = bz2.compress(TEXT, 1)
    path = tmp_path / "flipped"
    for place in random.Random(1).sample(range(10, len(data)), 20):
        flipped = bytearray(data)
        flipped[place] ^= 1 << place % 8
        path.write_bytes(flipped)
        got, reason = collect(path)
        assert reason in ("corrupt bzip2", "truncated bzip2"), place
        assert TEXT.startswith(got[:50_000])


def test_text_that_only_begins_like_bzip2_is_text(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"BZh9 is how a bzip2 file begins.")
    assert collect(path) == (b"BZh9 is how a bzip2 file begins.", None)


def pieces_and_gaps(path) -> list[bytes | str]:
    """What is between the gaps, and the reason of each gap or of the end."""
    got: list[bytes | str] = [b""]
    try:
        for piece in streams.chunks_and_gaps(str(path)):
            if isinstance(piece, streams.Gap):
                got += [piece.reason, b""]
            else:
                got[-1] += piece
    except streams.DamagedFile as error:
        got.append(error.reason)
    return got


def test_reading_goes_on_behind_a_corrupt_member(tmp_path):
    members = [gzip.compress(TEXT[i * 20_000:(i + 1) * 20_000]) for i in range(5)]
    broken = bytearray(members[2])
    broken[len(broken) // 2:len(broken) // 2 + 8] = b"\xff" * 8
    path = tmp_path / "members"
    path.write_bytes(members[0] + members[1] + bytes(broken) + members[3] + members[4])
    before, reason, after = pieces_and_gaps(path)
    assert reason == "corrupt gzip"
    assert before.startswith(TEXT[:40_000]) and TEXT[:60_000].startswith(before[:59_000])
    assert after == TEXT[60_000:100_000]
    assert collect(path)[1] == "corrupt gzip"  # `chunks` ends there
    path.write_bytes(members[0] + bytes(broken) + members[1][:-20])
    assert pieces_and_gaps(path)[-1] == "truncated gzip"
    path.write_bytes(members[0] + members[1][:-8] + b"\xff" * 8)  # a wrong checksum
    before, *rest = pieces_and_gaps(path)
    assert before.startswith(TEXT[:20_000]) and rest == ["corrupt gzip", b""]


def test_the_next_member_is_found_over_a_read_boundary(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "READ_BYTES", 64)
    first, second = gzip.compress(b"one" * 50), gzip.compress(b"two" * 50)
    path = tmp_path / "members"
    for padding in range(60, 70):
        path.write_bytes(first[:-4] + b"\xee" * 4 + b"\xee" * padding + second)
        assert pieces_and_gaps(path)[-1] == b"two" * 50, padding


def test_garbage_after_a_member_is_noticed(tmp_path):
    path = tmp_path / "tail"
    path.write_bytes(gzip.compress(TEXT) + b"not gzip")
    assert collect(path) == (TEXT, "corrupt gzip")


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress, bz2.compress],
                         ids=["gzip", "zstd", "bzip2"])
def test_a_bomb_is_refused_in_bounded_memory(tmp_path, compress):
    path = tmp_path / "bomb"
    path.write_bytes(compress(bytes(200 * 2**20)))
    tracemalloc.start()
    assert streams.read_all(str(path), 10 * 2**20) is None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 160 * 2**20


def split(data: bytes, limit: int, piece: int) -> list[streams.Line]:
    pieces = (data[i:i + piece] for i in range(0, len(data), piece))
    return list(streams.lines(pieces, limit))


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
    got = list(streams.lines(streams.chunks(str(path)), 2**20))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [line.content for line in got] == [b"before", None, b"after"]
    assert got[1].size == 80 * 2**20
    assert peak < 16 * 2**20
