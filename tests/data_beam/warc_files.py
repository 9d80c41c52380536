"""Small web archives made for tests."""

import gzip
from collections.abc import Iterable


def record(kind: str, block: bytes, url: str = "", **headers: str) -> bytes:
    """A WARC record."""
    lines = ["WARC/1.0", f"WARC-Type: {kind}", f"Content-Length: {len(block)}"]
    lines += [f"WARC-Target-URI: {url}"] if url else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def response(body: bytes, url: str = "http://e.org/", status: str = "200 OK",
             content_type: str = "text/html; charset=utf-8", http: str = "",
             **headers: str) -> bytes:
    """A record with an HTTP response."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n{http}\r\n"
    return record("response", head.encode() + body, url,
                  Content_Type="application/http; msgtype=response", **headers)


def members(records: Iterable[bytes]) -> bytes:
    """Records each in a gzip member of its own, as archives are."""
    return b"".join(gzip.compress(one, mtime=0) for one in records)
