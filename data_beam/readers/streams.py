"""Bytes of a file through Beam's file systems, decompressed by content, in bounded memory.

A compressed file is a row of units: gzip members, bzip2 streams, zstd frames. Each ends with a
checksum of its content (zstd's is optional), so:

- The content of a unit is used once its checksum is right. A unit of up to `HELD_BYTES` is held in
  memory until then; a larger one is decompressed twice, first to check it and then to use it.
- Nothing of a corrupt unit is used. Reading goes on at the next unit whose checksum is right.
- A unit that the end of the file cuts short has no checksum. Its content is used, because nothing
  speaks against it, and the file is reported as truncated.
"""

import bz2
import contextlib
import dataclasses
import math
import re
import zlib
from collections.abc import Callable, Generator, Iterator
from typing import Any, BinaryIO

import zstandard

from data_beam.base import files
from data_beam.base.records import ReasonedError

READ_BYTES = 1 << 20
HELD_BYTES = 1 << 24  # decompressed bytes of a unit that wait in memory for its checksum
ZSTD_READ_BYTES = 1 << 11  # zstd has no output bound: 2 KiB of input can make about 64 MiB
_PIECE_BYTES = 1 << 14
_MAX_REREAD_BYTES = 1 << 26

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


@dataclasses.dataclass(frozen=True)
class _Format:
    """A compression format."""

    name: str
    magic: re.Pattern[bytes]  # how a file of it begins
    unit: re.Pattern[bytes]  # how each of its units begins
    unit_bytes: int  # length of the longest match of `unit`
    decoder: Callable[[], Any]  # makes a decoder of one unit
    decode: Callable[[Any, bytes], bytes]  # decoder, compressed bytes -> decompressed bytes
    errors: tuple[type[Exception], ...]  # what the decoder raises for corrupt bytes
    piece_bytes: int = _PIECE_BYTES  # compressed bytes to decode at once
    padding: bytes = b""  # bytes that may stand between units


_ZSTD_UNIT = re.compile(re.escape(ZSTD_MAGIC))
# With the first block's or the end's mark: three letters alone may begin a text.
_BZIP2_UNIT = re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)")
_FORMATS = (
    _Format("gzip", re.compile(GZIP_MAGIC), re.compile(rb"\x1f\x8b\x08[\x00-\x1f]"), 4,
            lambda: zlib.decompressobj(wbits=31),
            lambda decoder, data: decoder.decompress(data, READ_BYTES), (zlib.error,),
            padding=b"\0"),
    _Format("zstd", _ZSTD_UNIT, _ZSTD_UNIT, 4,
            lambda: zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj(),
            lambda decoder, data: decoder.decompress(data), (zstandard.ZstdError,),
            piece_bytes=ZSTD_READ_BYTES),
    _Format("bzip2", _BZIP2_UNIT, _BZIP2_UNIT, 10, bz2.BZ2Decompressor,
            lambda decoder, data: decoder.decompress(data, READ_BYTES), (OSError, ValueError)),
)


class DamagedFile(ReasonedError):
    """The file is corrupt or cut short; what was yielded before may be used."""


@dataclasses.dataclass(frozen=True)
class Gap:
    """A place where content is missing because the file is damaged."""

    reason: str  # of the dead letter
    detail: str  # of the dead letter
    is_end: bool = False  # the file is cut short here


class _BadUnit(Exception):
    """A unit is corrupt or cut short (`is_cut`). It was decoded up to `position` of the file."""

    def __init__(self, detail: str, position: int, is_cut: bool = False):
        super().__init__(detail)
        self.position, self.is_cut = position, is_cut


class _Bytes:
    """The bytes of a file at any position; the block that was read last is kept."""

    def __init__(self, handle: BinaryIO):
        self._handle, self._begin, self._block = handle, 0, b""
        self.reread = 0  # compressed bytes that were decoded in vain

    def at(self, position: int, size: int = _PIECE_BYTES) -> bytes:
        """Up to `size` bytes at a position, at least one but for the end of the file."""
        end = self._begin + len(self._block)
        if not self._begin <= position < end:
            if position != end:
                self._handle.seek(position)
            self._begin, self._block = position, self._handle.read(READ_BYTES)
        start = position - self._begin
        return self._block[start:start + size]

    def find(self, pattern: re.Pattern[bytes], longest: int, position: int) -> int | None:
        """Where a pattern of up to `longest` bytes first matches from a position on."""
        tail = b""
        while block := self.at(position, READ_BYTES):
            found = pattern.search(tail + block)
            if found:
                return position - len(tail) + found.start()
            position += len(block)
            tail = (tail + block)[-longest + 1:]
        return None


