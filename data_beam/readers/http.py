"""The HTTP response in a WARC record."""

import dataclasses
import re
import zlib

import zstandard

from data_beam.base.records import ReasonedError
from data_beam.readers.streams import GZIP_MAGIC, ZSTD_MAGIC, ZSTD_READ_BYTES

_STATUS = re.compile(rb"HTTP/[0-9.]+[ \t]+([0-9]{3})\b")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{2,40})", re.IGNORECASE)
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n")
# What a browser takes for an HTML page without a media type: WHATWG MIME Sniffing, section 7.1, and
# a byte order mark before.
HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?[\t\n\x0c\r ]*<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a"
    rb"|style|title|b|body|br|p|!--)[ >]", re.IGNORECASE)
HTML_TYPES = ("text/html", "application/xhtml+xml")


class BadResponse(ReasonedError):
    """The bytes are not an HTTP response, or its body cannot be decoded."""


@dataclasses.dataclass(frozen=True)
class Response:
    """A response with its body as sent."""

    status: int
    headers: dict[str, str]  # by lower-case name; the last of repeated ones
    body: bytes


def parse_headers(block: bytes) -> dict[str, str]:
    """Header fields by lower-case name; other lines are ignored."""
    headers: dict[str, str] = {}
    name = ""
    for line in block.decode("utf-8", "replace").replace("\r\n", "\n").split("\n"):
        if line[:1] in (" ", "\t") and name:  # continues the line before
            headers[name] += " " + line.strip()
            continue
        name, colon, value = line.partition(":")
        name = name.strip().lower() if colon else ""
        if name:
            headers[name] = value.strip()
    return headers


def parse_response(block: bytes) -> Response:
    """Splits a response into status, headers and body. Raises BadResponse without a status line."""
    status = _STATUS.match(block)
    if not status:
        raise BadResponse("invalid HTTP", f"starts with {block[:20]!r}")
    end = _HEAD_END.search(block)
    head, body = (block[:end.start()], block[end.end():]) if end else (block, b"")
    return Response(int(status.group(1)), parse_headers(head.partition(b"\n")[2]), body)


def media_type(content_type: str) -> tuple[str, str]:
    """The media type in lower case, and the charset ("" when none is given)."""
    charset = _CHARSET.search(content_type)
    return content_type.partition(";")[0].strip().lower(), charset.group(1) if charset else ""


def _dechunked(body: bytes) -> bytes:
    """The content of a chunked body (RFC 9112, 7.1); the body itself when it is not chunked."""
    parts, position = [], 0
    while True:
        size = _CHUNK_SIZE.match(body, position)
        if not size:
            if position == 0:
                return body  # the archiver decoded it and kept the header
            raise BadResponse("invalid HTTP", f"no chunk size at byte {position} of the body")
        length = int(size.group(1), 16)
        if length == 0:
            return b"".join(parts)
        part = body[size.end():size.end() + length]
        if len(part) < length:
            raise BadResponse("invalid HTTP", "the body ends inside a chunk")
        parts.append(part)
        position = size.end() + length
        position += 2 if body[position:position + 2] == b"\r\n" else 1


def _inflated(body: bytes, limit: int, wbits: int) -> bytes:
    decoder = zlib.decompressobj(wbits)
    try:
        data = decoder.decompress(body, limit + 1)
    except zlib.error as error:
        raise BadResponse("invalid HTTP", f"the compressed body is corrupt: {error}") from None
    if len(data) <= limit and not decoder.eof:
        raise BadResponse("invalid HTTP", "the compressed body ends too early")
    return data


def _unpacked(body: bytes, limit: int) -> bytes:
    decoder = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
    parts, size = [], 0
    try:
        for begin in range(0, len(body), ZSTD_READ_BYTES):
            parts.append(decoder.decompress(body[begin:begin + ZSTD_READ_BYTES]))
            size += len(parts[-1])
            if size > limit or decoder.eof:
                return b"".join(parts)
    except zstandard.ZstdError as error:
        raise BadResponse("invalid HTTP", f"the compressed body is corrupt: {error}") from None
    raise BadResponse("invalid HTTP", "the compressed body ends too early")


def decoded_body(response: Response, limit: int) -> bytes | None:
    """The body without transfer and content encoding, None when it passes `limit` bytes.

    Archivers often decode a body and keep the header: a body that does not start as its encoding
    does is not decoded again. Raises BadResponse for an unknown encoding, or an incomplete body.
    """
    body = response.body
    if "chunked" in response.headers.get("transfer-encoding", "").lower():
        body = _dechunked(body)
    coding = response.headers.get("content-encoding", "").strip().lower()
    if coding in ("gzip", "x-gzip"):
        if body.startswith(GZIP_MAGIC):
            body = _inflated(body, limit, 31)
    elif coding == "deflate":
        if body[:1] == b"\x78" and int.from_bytes(body[:2], "big") % 31 == 0:
            body = _inflated(body, limit, 15)
        elif not body.lstrip().startswith(b"<"):
            body = _inflated(body, limit, -15)  # some servers send it without zlib's header
    elif coding == "zstd":
        if body.startswith(ZSTD_MAGIC):
            body = _unpacked(body, limit)
    elif coding not in ("", "identity", "none") and not body.lstrip().startswith(b"<"):
        raise BadResponse("unknown content encoding", coding[:40])
    return body if len(body) <= limit else None
