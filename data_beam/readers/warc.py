"""Web archives (WARC 1.0 and 1.1, ISO 28500): fetched HTML pages, and the text of WET files."""

import re
from collections.abc import Iterator

from data_beam.readers import http, streams
from data_beam.readers.base import Read, Reading

_VERSION = re.compile(rb"WARC/[0-9]\.[0-9]+[ \t]*\r?\n")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_MAX_HEAD_BYTES = 1 << 18
_BLANK = re.compile(rb"[\r\n]*")


class _Broken(Exception):
    """The record at hand cannot be read; there may be others behind it."""

    def __init__(self, reason: str, detail: str):
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


class _Archive:
    """The bytes of an archive, asked for piece by piece."""

    def __init__(self, pieces: Iterator[bytes | streams.Gap]):
        self._pieces, self._buffer = pieces, bytearray()

    def _more(self) -> bool:
        piece = next(self._pieces, None)
        if isinstance(piece, streams.Gap):
            self._buffer.clear()
            raise _Broken(piece.reason, f"the file is damaged: {piece.detail}; reading goes on at "
                                        "the next gzip member")
        if piece is not None:
            self._buffer += piece
        return piece is not None

    def at_record(self) -> bool:
        """Whether a record begins here, line ends passed over; False at the end of the file."""
        while True:
            blank = _BLANK.match(self._buffer)
            assert blank is not None
            del self._buffer[:blank.end()]
            if len(self._buffer) >= 12 or not self._more():
                break
        if not self._buffer:
            return False
        if not _VERSION.match(self._buffer):
            raise _Broken("invalid WARC", f"no record begins with {bytes(self._buffer[:20])!r}")
        return True

    def skip_to_record(self) -> None:
        """Drops bytes until a line begins like a record, or the file ends."""
        del self._buffer[:1]
        while True:
            found = _VERSION.search(self._buffer)
            while found and found.start() and self._buffer[found.start() - 1] != 0x0A:
                found = _VERSION.search(self._buffer, found.end())
            if found:
                del self._buffer[:found.start()]
                return
            # A version line may begin in what is left, behind the line end before it.
            del self._buffer[:max(0, len(self._buffer) - 32)]
            if not self._more():
                self._buffer.clear()
                return

    def head(self) -> dict[str, str]:
        """The header fields of the record, by lower-case name."""
        while not (end := _HEAD_END.search(self._buffer)):
            if len(self._buffer) > _MAX_HEAD_BYTES:
                raise _Broken("invalid WARC", "a record's header does not end")
            if not self._more():
                raise streams.DamagedFile("truncated WARC", "the file ends in a record's header")
        headers = http.parse_headers(bytes(self._buffer[:end.start()]).partition(b"\n")[2])
        if not headers.get("content-length", "").isdecimal():
            raise _Broken("invalid WARC", "a record without Content-Length")
        del self._buffer[:end.end()]
        return headers

    def take(self, size: int, keep: bool) -> bytes:
        """The next `size` bytes, or b"" where they are not to be kept."""
        passed = 0
        while passed + len(self._buffer) < size:
            if not keep:
                passed += len(self._buffer)
                self._buffer.clear()
            if not self._more():
                raise streams.DamagedFile("truncated WARC", "the file ends inside a record")
        data = bytes(self._buffer[:size]) if keep else b""
        del self._buffer[:size - passed]
        return data


def warc(reading: Reading) -> Iterator[Read]:
    """The documents of an archive, numbered by the place of their WARC record.

    - `response` and `resource` records with HTML: the page, decoded by the charset of its HTTP
      header first. Other statuses than 200 and other media types are dropped.
    - `conversion` records (WET): their text.

    Records of other types (requests, metadata) are no documents. A corrupt gzip member costs its
    own record; a file that ends too early gives what came before and one dead letter.
    """
    archive = _Archive(streams.chunks_and_gaps(reading.file.location, reading.at))
    number, found, broken, begun = 0, False, False, False
    while True:
        try:
            begun = False
            if broken:
                archive.skip_to_record()
            if not archive.at_record():
                break
            number, begun = number + 1, True
            headers = archive.head()
            size = int(headers["content-length"])
            kind = headers.get("warc-type", "").lower()
            is_document = kind in ("response", "resource", "conversion")
            keep = is_document and size <= reading.limit
            block = archive.take(size, keep)
        except _Broken as error:
            if not broken:  # one dead letter for a stretch that cannot be read
                number += not begun
                yield reading.dead(number, error.reason, error.detail)
            found = broken = True
            continue
        broken = False
        if not is_document:
            continue
        found = True
        yield (_document(reading, number, kind, headers, block) if keep
               else reading.too_large(number, size))
    if not found:
        yield reading.dropped(None, "empty file")


def _document(reading: Reading, number: int, kind: str, headers: dict[str, str],
              block: bytes) -> Read:
    url = headers.get("warc-target-uri", "").strip("<>")
    cut = ("warc:truncated",) if headers.get("warc-truncated") else ()
    if kind == "conversion":
        return reading.decoded(number, block, *cut, format="text", url=url)
    declared = headers.get("content-type", "")
    body: bytes | None = block
    try:
        if kind == "response":
            # A writer may leave its type out; the block says what it is.
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
        if not media_type and body and body.strip() and not http.begins_as_html(body):
            return reading.dropped(number, "not html", "no Content-Type")
    except http.BadResponse as error:
        return reading.dead(number, error.reason, error.detail)
    if body is None:
        return reading.dead(number, "too large", "the decoded page passes max_record_bytes "
                                                 f"{reading.limit}")
    if not body.strip():
        return reading.dropped(number, "empty file", "the response has no body")
    return reading.decoded(number, body, *cut, header=charset, format="html", url=url)