def _unit(source: _Bytes, form: _Format, position: int) -> Iterator[tuple[bytes, int]]:
    """Decodes the unit at a position: its content in pieces, each with the position behind its
    compressed bytes; the last is empty and has the position behind the unit. Raises _BadUnit after
    the pieces that could be decoded."""
    decoder = form.decoder()
    size, last = 0, b""
    while not decoder.eof:
        wants_input = getattr(decoder, "needs_input", True)
        piece = source.at(position, form.piece_bytes) if wants_input else b""
        try:
            chunk = form.decode(decoder, piece)
        except form.errors as error:
            raise _BadUnit(f"near compressed byte {position}: {error}",
                           position + len(piece)) from None
        position += len(piece) - len(getattr(decoder, "unconsumed_tail", b""))
        size, last = size + len(chunk), (last + piece[-4:])[-4:]
        if chunk:
            yield chunk, position
        elif wants_input and not piece and not decoder.eof:
            if form.name == "gzip" and _is_trailer(last, size):
                raise _BadUnit("the content does not end where the member does", position)
            raise _BadUnit("the file ends before its checksum", position, is_cut=True)
    yield b"", position - len(decoder.unused_data)


def _is_trailer(last: bytes, size: int) -> bool:
    """Whether the last bytes of a gzip file say that it has about the size that was decoded.

    Then the member is whole, and a flipped bit made the decoder miss its end.
    """
    difference = abs(int.from_bytes(last, "little") - size % 2**32)
    return size > 0 and difference <= min(1 << 16, max(512, size // 8))


def _checked(source: _Bytes, form: _Format, position: int, at: Callable[[int], None],
             limit: float) -> Generator[bytes, None, int]:
    """The content of the unit at a position, once its checksum is right; returns the position
    behind it. Raises _BadUnit before anything is yielded."""
    held, size, end = [], 0, position
    for chunk, end in _unit(source, form, position):
        size += len(chunk)
        if size > limit:
            break
        if size <= HELD_BYTES:
            held.append((chunk, end))
        else:
            held.clear()
    is_held = size <= min(HELD_BYTES, limit)
    for chunk, end in held if is_held else _unit(source, form, position):
        if chunk:
            yield chunk
        at(end)
    return end


def _next_good(source: _Bytes, form: _Format, position: int) -> int | None:
    """The first position from here on where a unit begins whose checksum is right."""
    while (found := source.find(form.unit, form.unit_bytes, position)) is not None:
        try:
            for _ in _unit(source, form, found):
                pass
            return found
        except _BadUnit as error:
            position = found + 1
            # Bytes in a corrupt unit may look like the beginnings of others, each decoded in vain.
            # Past a bound the search no longer goes back, so that time is linear in the file.
            source.reread += error.position - found
            if source.reread > _MAX_REREAD_BYTES:
                position = max(position, error.position)
    return None


def _units(source: _Bytes, form: _Format, at: Callable[[int], None], limit: float,
           begin: Callable[[int], None]) -> Iterator[bytes | Gap]:
    position = 0
    while piece := source.at(position):
        content = piece.lstrip(form.padding) if form.padding else piece
        if len(content) < len(piece):
            position += len(piece) - len(content)
            continue
        begin(position)
        try:
            position = yield from _checked(source, form, position, at, limit)
            continue
        except _BadUnit as error:
            damage = error
        following = _next_good(source, form, position + 1)
        if following is None and damage.is_cut:
            with contextlib.suppress(_BadUnit):
                for chunk, end in _unit(source, form, position):
                    yield chunk
                    at(end)
            yield Gap(f"truncated {form.name}", str(damage), is_end=True)
            return
        yield Gap(f"corrupt {form.name}", f"{damage}; " + (
            "nothing behind it can be read" if following is None else
            f"reading goes on at compressed byte {following}"))
        if following is None:
            return
        position = following


def pieces(path: str, at: Callable[[int], None] = lambda position: None, limit: float = math.inf,
           begin: Callable[[int], None] = lambda position: None) -> Iterator[bytes | Gap]:
    """Decompressed pieces of a file on any file system that Beam knows, with a `Gap` wherever
    content is missing.

    `at` is told how many bytes of the file lie behind, each time before more are read; `begin` is
    told where each unit begins in the file, before its first piece comes. The caller takes no more
    bytes than `limit`; a unit that has more is not checked.
    """
    with files.open_raw(path) as raw:
        source = _Bytes(raw)
        head = source.at(0)
        form = next((form for form in _FORMATS if form.magic.match(head)), None)
        if form is not None:
            yield from _units(source, form, at, limit, begin)
            return
        position = 0
        while piece := source.at(position, READ_BYTES):
            yield piece
            position += len(piece)
            at(position)


def chunks(path: str, limit: float = math.inf) -> Iterator[bytes]:
    """`pieces` up to the first gap, for which it raises DamagedFile."""
    for piece in pieces(path, limit=limit):
        if isinstance(piece, Gap):
            raise DamagedFile(piece.reason, piece.detail)
        yield piece


def read_all(path: str, limit: int) -> bytes | None:
    """The whole decompressed file, or None when it is larger than `limit` bytes. Raises DamagedFile
    if content is missing."""
    parts, size = [], 0
    for chunk in chunks(path, limit=limit):
        size += len(chunk)
        if size > limit:
            return None
        parts.append(chunk)
    return b"".join(parts)
