"""Bytes of a file through Beam's file systems, decompressed by content, in bounded memory."""

import bz2
import dataclasses
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import zstandard
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

READ_BYTES = 1 << 20
ZSTD_READ_BYTES = 1 << 12
"""zstd's decompressor has no output bound; 4 KiB of input can make at most about 128 MiB."""

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# With the first block's or the end's mark: three letters alone may begin a text.
BZIP2_MAGIC = re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)")
_GZIP_MEMBER = b"\x1f\x8b\x08"


class DamagedFile(Exception):
    """The compressed stream ends early or is corrupt; what was yielded before came from it."""

    def __init__(self, reason: str, detail: str):
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


@dataclasses.dataclass(frozen=True)
class Gap:
    """A place where compressed bytes were corrupt and reading went on behind them."""

    reason: str
    detail: str


def open_raw(path: str) -> BinaryIO:
    """The file's own bytes, never decompressed by Beam."""
    return FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)


def _gzip(head: bytes, handle: "_Told", over_gaps: bool) -> Iterator[bytes | Gap]:
    """Inflates a gzip file of one or more members; zlib checks each member's CRC and length."""
    pending, position = head, len(head)
    decoder: Any = zlib.decompressobj(wbits=31)
    begun_before = False  # the member, before the bytes now pending
    while True:
        before = None if over_gaps else decoder.copy()
        try:
            chunk = decoder.decompress(pending, READ_BYTES)
        except zlib.error as error:
            detail = f"near compressed byte {position - len(pending)}: {error}"
            if before is not None:
                yield from _up_to_error(before, pending)
                raise DamagedFile("corrupt gzip", detail) from None
            yield Gap("corrupt gzip", detail)
            found = pending.find(_GZIP_MEMBER, 0 if begun_before else 1)
            while found < 0:
                block = handle.read(READ_BYTES)
                if not block:
                    return
                position += len(block)
                pending = pending[-2:] + block
                found = pending.find(_GZIP_MEMBER)
            pending = pending[found:]
            decoder, begun_before = zlib.decompressobj(wbits=31), False
            continue
        if chunk:
            yield chunk
        if decoder.eof:
            pending = decoder.unused_data.lstrip(b"\0")  # gzip allows zero padding after a member
            while not pending:
                block = handle.read(READ_BYTES)
                if not block:
                    return
                position += len(block)
                pending = block.lstrip(b"\0")
            decoder, begun_before = zlib.decompressobj(wbits=31), False
            continue
        begun_before = True
        pending = decoder.unconsumed_tail
        if not pending and not chunk:
            pending = handle.read(READ_BYTES)
            position += len(pending)
            if not pending:
                raise DamagedFile("truncated gzip", "the file ends before its checksum")


def _up_to_error(decoder: Any, pending: bytes) -> Iterator[bytes]:
    """What comes out before an error, which zlib keeps for itself: all of a file below a megabyte
    whose checksum is wrong."""
    for step in (4096, 64, 1):
        while pending:
            before = decoder.copy()
            try:
                chunk = decoder.decompress(pending[:step])
            except zlib.error:
                decoder = before
                break
            yield chunk
            pending = pending[step:]


def _bzip2(head: bytes, handle: "_Told") -> Iterator[bytes]:
    """Decompresses a bzip2 file of one or more streams; each block's CRC is checked."""
    pending, position = head, len(head)
    while pending:
        decoder = bz2.BZ2Decompressor()
        while not decoder.eof:
            if decoder.needs_input and not pending:
                pending = handle.read(READ_BYTES)
                position += len(pending)
                if not pending:
                    raise DamagedFile("truncated bzip2", "the file ends before its checksum")
            try:
                chunk = decoder.decompress(pending, READ_BYTES)
            except (OSError, ValueError) as error:
                raise DamagedFile(
                    "corrupt bzip2", f"near compressed byte {position}: {error}") from None
            pending = b""  # what is left of it is kept inside
            if chunk:
                yield chunk
        pending = decoder.unused_data or handle.read(READ_BYTES)


