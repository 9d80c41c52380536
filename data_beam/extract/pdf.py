"""Text of a PDF file, by PDFium."""

import ctypes
import re
import threading
import time
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from data_beam.config import ExtractConfig
from data_beam.extract import pdf_layout, pdf_text
from data_beam.extract.errors import ExtractionError, NoText, check_garbled
from data_beam.extract.pdf_layout import Span

_LOCK = threading.Lock()  # PDFium is not thread-safe, and Beam's workers have several threads
_MAX_PAGE_CHARACTERS = 200_000
_FIXED_PITCH = 1
# Fonts whose descriptor does not say so, the 14 standard ones among them.
_FIXED_NAME = re.compile(rb"Courier|Mono|Consol|Menlo|Typewriter|CMTT|SFTT", re.IGNORECASE)
_ROTATED = 0.1
_LINE_END_HYPHEN = (0x02, 0xAD, 0xFFFE)
# Bullets of the fonts Symbol and Wingdings, which have no Unicode.
_SYMBOLS = {0xF0B7: "•", 0xF0A7: "▪", 0xF0D8: "▶", 0xF0FC: "✓", 0xF02D: "-", 0xF076: "❖"}


def _style(handle: Any, index: int) -> tuple[float, bool, bool]:
    """Font size of a character, whether of fixed pitch, whether rotated."""
    flags, name = ctypes.c_int(), ctypes.create_string_buffer(100)
    pdfium.FPDFText_GetFontInfo(handle, index, name, len(name), flags)
    fixed = flags.value & _FIXED_PITCH or _FIXED_NAME.search(name.value)
    angle = pdfium.FPDFText_GetCharAngle(handle, index)
    rotated = _ROTATED < angle < 6.2832 - _ROTATED
    return pdfium.FPDFText_GetFontSize(handle, index), bool(fixed), rotated


def _spans(handle: Any) -> tuple[list[Span], int]:
    """The characters of a page as spans, and how many have no Unicode."""
    box = pdfium.FS_RECTF()
    unmapped = 0
    count = min(pdfium.FPDFText_CountChars(handle), _MAX_PAGE_CHARACTERS)
    get_unicode, get_box = pdfium.FPDFText_GetUnicode, pdfium.FPDFText_GetLooseCharBox
    has_no_unicode = pdfium.FPDFText_HasUnicodeMapError
    result: list[Span] = []
    letters: list[str] = []
    x0 = x1 = y0 = y1 = 0.0
    first = 0

    def finish() -> None:
        text = "".join(letters).rstrip(" ")
        letters.clear()
        if text:
            size, fixed, rotated = _style(handle, first)
            result.append(Span(text, x0, x1, y0, y1, size or y1 - y0, fixed, rotated))

    for index in range(count):
        code = get_unicode(handle, index)
        if code in (0x0A, 0x0D):
            finish()
            continue
        if code in (0x20, 0x09, 0xA0):
            if letters:
                letters.append(" ")
            continue
        if not get_box(handle, index, box):
            continue
        left, right, bottom, top = box.left, box.right, box.bottom, box.top
        if letters:
            height = y1 - y0
            overlap = min(top, y1) - max(bottom, y0)
            if (overlap < 0.5 * min(height, top - bottom) or left < x1 - height
                    or left > x1 + pdf_layout.SPAN_GAP * height):
                finish()
        if letters:
            x0, x1 = min(x0, left), max(x1, right)
            y0, y1 = min(y0, bottom), max(y1, top)
        else:
            x0, x1, y0, y1, first = left, right, bottom, top, index
        if code in _LINE_END_HYPHEN:
            letters.append("\xad")
            continue
        if code in _SYMBOLS:
            letters.append(_SYMBOLS[code])
            continue
        if has_no_unicode(handle, index) == 1:
            unmapped += 1
        letters.append(chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000
                       else "\ufffd")
    finish()
    return result, unmapped


def _pages(data: bytes, config: ExtractConfig) -> tuple[list[list[Span]], int, int]:
    """Spans by page, how many pages cannot be loaded, how many characters have no Unicode."""
    began = time.monotonic()
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if pdfium.FPDF_GetLastError() == pdfium.FPDF_ERR_PASSWORD or "assword" in str(error):
            raise ExtractionError("encrypted PDF", "it needs a password") from None
        raise ExtractionError("damaged PDF", str(error)) from None
    try:
        count = len(document)
        if count > config.max_pages:
            raise ExtractionError("too many pages", f"{count}, more than {config.max_pages}")
        pages, damaged, unmapped = [], 0, 0
        for number in range(count):
            if time.monotonic() - began > config.max_seconds:
                raise ExtractionError("took too long", f"{config.max_seconds:g} s passed at page "
                                                       f"{number + 1} of {count}")
            try:
                page = document[number]
                text_page = page.get_textpage()
            except pypdfium2.PdfiumError:
                damaged += 1
                continue
            spans, without = _spans(text_page.raw)
            pages.append(spans)
            unmapped += without
            text_page.close()
            page.close()
        if not pages:
            raise ExtractionError("damaged PDF", f"none of {count} pages can be loaded")
        return pages, damaged, unmapped
    finally:
        document.close()


def text(data: bytes, config: ExtractConfig) -> tuple[str, tuple[str, ...]]:
    """Paragraphs of a PDF file in reading order, and the names of what was done.

    Columns are read one after the other, and vertical lines of Chinese and Japanese from the right.
    Running headers, footers and page numbers are left out, and so is text at an angle. Lines are
    joined to paragraphs (Chinese without a space), words divided at the end of a line are joined.
    Damaged pages are skipped; their number is among the names.

    Raises:
      ExtractionError: a file that is damaged or encrypted, has too many pages or takes too long.
      NoText: no text (scanned pages), characters without Unicode, or characters in no order.
    """
    with _LOCK:
        pages, damaged, unmapped = _pages(data, config)
    done = ["extract:pdf", *([f"pdf:missing_pages={damaged}"] if damaged else [])]
    if not any(pages):
        raise NoText("no text layer", f"{len(pages)} pages")
    split = [pdf_layout.separate_vertical(spans) for spans in pages]
    horizontal = [spans for spans, _ in split]
    if config.repeated_edge_lines:
        horizontal, left_out = pdf_text.without_edges(horizontal)
        if left_out:
            done.append("page_edges")
    regions, tables = [], 0
    for spans, (_, vertical) in zip(horizontal, split, strict=True):
        for region in pdf_layout.page_regions(spans, vertical):
            rows, garbled = pdf_layout.mark_tables(region, config.drop_garbled_tables)
            tables += garbled
            regions.append(rows)
    if tables:
        done.append(f"garbled_tables={tables}")
    result = pdf_text.text_of(regions)
    check_garbled(result, config.max_garbled_fraction, unmapped)
    pdf_text.check_order(result, config.max_scattered_fraction)
    return result, tuple(done)
