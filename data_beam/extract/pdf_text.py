"""Rows of a PDF to text: running headers and footers are left out, lines are joined to paragraphs,
and the result is checked."""

import itertools
import math
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

from data_beam.extract.errors import NoText
from data_beam.extract.pdf_layout import Region, Row, Span, rows_of

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

_CJK = re.compile("[\u2e80-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff"
                  "\u201c\u201d\u2018\u2019\u2026\u2014]")
_HAN_END = "[\u2e80-\u9fff\uf900-\ufaff\uff00-\uff0e\uff1a-\uffef\U00020000-\U0003ffff]"
_BULLET = re.compile(r"(?:[•●○◦▪■□◆▶►‣⁃∙·※*]|[-–—]\s|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4})[.)](?=\s)|"
                     r"[（(]?[一二三四五六七八九十\d]{1,3}[)）、]|\d{1,2}(?:\.\d{1,2})+\.?\s)")
_SIGNS = "•●○◦▪■□◆▶►‣⁃∙※"
_SENTENCE_END = tuple(".!?:;。！？：；…”\"')）")
_HYPHENS = ("-", "\u2010", "\xad")
_LEFT = re.compile(r"(?:^|(\W))(\w+)[-\u2010\xad]$")
_RIGHT = re.compile(r"\w+")
_WORD = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")
_SHORT = 0.25
_INDENT = 0.8
_LEADING = 1.35

_LETTER = re.compile(r"[^\W\d_]")
_MIN_LETTERS = 40
_EXCERPT = 80


def _pitch(rows: Sequence[Row], least: float = -math.inf) -> float:
    """The median distance of a row to the next, of the distances above `least`."""
    steps = [step for a, b in itertools.pairwise(rows)
             if (step := a.main.middle - b.main.middle) > least]
    return statistics.median_high(steps) if steps else 0.0


def _edges(rows: Sequence[Row]) -> list[tuple[int, int, bool]]:
    """The outermost rows of a page as (index, y in bins, stands apart from the text)."""
    pitch = _pitch(rows)
    found = []
    for index in dict.fromkeys([*range(min(_EDGE_ROWS, len(rows))),
                                *range(max(0, len(rows) - _EDGE_ROWS), len(rows))]):
        inward = index + 1 if index < _EDGE_ROWS else index - 1
        apart = not 0 <= inward < len(rows) or abs(
            rows[index].main.middle - rows[inward].main.middle) > _BAND_GAP * pitch
        found.append((index, round(rows[index].main.middle / _Y_BIN), apart))
    return found


def without_edges(pages: Sequence[list[Span]]) -> tuple[list[list[Span]], int]:
    """The pages' spans without running headers, footers and page numbers, and how many lines were
    left out.

    Of the two topmost and two lowest lines of each page these go:

    - a line that stands, but for its numbers, at the same height on at least 3 pages;
    - a line at a height where at least 6 of 10 pages (of at least 4) have a line set off from the
      text: headers that name the section differ from page to page;
    - a line that is a page number and nothing else, the outermost one only.
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


class Words:
    """Counts of the words inside a document's lines, which show how to join divided words."""

    def __init__(self, lines: Iterable[str]):
        self._count: Counter[str] = Counter()
        for line in lines:
            self._count.update(word.lower() for word in _WORD.findall(line))

    def join(self, left: str, right: str) -> str:
        """Joins two lines of which the first ends with a hyphen.

        The hyphen stays if the document has the hyphenated word elsewhere and the joined word not
        more often, if the word has another hyphen (state-of-the-art), and before a capital or a
        digit (UTF-8); otherwise it only divided the word.
        """
        before, after = _LEFT.search(left), _RIGHT.match(right)
        if not before or not after:
            return left.replace("\xad", "-") + right
        first, second = before.group(2), after.group()
        whole = self._count[(first + second).lower()]
        hyphenated = self._count[f"{first}-{second}".lower()]
        if whole > hyphenated:
            keep = False
        elif hyphenated or before.group(1) in _HYPHENS:
            keep = True
        else:
            keep = not second[0].islower()
        return left[:-1] + ("-" if keep else "") + right


def _join(left: str, right: str, words: Words) -> str:
    if left.endswith(_HYPHENS):
        return words.join(left, right)
    if _CJK.match(left[-1:]) and _CJK.match(right[:1]):
        return left + right
    # An English word at the end of a line of Chinese: whether a space was there is not known.
    if re.match(_HAN_END, left[-1:]) or re.match(_HAN_END, right[:1]):
        return left + right
    return f"{left} {right}"


class _Paragraph:
    def __init__(self, row: Row):
        self.rows = [row]
        self.bullet = bool(_BULLET.match(row.text))
        self.fixed = row.main.fixed

    @property
    def last(self) -> Row:
        return self.rows[-1]


