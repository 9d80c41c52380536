"""Web archives (WARC 1.0 and 1.1, ISO 28500): fetched HTML pages, and the text of WET files."""

import re
from collections import Counter
from collections.abc import Iterator

from data_beam.base.records import ReasonedError
from data_beam.readers import http, streams
from data_beam.readers.reading import Read, Reading

_VERSION = re.compile(rb"WARC/[0-9]\.[0-9]+[ \t]*\r?\n")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_MAX_HEAD_BYTES = 1 << 18
_BLANK = re.compile(rb"[\r\n]*")
# What follows a record: line ends, and the next record or nothing.
_FOLLOWING = re.compile(rb"[\r\n]*(?:WARC/[0-9]\.[0-9]+[ \t]*\r?\n|\Z)")
_FOLLOWING_BYTES = 64
# Where a record ends and the next one begins, in bytes that may hold anything.
_BOUNDARY = re.compile(rb"\r?\n\r?\n(?=WARC/[0-9]\.[0-9]+[ \t]*\r?\n[A-Za-z-]+:)")
_BOUNDARY_BYTES = 128
_DOCUMENTS = ("response", "resource", "conversion")


class _Broken(ReasonedError):
    """The record at hand cannot be read; there may be others behind it."""


class _Archive:
    """The bytes of an archive, read record by record."""

    def __init__(self, reading: Reading):
        self._pieces = streams.pieces(reading.file.location, reading.at, begin=self._begin)
        self._buffer = bytearray()
        self._position = 0  # of the buffer in the decompressed archive
        self._units = [(0, 0)]  # positions there and in the file where compressed units begin
        self._is_compressed = False
        self._gap: streams.Gap | None = None

    def _begin(self, offset: int) -> None:
        self._is_compressed = True
        self._units.append((self._position + len(self._buffer), offset))

    def _more(self) -> bool:
        """Reads on; False at the end of the file and before a gap."""
        piece = next(self._pieces, None) if self._gap is None else None
        if isinstance(piece, streams.Gap):
            self._gap = piece
        elif piece is not None:
            self._buffer += piece
            return True
        return False

    def _drop(self, size: int) -> None:
        self._position += size
        del self._buffer[:size]

    def _end(self, where: str) -> Exception:
        """Why there is no more: drops what there is of the record."""
        self._drop(len(self._buffer))
        gap, self._gap = self._gap, None
        if gap is None:
            return streams.DamagedFile("truncated WARC", f"the file ends {where}")
        if gap.is_end:
            return streams.DamagedFile(gap.reason, gap.detail)
        return _Broken(gap.reason, f"the file is damaged: {gap.detail}")

    def at_record(self) -> bool:
        """Whether a record begins here, line ends passed over; False at the end of the file."""
        while True:
            blank = _BLANK.match(self._buffer)
            assert blank is not None
            self._drop(blank.end())
            if len(self._buffer) >= 12 or not self._more():
                break
        if len(self._buffer) < 12 and self._gap is not None:
            raise self._end("")
        if not self._buffer:
            return False
        if not _VERSION.match(self._buffer):
            raise _Broken("invalid WARC", f"no record begins with {bytes(self._buffer[:20])!r}")
        return True

    def skip_to_record(self) -> None:
        """Drops bytes until a line begins like a record, or the file ends."""
        self._drop(min(1, len(self._buffer)))
        while True:
            found = _VERSION.search(self._buffer)
            while found and found.start() and self._buffer[found.start() - 1] != 0x0A:
                found = _VERSION.search(self._buffer, found.end())
            if found:
                self._drop(found.start())
                return
            # A version line may begin in what is left, behind the line end before it.
            self._drop(max(0, len(self._buffer) - 32))
            if not self._more():
                self._drop(len(self._buffer))
                return

    def offset(self) -> int:
        """Where in the file the record, or the compressed unit that holds it, begins."""
        while len(self._units) > 1 and self._units[1][0] <= self._position:
            self._units.pop(0)
        return self._units[0][1] if self._is_compressed else self._position

    def head(self) -> dict[str, str]:
        """The header fields of the record, by lower-case name."""
        while not (end := _HEAD_END.search(self._buffer)):
            if len(self._buffer) > _MAX_HEAD_BYTES:
                raise _Broken("invalid WARC", "a record's header does not end")
            if not self._more():
                raise self._end("in a record's header")
        headers = http.parse_headers(bytes(self._buffer[:end.start()]).partition(b"\n")[2])
        if not headers.get("content-length", "").isdecimal():
            raise _Broken("invalid WARC", "a record without Content-Length")
        self._drop(end.end())
        return headers

    def block(self, length: int, limit: int) -> tuple[bytes | None, bool]:
        """The content of the record, and whether its Content-Length is wrong. Of content longer
        than `limit` only the end is looked at, and None is returned.

        A record ends with its length where line ends and the next record follow. Elsewhere the
        length is wrong, and the record ends before the first header of another one.
        """
        size = min(length, max(limit, 1 << 16))
        to_pass = length - size
        while to_pass:
            passed = min(to_pass, len(self._buffer))
            self._drop(passed)
            to_pass -= passed
            if to_pass and not self._more():
                raise self._end("inside a record")
        while len(self._buffer) < size + _FOLLOWING_BYTES and self._more():
            pass
        is_whole = len(self._buffer) >= size
        if is_whole and _FOLLOWING.match(self._buffer, size):
            return self._take(size, length, limit), False
        boundary = _BOUNDARY.search(self._buffer)
        if is_whole and _HEAD_END.match(self._buffer, size) and not (
                boundary and boundary.start() < size):
            return self._take(size, length, limit), False  # other bytes follow a good record
        while boundary is None and len(self._buffer) <= size + limit:
            searched = max(0, len(self._buffer) - _BOUNDARY_BYTES)
            if not self._more():
                break
            boundary = _BOUNDARY.search(self._buffer, searched)
        if boundary is None and not is_whole:
            raise self._end("inside a record")
        if boundary is None and not self._buffer.endswith(b"\r\n\r\n"):
            raise _Broken("invalid WARC", f"Content-Length {length} is wrong: no record follows")
        size = boundary.start() if boundary else len(self._buffer) - 4
        return self._take(size, length, limit), True

    def _take(self, size: int, length: int, limit: int) -> bytes | None:
        data = bytes(self._buffer[:size]) if max(size, length) <= limit else None
        self._drop(size)
        return data


