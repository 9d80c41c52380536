"""Text of an EPUB book: its chapters in the order of the spine."""

import io
import posixpath
import re
import struct
import urllib.parse
import xml.etree.ElementTree as ET
import zipfile
import zlib
from collections.abc import Iterator

from data_beam.extract import html
from data_beam.extract.errors import ExtractionError, NoText
from data_beam.readers import encoding

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_RIGHTS = ("META-INF/rights.xml", "META-INF/sinf.xml")
# These two obfuscate embedded fonts, not the text.
_FONT_ALGORITHMS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_MEDIA_TYPES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")
_SKIPPED_GUIDES = ("cover", "toc")
_NAVIGATION = ('nav[epub\\:type~="toc"]', 'nav[epub\\:type~="landmarks"]',
               'nav[epub\\:type~="page-list"]')
_MAX_XML_BYTES = 8 * 2**20
_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*\?>")
_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, OSError,
               RuntimeError, ValueError)


class _Missing(Exception):
    """A file of the book is not there or cannot be read."""


class _Book:
    def __init__(self, data: bytes, limit: int):
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except _ZIP_ERRORS as error:
            raise ExtractionError("invalid EPUB", f"not a zip file: {error}") from None
        self._left = limit
        self._limit = limit

    def has(self, name: str) -> bool:
        return name in self._zip.NameToInfo

    def read(self, name: str, cap: int) -> bytes:
        """A file; decompression stops at the cap and at what remains of the book's limit."""
        try:
            info = self._zip.getinfo(name)
            if info.flag_bits & 1:
                raise ExtractionError("encrypted EPUB", f"{name} needs a password")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise _Missing(f"{name}: an EPUB has no compression {info.compress_type}")
            with self._zip.open(info) as file:
                data = file.read(min(cap, self._left) + 1)
        except KeyError:
            raise _Missing(f"{name} is not there") from None
        except _ZIP_ERRORS as error:
            raise _Missing(f"{name}: {error}") from None
        self._left -= len(data)
        if self._left < 0:
            raise ExtractionError(
                "too large", f"its files pass max_record_bytes {self._limit} when unpacked")
        if len(data) > cap:
            raise _Missing(f"{name} is larger than {cap} bytes")
        return data

    def xml(self, name: str) -> ET.Element:
        """A small XML file. Entities that it declares itself are refused, so none can explode."""
        try:
            text, _ = encoding.decode(self.read(name, _MAX_XML_BYTES), html=True)
            if "<!ENTITY" in text:
                raise _Missing(f"{name} declares entities")
            return ET.fromstring(_DECLARATION.sub("", text, count=1))
        except (ET.ParseError, encoding.Undecodable, ValueError, RecursionError) as error:
            raise _Missing(f"{name}: {error}") from None


def _all(root: ET.Element, name: str) -> Iterator[ET.Element]:
    """Elements of a name, in any namespace: these are often wrong in books."""
    return (element for element in root.iter() if element.tag.rpartition("}")[2] == name)


def _resolve(base: str, href: str) -> str:
    path = urllib.parse.unquote(href.partition("#")[0])
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), path))


def _refuse_encrypted(book: _Book) -> None:
    for name in _RIGHTS:
        if book.has(name):
            raise ExtractionError("encrypted EPUB", f"{name} is there")
    if not book.has(_ENCRYPTION):
        return
    try:
        root = book.xml(_ENCRYPTION)
    except _Missing as error:
        raise ExtractionError("encrypted EPUB", str(error)) from None
    for data in _all(root, "EncryptedData"):
        method = next(_all(data, "EncryptionMethod"), None)
        algorithm = "" if method is None else method.get("Algorithm", "")
        if algorithm not in _FONT_ALGORITHMS:
            raise ExtractionError("encrypted EPUB", algorithm or "no algorithm is named")


def _chapters(book: _Book) -> list[str]:
    """Names of the spine's documents in order, each once, without cover and contents."""
    container = book.xml(_CONTAINER)
    package = next((root.get("full-path", "") for root in _all(container, "rootfile")
                    if root.get("full-path")), "")
    if not package:
        raise _Missing(f"{_CONTAINER} names no package")
    root = book.xml(package)
    items = {item.get("id", ""): item for item in _all(root, "item")}
    skipped = {_resolve(package, guide.get("href", "")) for guide in _all(root, "reference")
               if guide.get("type", "").lower() in _SKIPPED_GUIDES}
    names: list[str] = []
    for reference in _all(root, "itemref"):
        item = items.get(reference.get("idref", ""))
        if item is None:
            names.append("")  # a chapter that the book says it has
            continue
        properties = item.get("properties", "").split()
        name = _resolve(package, item.get("href", ""))
        if ("nav" in properties or "cover-image" in properties or name in skipped
                or item.get("media-type", _MEDIA_TYPES[0]) not in _MEDIA_TYPES):
            continue
        names.append(name)
    if not names:
        raise _Missing(f"{package} has no chapters in its spine")
    return list(dict.fromkeys(name for name in names if name)) + [""] * names.count("")


def text(data: bytes, limit: int) -> tuple[str, tuple[str, ...]]:
    """The chapters of a book, with blank lines between them, and the names of what was done.

    All text of a chapter is kept, without a search for main content: the only menus of a book are
    its tables of contents, which are left out with the cover. Missing and damaged chapters are
    skipped, and their number is among the names.

    Raises:
      ExtractionError: not a zip file, no readable package document, no readable chapter; encrypted
        text (DRM); a book whose files have more than `limit` bytes when unpacked.
      NoText: chapters without text (a book of pictures).
    """
    book = _Book(data, limit)
    _refuse_encrypted(book)
    try:
        names = _chapters(book)
    except _Missing as error:
        raise ExtractionError("invalid EPUB", str(error)) from None
    texts: list[str] = []
    missing: list[str] = []
    for name in names:
        try:
            data = book.read(name, limit)
        except _Missing as error:
            missing.append(str(error))
            continue
        try:
            page, _ = encoding.decode(data, html=True)
            texts.append(html.all_text(page, skip=_NAVIGATION).strip("\n"))
        except (encoding.Undecodable, ExtractionError) as error:
            missing.append(f"{name}: {error}")
    if not texts:
        raise ExtractionError("invalid EPUB", f"no chapter can be read: {missing[0]}")
    if not any(chapter.strip() for chapter in texts):
        raise NoText("no text layer", f"{len(texts)} chapters")
    done = (f"epub:missing_chapters={len(missing)}",) if missing else ()
    return ("\n\n\n".join(chapter for chapter in texts if chapter.strip()), ("extract:epub", *done))