def _continues(paragraph: _Paragraph, row: Row, pitch: float, left: float, right: float) -> bool:
    """Whether a row goes on where the paragraph's last row stopped, inside one region."""
    above = paragraph.last
    a, b = above.main, row.main
    if row.table or above.table or paragraph.fixed or b.fixed:
        return False
    if max(a.size, b.size) > 1.15 * min(a.size, b.size):
        return False
    distance = a.middle - b.middle
    if distance > _LEADING * max(pitch, b.height) and distance > 1.15 * pitch:
        return False
    marker = _BULLET.match(row.text)
    if marker and (marker.group()[0] in _SIGNS or paragraph.bullet or abs(row.x0 - above.x0) > 1
                   or above.text.endswith(_SENTENCE_END)):
        return False
    indent = _INDENT * b.size
    if paragraph.bullet:
        if row.x0 < paragraph.rows[0].x0 - indent:
            return False
    elif row.x0 > above.x0 + indent:
        return False
    if row.x0 < above.x0 - indent and len(paragraph.rows) > 1:
        return False
    return above.text.endswith(_HYPHENS) or above.x1 > right - _SHORT * (right - left)


def _goes_on(paragraph: _Paragraph, row: Row, right: float, left: float) -> bool:
    """Whether a paragraph goes on in the first row of the next column or page."""
    above, text = paragraph.last, row.text
    if row.table or above.table or paragraph.fixed or row.main.fixed or _BULLET.match(text):
        return False
    if max(above.main.size, row.main.size) > 1.05 * min(above.main.size, row.main.size):
        return False
    end = above.text
    if end.endswith(_HYPHENS):
        return True
    if end.endswith(_SENTENCE_END) or above.x1 < right - _SHORT * (right - left):
        return False
    return text[:1].islower() or bool(_CJK.match(text[:1])) or end.endswith((",", "，", "、"))


def text_of(regions: Sequence[Region]) -> str:
    """The text of regions in reading order: paragraphs with a blank line between them.

    Rows of program text (fixed pitch) and of tables stay lines, the former with their indentation.
    """
    regions = [region for region in regions if region]
    words = Words(row.text for region in regions for row in region)
    paragraphs: list[_Paragraph] = []
    edges = (0.0, 0.0)
    for region in regions:
        ends = sorted(row.x1 for row in region)
        left, right = min(row.x0 for row in region), ends[int(0.9 * (len(ends) - 1))]
        pitch = _pitch(region, least=0.0)
        for index, row in enumerate(region):
            joins = bool(paragraphs) and (
                _continues(paragraphs[-1], row, pitch, left, right) if index
                else _goes_on(paragraphs[-1], row, edges[1], edges[0]))
            if joins:
                paragraphs[-1].rows.append(row)
            else:
                paragraphs.append(_Paragraph(row))
        edges = (left, right)
    return _written(paragraphs, words)


def _written(paragraphs: Sequence[_Paragraph], words: Words) -> str:
    pieces: list[str] = []
    block_left = 0.0
    before: _Paragraph | None = None
    for paragraph in paragraphs:
        row = paragraph.rows[0]
        together = before is not None and (
            (paragraph.fixed and before.fixed) or (row.table and before.last.table)) and \
            before.last.main.middle - row.main.middle < 2.2 * row.main.height
        if before is not None:
            pieces.append("\n" if together else "\n\n")
        if paragraph.fixed and not row.table:
            block_left = min(block_left, row.x0) if together else row.x0
            width = (row.main.x1 - row.main.x0) / max(1, len(row.main.text))
            pieces.append(" " * min(80, round((row.x0 - block_left) / max(width, 1.0))))
            pieces.append(row.text)
        else:
            text = row.text
            for following in paragraph.rows[1:]:
                text = _join(text, following.text, words)
            pieces.append(text.replace("\xad", "-"))
        before = paragraph
    return "".join(pieces)


def check_order(text: str, max_fraction: float) -> None:
    """Raises NoText (`scattered characters`) for a text whose characters are scattered, which shows
    that they were read in no order: a larger share of at least 40 letters than `max_fraction`.

    A letter is scattered if white space is on both sides of it: text set vertically or letter by
    letter, and read across its lines. Chinese words of one character do not stand so in running
    text, and of English, 5 % of the letters are words of their own at most.
    """
    letters = len(_LETTER.findall(text))
    scattered = sum(len(word) == 1 and bool(_LETTER.match(word)) for word in text.split())
    if letters >= _MIN_LETTERS and scattered > max_fraction * letters:
        raise NoText("scattered characters", f"{scattered / letters:.3f} of the letters stand "
                                             f"alone: {' '.join(text.split())[:_EXCERPT]!r}")
