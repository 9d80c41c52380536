"""Bytes to text: byte order mark, then what the document declares, then UTF-8, then sniffing."""

import codecs
import io
import re
import tokenize

from resiliparse.parse.encoding import detect_encoding

from data_beam.base.records import ReasonedError

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32-le"),
         (codecs.BOM_UTF32_BE, "utf-32-be"), (codecs.BOM_UTF16_LE, "utf-16-le"),
         (codecs.BOM_UTF16_BE, "utf-16-be"))
_META = re.compile(rb"<meta[^>]{0,512}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{2,40})",
                   re.IGNORECASE)
_XML = re.compile(rb"\s*<\?xml\s[^>]{0,256}?encoding\s*=\s*[\"']([A-Za-z0-9_:.-]{2,40})[\"']")
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
# Sequences in the form of UTF-8: a lead byte and the continuation bytes that it announces. The form
# allows more than the standard does (halves of surrogate pairs, values past U+10FFFF, zero in two
# bytes): errors of programs that write UTF-8, not signs of another encoding.
_WIDE_FORM = re.compile(rb"[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf7][\x80-\xbf]{3}")
_NARROW_FORM = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|\xc0\x80")
_NARROW_TO_A_WIDE = 10
_META_BYTES = 4096
_SNIFF_BYTES = 1 << 16
_MAX_CONTROL_FRACTION = 0.1
_CHECKED_CHARACTERS = 100_000
# Control characters but for those of text: tabs, line ends, form feeds, ESC.
_CONTROLS = bytes((*range(0x09), *range(0x0e, 0x1b), *range(0x1c, 0x20)))
_BINARY_MAGIC = (b"%PDF-", b"PK\x03\x04", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"\x7fELF")

# GB2312 and GBK are subsets of GB18030, and pages that claim one use the others' characters.
_WIDER = {"gb2312": "gb18030", "gbk": "gb18030", "iso8859-1": "cp1252", "ascii": "utf-8"}

# Codecs of Python that are not encodings of documents. No browser reads UTF-7.
_NO_CHARSETS = frozenset(("idna", "mbcs", "oem", "punycode", "raw-unicode-escape", "undefined",
                          "unicode-escape", "utf-7"))


class Undecodable(ReasonedError):
    """The bytes are not text, or no encoding decodes them."""


def _codec(name: str) -> str | None:
    """Python's name of a character encoding, None for an unknown one."""
    try:
        info = codecs.lookup(name)
    except (LookupError, ValueError):  # the latter for a name with a zero byte
        return None
    if not info._is_text_encoding or info.name in _NO_CHARSETS:
        return None
    return _WIDER.get(info.name, info.name)


def _checked(text: str) -> str:
    data = text[:_CHECKED_CHARACTERS].encode("utf-8", "surrogatepass")
    controls = len(data) - len(data.translate(None, _CONTROLS))  # eight times as fast as `re`
    if controls > _MAX_CONTROL_FRACTION * min(len(text), _CHECKED_CHARACTERS):
        raise Undecodable("binary content", f"{controls} control characters")
    return text


def _is_broken_utf8(data: bytes) -> bool:
    """Whether bytes that are not valid UTF-8 are UTF-8 with a few bad bytes.

    That takes, for each bad byte, one sequence of three or four bytes in the form of UTF-8, or ten
    of two. In other encodings such sequences occur by chance, those of two bytes now and then (`É”`
    in cp1252) and longer ones rarely, among many more bytes that are in none.
    """
    rest, wide = _WIDE_FORM.subn(b"", data)
    rest, narrow = _NARROW_FORM.subn(b"", rest)
    bad = len(_NOT_ASCII.findall(rest))
    return (wide > 0 or narrow > 0) and bad <= wide + narrow // _NARROW_TO_A_WIDE


def decode(data: bytes, header: str = "", html: bool = False) -> tuple[str, str]:
    """Decodes a whole document strictly: no byte is replaced or skipped. Returns the text without
    byte order mark, and the Python name of the encoding.

    The first candidate that decodes every byte wins: byte order mark, `header` (the encoding that
    HTTP or WARC declared), XML declaration, meta, UTF-8, sniffed. An XML declaration and `<meta
    charset>` are looked for in `html` only, in the first 4096 bytes. UTF-8 with a few bad bytes is
    not sniffed, because a single-byte code page decodes anything.

    Raises Undecodable for binary content, or if no candidate decodes every byte.
    """
    for mark, name in _BOMS:
        if data.startswith(mark):
            try:
                return _checked(data[len(mark):].decode(name)), name
            except UnicodeDecodeError as error:
                raise Undecodable("bad encoding", f"{name} by its mark, but {error.reason} at "
                                  f"byte {error.start}") from None
    if data.startswith(_BINARY_MAGIC) or b"\0" in data:
        raise Undecodable("binary content", f"starts with {data[:8]!r}")
    candidates = [header]
    if html:
        found = _XML.match(data) or _META.search(data[:_META_BYTES])
        candidates.append(found.group(1).decode("ascii") if found else "")
    candidates.append("utf-8")
    failures = []
    for name in candidates:
        codec = _codec(name) if name else None
        # A page whose meta tag is readable as ASCII is not UTF-16, even if the tag says so.
        if codec is None or codec.startswith(("utf-16", "utf-32")):
            continue
        try:
            return _checked(data.decode(codec)), codec
        except UnicodeDecodeError as error:
            failures.append(f"{codec} fails at byte {error.start}")
    if _is_broken_utf8(data):
        raise Undecodable("bad encoding", f"UTF-8 with a few bad bytes; {'; '.join(failures)}")
    # A long ASCII head would tell nothing: sniffing begins at the first other byte.
    found = _NOT_ASCII.search(data)
    first = found.start() if found else 0
    name = detect_encoding(data[first:first + _SNIFF_BYTES], max_len=0, html5_compatible=True)
    codec = _codec(name or "")
    if codec is not None:
        try:
            return _checked(data.decode(codec)), codec
        except UnicodeDecodeError as error:
            failures.append(f"{codec} (sniffed) fails at byte {error.start}")
    raise Undecodable("bad encoding", "; ".join(dict.fromkeys(failures)))


def decode_python(data: bytes) -> tuple[str, str]:
    """Decodes Python source by its own declaration (PEP 263), UTF-8 by default. Raises Undecodable
    if the declared encoding is unknown or does not decode every byte."""
    if b"\0" in data:
        raise Undecodable("binary content", f"starts with {data[:8]!r}")
    try:
        name, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return _checked(data.decode(name)), name
    except (SyntaxError, UnicodeDecodeError) as error:
        raise Undecodable("bad encoding", str(error)) from None