def _zstd(head: bytes, handle: "_Told") -> Iterator[bytes]:
    """Decompresses zstd frames; a frame's checksum is checked where it has one."""
    context = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    decoder: Any = None
    pending, position = head, 0
    while True:
        if not pending:
            pending = handle.read(READ_BYTES)
            position += len(pending)
            if not pending:
                if decoder is not None:
                    raise DamagedFile("truncated zstd", "the file ends inside a frame")
                return
        if decoder is None:
            decoder = context.decompressobj()
        piece, pending = pending[:ZSTD_READ_BYTES], pending[ZSTD_READ_BYTES:]
        try:
            chunk = decoder.decompress(piece)
        except zstandard.ZstdError as error:
            raise DamagedFile("corrupt zstd", f"near compressed byte {position}: {error}") from None
        if chunk:
            yield chunk
        if decoder.eof:
            pending = decoder.unused_data + pending
            decoder = None


class _Told:
    """A file that tells how far it was read."""

    def __init__(self, handle: BinaryIO, at: Callable[[int], None]):
        self._handle, self._at, self._position = handle, at, 0

    def read(self, size: int) -> bytes:
        self._at(self._position)  # what came before has been dealt with
        data = self._handle.read(size)
        self._position += len(data)
        return data


def chunks_and_gaps(path: str, at: Callable[[int], None] = lambda position: None,
                    over_gaps: bool = True) -> Iterator[bytes | Gap]:
    """`chunks`, but a corrupt member of a gzip file of many is no end: a `Gap` stands for it.

    Raises:
      DamagedFile: the file ends too early, or is corrupt where there is no telling how to go on.
    """
    with open_raw(path) as raw:
        handle = _Told(raw, at)
        head = handle.read(READ_BYTES)
        if head.startswith(GZIP_MAGIC):
            yield from _gzip(head, handle, over_gaps)
        elif head.startswith(ZSTD_MAGIC):
            yield from _zstd(head, handle)
        elif BZIP2_MAGIC.match(head):
            yield from _bzip2(head, handle)
        else:
            while head:
                yield head
                head = handle.read(READ_BYTES)


def chunks(path: str, at: Callable[[int], None] = lambda position: None) -> Iterator[bytes]:
    """Decompressed pieces of a file.

    Args:
      path: on any file system that Beam knows.
      at: told how many bytes of the file lie behind, each time before more are read.

    Raises:
      DamagedFile: after the pieces that could be had.
    """
    for piece in chunks_and_gaps(path, at, over_gaps=False):
        assert isinstance(piece, bytes)
        yield piece


def read_all(path: str, limit: int) -> bytes | None:
    """The whole decompressed file, or None when it is larger than `limit` bytes.

    Raises:
      DamagedFile: the stream cannot be decompressed to its end.
    """
    parts, size = [], 0
    for chunk in chunks(path):
        size += len(chunk)
        if size > limit:
            return None
        parts.append(chunk)
    return b"".join(parts)


@dataclasses.dataclass(frozen=True)
class Line:
    """Line `number` (from 1) without its line end, or only its `size` where it passed the cap.

    Where `cut`, the file was damaged behind it: it may not be all of the line.
    """

    number: int
    content: bytes | None
    size: int
    cut: bool = False


def lines(pieces: Iterator[bytes], limit: int) -> Iterator[Line]:
    """Splits at LF; memory stays near `limit` and time linear whatever a line's length.

    Raises:
      DamagedFile: from `pieces`; after what is there of the line before the damage.
    """
    parts: list[bytes] = []
    size, number = 0, 1

    def finished(cut: bool = False) -> Line:
        content = b"".join(parts) if size <= limit else None
        if content is not None and content.endswith(b"\r"):
            content = content[:-1]
        return Line(number, content, size, cut)

    damage = None
    while True:
        try:
            piece = next(pieces, None)
        except DamagedFile as error:
            damage, piece = error, None
        if piece is None:
            break
        start = 0
        while True:
            end = piece.find(b"\n", start)
            part = piece[start:] if end < 0 else piece[start:end]
            size += len(part)
            if size <= limit:
                parts.append(part)
            else:
                parts.clear()
            if end < 0:
                break
            yield finished()
            parts.clear()
            size, number, start = 0, number + 1, end + 1
    if size:
        yield finished(cut=damage is not None)
    if damage is not None:
        raise damage
