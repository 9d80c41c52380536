"""Running headers, footers and page numbers of a PDF, told by their repetition over the pages."""

import itertools
import re
from collections import Counter
from collections.abc import Sequence

from data_beam.extract.pdf_layout import Row, Span, rows_of

_EDGE_ROWS = 2
_MIN_REPEATS = 3
_MIN_BAND_PAGES = 4
_MIN_BAND_SHARE = 0.6
_BAND_GAP = 1.4
_Y_BIN = 3.0
_DIGITS = re.compile(r"[0-9０-９]+|\b[ivxlc]+\b")
_PAGE_NUMBER = re.compile(
    r"(?:page\s*)?[-–—\s]*\d{1,4}[-–—\s]*(?:(?:/|of)\s*\d{1,4})?|第\s*\d{1,4}\s*页(?:\s*[,，/]?\s*共"
    r"\s*\d{1,4}\s*页)?", re.IGNORECASE)


def _edges(rows: Sequence[Row]) -> list[tuple[int, int, bool]]:
    """The outermost rows of a page as (index, y in bins, stands apart from the text)."""
    pitches = sorted(a.main.middle - b.main.middle for a, b in itertools.pairwise(rows))
    pitch = pitches[len(pitches) // 2] if pitches else 0.0
    found = []
    for index in dict.fromkeys([*range(min(_EDGE_ROWS, len(rows))),
                                *range(max(0, len(rows) - _EDGE_ROWS), len(rows))]):
        inward = index + 1 if index < _EDGE_ROWS else index - 1
        apart = not 0 <= inward < len(rows) or abs(
            rows[index].main.middle - rows[inward].main.middle) > _BAND_GAP * pitch
        found.append((index, round(rows[index].main.middle / _Y_BIN), apart))
    return found


def without_edges(pages: Sequence[list[Span]]) -> tuple[list[list[Span]], int]:
    """The pages' spans without running headers, footers and page numbers.

    Of the two topmost and two lowest lines of each page these go:

    - a line that stands, but for its numbers, at the same height on at least 3 pages;
    - a line at a height where at least 6 of 10 pages (of at least 4) have a line set off from the
      text: headers that name the section differ from page to page;
    - a line that is a page number and nothing else, the outermost one only.

    Returns:
      The spans by page, and how many lines were left out.
    """
    rows = [rows_of(spans) for spans in pages]
    edges = [_edges(page) for page in rows]
    texts: Counter[tuple[str, int]] = Counter()
    bands: Counter[int] = Counter()

    def key(number: int, index: int, y: int) -> tuple[str, int]:
        return _DIGITS.sub("#", rows[number][index].text), y

    for number, page in enumerate(edges):
        texts.update({key(number, index, y) for index, y, _ in page})
        bands.update({y for _, y, apart in page if apart})
    result, left_out = [], 0
    for number, page in enumerate(edges):
        gone: set[int] = set()
        last = len(rows[number]) - 1
        for index, y, apart in page:
            near = max(bands[y], bands[y - 1], bands[y + 1])
            if (texts[key(number, index, y)] >= _MIN_REPEATS
                    or (apart and len(pages) >= _MIN_BAND_PAGES
                        and near >= _MIN_BAND_SHARE * len(pages))
                    or (index in (0, last) and apart and last > 0
                        and _PAGE_NUMBER.fullmatch(rows[number][index].text))):
                gone.add(index)
        left_out += len(gone)
        result.append([span for index, row in enumerate(rows[number]) if index not in gone
                       for span in row.spans])
    return result, left_out
