"""Bytes of a file: compression by content, checksums before use, damage named, bounded memory."""

import bz2
import gzip
import random
import time
import tracemalloc
import zlib

import pytest
import zstandard

from data_beam.readers import streams

TEXT = b"".join(b"line %d of some text\n" % i for i in range(20_000))
PARTS = [TEXT[i * 20_000:(i + 1) * 20_000] for i in range(5)]


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def stored(data: bytes) -> bytes:
    """gzip without compression: a flipped byte leaves a valid stream with a wrong checksum."""
    encoder = zlib.compressobj(level=0, wbits=31)
    return encoder.compress(data) + encoder.flush()


FORMATS = {"gzip": gzip.compress, "zstd": zstd, "bzip2": bz2.compress, "stored": stored}
EACH_FORMAT = pytest.mark.parametrize("form", FORMATS)


@pytest.fixture(params=[streams.HELD_BYTES, 1000], ids=["held", "read twice"])
def held(request, monkeypatch):
    """Units that wait in memory for their checksum, and units that are decompressed twice."""
    monkeypatch.setattr(streams, "HELD_BYTES", request.param)


def collect(path) -> list[bytes | str]:
    """Content between the gaps, and the reason of each gap."""
    got: list[bytes | str] = [b""]
    for piece in streams.pieces(str(path)):
        if isinstance(piece, streams.Gap):
            got += [piece.reason, b""]
        else:
            got[-1] += piece
    return got


WHOLE = {
    "plain": lambda data: data,
    "gzip": gzip.compress,
    "gzip members": lambda data: gzip.compress(data[:1000]) + gzip.compress(data[1000:]),
    "gzip padded": lambda data: (gzip.compress(data[:1000]) + b"\0" * 700
                                 + gzip.compress(data[1000:]) + b"\0" * 5),
    "zstd": zstd,
    "zstd frames": lambda data: zstandard.compress(data[:1000]) + zstandard.compress(data[1000:]),
    "bzip2": bz2.compress,
    "bzip2 streams": lambda data: (bz2.compress(data[:1000]) + bz2.compress(b"")
                                   + bz2.compress(data[1000:])),
    "bzip2 empty first": lambda data: bz2.compress(b"") + bz2.compress(data)}


@pytest.mark.parametrize("compress", WHOLE.values(), ids=WHOLE)
def test_whole_files_come_back_whatever_their_name(tmp_path, compress, held):
    path = tmp_path / "name-says-nothing.txt"
    path.write_bytes(compress(TEXT))
    assert collect(path) == [TEXT]
    assert streams.read_all(str(path), len(TEXT)) == TEXT
    assert streams.read_all(str(path), len(TEXT) - 1) is None


def test_text_that_only_begins_like_bzip2_is_text(tmp_path):
    (tmp_path / "text").write_bytes(b"BZh9 is how a bzip2 file begins.")
    assert collect(tmp_path / "text") == [b"BZh9 is how a bzip2 file begins."]


@pytest.mark.parametrize("form, before", [
    ("gzip", b""), ("zstd", b""), ("bzip2", b""), ("gzip", PARTS[0])])