def warc(reading: Reading) -> Iterator[Read]:
    """The documents of an archive, numbered by the position of their WARC record.

    - `response` and `resource` records with HTML: the page, decoded by the charset of its HTTP
      header first. Other statuses than 200 and other media types are dropped.
    - `conversion` records (WET): their text.

    Records of other types (requests, metadata) are not documents. Damage of a compressed member
    affects its own records; a file that ends too early gives what came before and one dead letter.
    """
    archive = _Archive(reading)
    number, found, broken, begun = 0, False, False, False
    types: Counter[str] = Counter()
    while True:
        try:
            begun = False
            if broken:
                archive.skip_to_record()
            if not archive.at_record():
                break
            number, begun = number + 1, True
            offset = archive.offset()
            headers = archive.head()
            kind = headers.get("warc-type", "").lower()
            length = int(headers["content-length"])
            block, is_wrong = archive.block(length, reading.limit)
        except _Broken as error:
            if not broken:  # one dead letter for a stretch that cannot be read
                number += not begun
                yield reading.dead(number, error.reason, error.detail)
            found = broken = True
            continue
        broken = False
        types[kind] += 1
        if not kind:
            found = True
            yield reading.dead(number, "invalid WARC", "a record without WARC-Type")
        elif kind in _DOCUMENTS:
            found = True
            marks = ("warc:wrong_length",) if is_wrong else ()
            yield (reading.too_large(number, length) if block is None else
                   _document(reading, number, offset, kind, headers, block, marks))
    if not found:
        records = ", ".join(f"{kind[:40]} {count}" for kind, count in sorted(types.items())[:12])
        yield reading.dropped(None, *(("no documents", f"records: {records}") if types else
                                      ("empty file",)))


def _document(reading: Reading, number: int, offset: int, kind: str, headers: dict[str, str],
              block: bytes, marks: tuple[str, ...]) -> Read:
    url = headers.get("warc-target-uri", "").strip("<>")
    marks += ("warc:truncated",) if headers.get("warc-truncated") else ()
    if kind == "conversion":
        return reading.decoded(number, block, *marks, format="text", url=url, offset=offset)
    declared = headers.get("content-type", "")
    body: bytes | None = block
    try:
        if kind == "response":
            # Some writers leave the type out; then the block shows it.
            if not declared.lower().startswith("application/http") and (
                    declared or not block.startswith(b"HTTP/")):
                return reading.dropped(number, "not html", declared[:80] or "no HTTP")
            response = http.parse_response(block)
            if response.status != 200:
                return reading.dropped(number, "http status", str(response.status))
            declared = response.headers.get("content-type", "")
        media_type, charset = http.media_type(declared)
        media_type = headers.get("warc-identified-payload-type", media_type).lower()
        if media_type and media_type not in http.HTML_TYPES:
            return reading.dropped(number, "not html", media_type[:80])
        if kind == "response":
            body = http.decoded_body(response, reading.limit)
        if not media_type and body and body.strip() and not http.HTML.match(body):
            return reading.dropped(number, "not html", "no Content-Type")
    except http.BadResponse as error:
        return reading.dead(number, error.reason, error.detail)
    if body is None:
        return reading.dead(number, "too large", "the decoded page passes max_record_bytes "
                                                 f"{reading.limit}")
    if not body.strip():
        return reading.dropped(number, "empty file", "the response has no body")
    return reading.decoded(number, body, *marks, header=charset, format="html", url=url,
                           offset=offset)
