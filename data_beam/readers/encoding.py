"""Bytes to text: byte order mark, then what the document declares, then UTF-8, then sniffing."""

import codecs
import io
import re
import tokenize

from resiliparse.parse.encoding import detect_encoding

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32-le"),
         (codecs.BOM_UTF32_BE, "utf-32-be"), (codecs.BOM_UTF16_LE, "utf-16-le"),
         (codecs.BOM_UTF16_BE, "utf-16-be"))
_META = re.compile(rb"<meta[^>]{0,512}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{2,40})",
                   re.IGNORECASE)
_XML = re.compile(rb"\s*<\?xml\s[^>]{0,256}?encoding\s*=\s*[\"']([A-Za-z0-9_:.-]{2,40})[\"']")
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
# UTF-8 by its form: a lead and as many bytes behind it as it asks for. What the forms allow and
# the standard does not (halves of surrogate pairs, values past U+10FFFF, zero in two bytes) are
# slips of programs that write UTF-8, not of those that write another encoding.
_WIDE_FORM = re.compile(rb"[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf7][\x80-\xbf]{3}")
_NARROW_FORM = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|\xc0\x80")
_NARROW_TO_A_WIDE = 10
_META_BYTES = 4096
_SNIFF_BYTES = 1 << 16
_MAX_CONTROL_FRACTION = 0.1
_CHECKED_CHARACTERS = 100_000
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")  # text has tabs, line ends, form feeds, ESC
_BINARY_MAGIC = (b"%PDF-", b"PK\x03\x04", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"\x7fELF")

# GB2312 and GBK are subsets of GB18030, and pages that claim one use the others' characters.
_WIDER = {"gb2312": "gb18030", "gbk": "gb18030", "iso8859-1": "cp1252", "ascii": "utf-8"}

# Codecs of Python that are no encodings of documents; UTF-7 no browser reads.
_NO_CHARSETS = frozenset(("idna", "mbcs", "oem", "punycode", "raw-unicode-escape", "undefined",
                          "unicode-escape", "utf-7"))


class Undecodable(Exception):
    """The bytes are no text, or in no encoding that could be found."""

    def __init__(self, reason: str, detail: str):
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


def _codec(name: str) -> str | None:
    """Python's name of a character encoding, None for what is none."""
    try:
        info = codecs.lookup(name)
    except (LookupError, ValueError):  # the latter for a name with a zero byte
        return None
    if not info._is_text_encoding or info.name in _NO_CHARSETS:
        return None
    return _WIDER.get(info.name, info.name)


def _checked(text: str) -> str:
    controls = len(_CONTROL.findall(text, 0, _CHECKED_CHARACTERS))
    if controls > _MAX_CONTROL_FRACTION * min(len(text), _CHECKED_CHARACTERS):
        raise Undecodable("binary content", f"{controls} control characters")
    return text


def _is_broken_utf8(data: bytes) -> bool:
    """Whether bytes that are not valid UTF-8 are UTF-8 with a few bad bytes, and nothing else.

    Each bad byte needs one sequence of three or four bytes in the form of UTF-8 for it, or ten of
    two. Other encodings have such sequences by chance: of two bytes now and then (`É”` in cp1252),
    of more seldom, and many more bytes that are in none.
    """
    rest, wide = _WIDE_FORM.subn(b"", data)
    rest, narrow = _NARROW_FORM.subn(b"", rest)
    bad = len(_NOT_ASCII.findall(rest))
    return (wide > 0 or narrow > 0) and bad <= wide + narrow // _NARROW_TO_A_WIDE


def decode(data: bytes, header: str = "", html: bool = False) -> tuple[str, str]:
    """Decodes strictly: no byte is replaced or skipped.

    Args:
      data: the whole document.
      header: the encoding the transport declared (HTTP, WARC), if any.
      html: look for an XML declaration and `<meta charset>` in the first 4096 bytes too.

    Returns:
      The text without byte order mark, and the Python name of the encoding. The candidates, the
      first that decodes every byte winning: byte order mark, header, XML declaration, meta,
      UTF-8, sniffed. What is UTF-8 but for a few bytes is not sniffed: some code page of single
      bytes decodes anything.

    Raises:
      Undecodable: binary content, or no candidate decodes every byte.
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
        # A page whose meta is readable as ASCII is not UTF-16, whatever it says.
        if codec is None or codec.startswith(("utf-16", "utf-32")):
            continue
        try:
            return _checked(data.decode(codec)), codec
        except UnicodeDecodeError as error:
            failures.append(f"{codec} fails at byte {error.start}")
    if _is_broken_utf8(data):
        raise Undecodable("bad encoding", f"UTF-8 but for a few bytes; {'; '.join(failures)}")
    # Sniff from the first byte that is not ASCII: a long ASCII head says nothing.
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
    """Decodes Python source by its own declaration (PEP 263), UTF-8 by default.

    Raises:
      Undecodable: the declared encoding is unknown or does not decode every byte.
    """
    if b"\0" in data:
        raise Undecodable("binary content", f"starts with {data[:8]!r}")
    try:
        name, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return _checked(data.decode(name)), name
    except (SyntaxError, UnicodeDecodeError) as error:
        raise Undecodable("bad encoding", str(error)) from None