def test_a_file_cut_short_gives_its_beginning_and_is_named(tmp_path, form, before, held):
    compress = FORMATS[form] if form != "bzip2" else lambda data: bz2.compress(data, 1)
    first = compress(before) if before else b""
    data = first + compress(TEXT)
    places = range(len(first) + 10, len(data))
    path = tmp_path / "cut"
    for cut in [places[0], len(data) // 2, *places[-9:], *random.Random(0).sample(places, 20)]:
        path.write_bytes(data[:cut])
        got, reason, rest = collect(path)
        assert reason == f"truncated {form}" and rest == b"", cut
        assert (before + TEXT).startswith(got) and got.startswith(before)
        assert cut != len(data) // 2 or len(got) > len(TEXT) // 4
    with pytest.raises(streams.DamagedFile, match="truncated"):
        streams.read_all(str(path), 10**7)


@EACH_FORMAT
@pytest.mark.parametrize("bad", [0, 2, 4])
def test_a_flipped_bit_costs_its_unit_and_no_other(tmp_path, form, bad, held):
    """Nothing of the unit is used, and reading goes on at the next one."""
    units = [FORMATS[form](part) for part in PARTS]
    path = tmp_path / "flipped"
    generator = random.Random(bad)
    for place in [len(units[bad]) - 6, *generator.sample(range(10, len(units[bad])), 15)]:
        broken = bytearray(units[bad])
        broken[place] ^= 1 << generator.randrange(8)
        path.write_bytes(b"".join([*units[:bad], broken, *units[bad + 1:]]))
        got = collect(path)
        if got == [b"".join(PARTS)]:
            continue  # a bit without a meaning
        before, reason, after = got
        assert (before, after) == (b"".join(PARTS[:bad]), b"".join(PARTS[bad + 1:])), place
        assert reason.split()[0] == "corrupt" or (bad == 4 and form in ("zstd", "bzip2"))
    with pytest.raises(streams.DamagedFile):
        list(streams.chunks(str(path)))


@pytest.mark.parametrize("size", [300, 5_000, len(TEXT)])
def test_no_flipped_bit_makes_a_member_look_cut_short(tmp_path, size):
    """A decoder that misses the end of the last member would give garbled bytes."""
    data = gzip.compress(TEXT[:size])
    generator = random.Random(size)
    for _ in range(400):
        broken = bytearray(data)
        broken[generator.randrange(10, len(data))] ^= 1 << generator.randrange(8)
        (tmp_path / "flipped").write_bytes(broken)
        assert collect(tmp_path / "flipped") in ([TEXT[:size]], [b"", "corrupt gzip", b""])


def test_damage_of_several_members_and_of_the_last(tmp_path):
    a, b, c, d, e = (gzip.compress(part) for part in PARTS)
    broken = c[:100] + b"\xff" * 8 + c[108:]
    for data, expected in (
            (a + broken + c + broken + e, [PARTS[0], "corrupt gzip", PARTS[2], "corrupt gzip",
                                           PARTS[4]]),
            (broken + broken + b, [b"", "corrupt gzip", PARTS[1]]),
            (a + broken + d[:-20], [PARTS[0], "corrupt gzip", b""]),
            (broken + a + d[:-4], [b"", "corrupt gzip", PARTS[0] + PARTS[3], "truncated gzip",
                                   b""]),
            (a + b"not gzip", [PARTS[0], "corrupt gzip", b""]),
            (a + b"not gzip" + b, [PARTS[0], "corrupt gzip", PARTS[1]])):
        (tmp_path / "members").write_bytes(data)
        assert collect(tmp_path / "members") == expected


def test_the_next_member_is_found_over_a_read_boundary(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "READ_BYTES", 64)
    first, second = gzip.compress(b"one" * 50), gzip.compress(b"two" * 50)
    for padding in range(60, 70):
        (tmp_path / "members").write_bytes(first[:-4] + b"\xee" * (4 + padding) + second)
        assert collect(tmp_path / "members") == [b"", "corrupt gzip", b"two" * 50], padding


def test_time_is_linear_in_bytes_that_look_like_members(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "_MAX_REREAD_BYTES", 1 << 20)
    head = gzip.compress(b"")[:10]
    block = b"\x00\xff\xff\x00\x00" + head * 6553 + head[:5]  # a stored block of 65,535 bytes
    (tmp_path / "members").write_bytes(head + block * 100 + b"\xff" * 100)
    begin = time.process_time()
    assert collect(tmp_path / "members") == [b"", "corrupt gzip", b""]
    assert time.process_time() - begin < 20


@pytest.mark.parametrize("form", ["gzip", "zstd", "bzip2"])
def test_memory_is_bounded(tmp_path, form):
    path = tmp_path / "bomb"
    path.write_bytes(FORMATS[form](bytes(200 * 2**20)))
    tracemalloc.start()
    assert streams.read_all(str(path), 10 * 2**20) is None
    assert sum(map(len, streams.chunks(str(path)))) == 200 * 2**20
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 160 * 2**20
