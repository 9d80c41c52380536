"""The layout of a PDF page: spans of characters to rows, columns and tables, in reading order.

Coordinates are PDF points from the lower left corner of the page, y upwards.
"""

import bisect
import dataclasses
import itertools
import statistics
from collections.abc import Sequence

# A gap of this many line heights between two characters of a line is no word space: a cell or a
# column ends there.
SPAN_GAP = 0.8
_WORD_GAP = 0.12
_BIN = 2.0
_MIN_BINS, _MAX_BINS = 20, 8000  # 40 points, and more than the widest page that PDF allows
_MAX_CROSSING = 0.4
_MIN_COLUMN_SPANS = 4
_MIN_COLUMN_WIDTH_CHARACTERS = 15
_LAST_LINE = 1.5
_MIN_TABLE_ROWS = 3
_MIN_TABLE_CELLS = 3
_MAX_TABLE_CELLS = 100
_ALIGNED_POINTS = 3.0
_MIN_ALIGNED = 0.7


@dataclasses.dataclass(slots=True)
class Span:
    """Characters that stand together on a line."""

    text: str
    x0: float
    x1: float
    y0: float
    y1: float
    size: float
    """Of the font, in points."""
    fixed: bool
    """Of fixed pitch, as program text is."""

    @property
    def middle(self) -> float:
        return (self.y0 + self.y1) / 2

    @property
    def height(self) -> float:
        return self.y1 - self.y0


@dataclasses.dataclass(slots=True)
class Row:
    """Spans of one line, from left to right."""

    spans: list[Span]
    table: bool = False

    @property
    def x0(self) -> float:
        return self.spans[0].x0

    @property
    def x1(self) -> float:
        return max(span.x1 for span in self.spans)

    @property
    def main(self) -> Span:
        """The span that says how large the row's letters are: its longest."""
        return max(self.spans, key=lambda span: len(span.text))

    @property
    def text(self) -> str:
        """The row's words; cells of a table are separated by a tab."""
        parts = [self.spans[0].text]
        for left, right in itertools.pairwise(self.spans):
            gap = right.x0 - left.x1
            if self.table and gap > SPAN_GAP * right.height:
                parts.append("\t")
            elif gap > _WORD_GAP * right.height and not parts[-1].endswith(" "):
                parts.append(" ")
            parts.append(right.text)
        return "".join(parts).strip()


@dataclasses.dataclass(slots=True)
class Region:
    """Rows that are read from top to bottom: a page, or a piece of one of its columns."""

    rows: list[Row]


def _characters(text: str) -> int:
    """Width of a text in letters; a character of Chinese or Japanese is as wide as two."""
    return sum(2 if character >= "\u2e80" else 1 for character in text)


def rows_of(spans: Sequence[Span]) -> list[Row]:
    """Spans put together to lines, from top to bottom."""
    rows: list[Row] = []
    longest: Span | None = None  # of the row being put together
    for span in sorted(spans, key=lambda s: (-s.middle, s.x0)):
        if longest is not None:
            overlap = min(longest.y1, span.y1) - max(longest.y0, span.y0)
            if overlap > 0.5 * min(longest.height, span.height):
                rows[-1].spans.append(span)
                longest = max(longest, span, key=lambda s: len(s.text))
                continue
        rows.append(Row([span]))
        longest = span
    for row in rows:
        row.spans.sort(key=lambda s: s.x0)
    return rows


def _gutter(spans: Sequence[Span]) -> float | None:
    """Where white space divides the spans into two columns of prose, if it does."""
    left_edge, right_edge = min(s.x0 for s in spans), max(s.x1 for s in spans)
    bins = int((right_edge - left_edge) / _BIN) + 1
    if not _MIN_BINS <= bins <= _MAX_BINS or len(spans) < 2 * _MIN_COLUMN_SPANS:
        return None
    steps = [0] * (bins + 1)
    for span in spans:
        steps[int((span.x0 - left_edge) / _BIN)] += 1
        steps[int((span.x1 - left_edge) / _BIN) + 1 if span.x1 < right_edge else bins] -= 1
    crossing, covered = [], 0
    for step in steps[:bins]:
        covered += step
        crossing.append(covered)
    low = min(crossing[bins // 6:-(bins // 6)])
    if low > _MAX_CROSSING * len(spans):
        return None
    # The widest run of bins that as few as possible spans cross.
    best, begin = (0, 0), None
    for i in range(bins // 6, bins - bins // 6 + 1):
        if i < bins - bins // 6 and crossing[i] <= low:
            begin = i if begin is None else begin
        elif begin is not None:
            best = max(best, (i - begin, begin), key=lambda run: run[0])
            begin = None
    if best[0] == 0:
        return None
    x = left_edge + (best[1] + best[0] / 2) * _BIN
    for side in ([s for s in spans if s.x1 <= x], [s for s in spans if s.x0 >= x]):
        if len(side) < _MIN_COLUMN_SPANS:
            return None
        width = max(s.x1 - s.x0 for s in side)  # of one column, where the side has several
        full = [s for s in side if s.x1 - s.x0 > 0.6 * width]
        if (2 * len(full) < len(side) or statistics.median(_characters(s.text) for s in full)
                < _MIN_COLUMN_WIDTH_CHARACTERS):
            return None
    return x


def regions_of(spans: Sequence[Span]) -> list[Region]:
    """Rows of a page in reading order.

    Columns are found by the white space between them, and read one after the other. What crosses
    that space (a title, a wide figure's caption) divides the columns into those above and below it.
    """
    spans = [span for span in spans if span.text.strip()]
    if not spans:
        return []
    x = _gutter(spans)
    if x is None:
        return [Region(rows_of(spans))]
    sides = [sorted((s for s in spans if keep(s)), key=lambda s: -s.middle)
             for keep in (lambda s: s.x1 <= x, lambda s: s.x0 >= x)]
    taken = [0, 0]
    result: list[Region] = []
    across: Region | None = None  # the lines that cross, while no columns are between them
    for row in [*_across(rows_of([s for s in spans if s.x0 < x < s.x1]), *sides), None]:
        bottom = row.main.middle if row else float("-inf")
        for side, spans_of_side in enumerate(sides):
            begin = end = taken[side]
            while end < len(spans_of_side) and spans_of_side[end].middle > bottom:
                end += 1
            taken[side] = end
            if end > begin:
                result += regions_of(spans_of_side[begin:end])
                across = None
        if row and across:
            across.rows.append(row)
        elif row:
            across = Region([row])
            result.append(across)
    return result


def _across(rows: list[Row], left: list[Span], right: list[Span]) -> list[Row]:
    """Lines that cross the gutter, each with the short last line of its paragraph, if it has one:
    one in the left column (whence it is taken) close below, with nothing beside it on the right."""
    result: list[Row] = []
    for row in rows:
        result.append(row)
        main = row.main
        at = bisect.bisect_left(left, -main.middle, key=lambda s: -s.middle)
        if at == len(left):
            continue
        last = left[at]
        beside = bisect.bisect_left(right, -last.middle - last.height / 2, key=lambda s: -s.middle)
        if (abs(last.x0 - row.x0) < _ALIGNED_POINTS
                and main.middle - last.middle < _LAST_LINE * main.height
                and not (beside < len(right)
                         and right[beside].middle > last.middle - last.height / 2)):
            result.append(Row([left.pop(at)]))
    return result


def mark_tables(rows: list[Row], drop_garbled: bool) -> tuple[list[Row], int]:
    """Marks rows of tables, and leaves out tables whose cells do not line up.

    A table is a run of at least 3 rows of at least 3 cells, with rows of 2 before or after. A cell
    lines up when its left edge, right edge or middle is where a cell of the row above or below has
    it. Below 0.7 of them the text of the cells comes in no order that could be read.

    Returns:
      The rows that stay, and how many tables went.
    """
    kept: list[Row] = []
    dropped, begin = 0, 0
    cells = [len(_cells(row)) if len(row.spans) > 1 else 1 for row in rows]
    while begin < len(rows):
        end = begin
        while end < len(rows) and cells[end] > 1:
            end += 1
        block = rows[begin:end]
        if sum(count >= _MIN_TABLE_CELLS for count in cells[begin:end]) < _MIN_TABLE_ROWS:
            end = max(end, begin + 1)
            kept += rows[begin:end]
        elif drop_garbled and _aligned(block) < _MIN_ALIGNED:
            dropped += 1
        else:
            for row in block:
                row.table = True
            kept += block
        begin = end
    return kept, dropped


def _cells(row: Row) -> list[tuple[float, float]]:
    cells: list[tuple[float, float]] = []
    for span in row.spans:
        if cells and span.x0 - cells[-1][1] <= SPAN_GAP * span.height:
            cells[-1] = (cells[-1][0], max(cells[-1][1], span.x1))
        else:
            cells.append((span.x0, span.x1))
    return cells


def _aligned(block: Sequence[Row]) -> float:
    """Share of a table's cells that line up with one of the row above or below."""
    cells = [_cells(row) for row in block]
    if max(map(len, cells)) > _MAX_TABLE_CELLS:
        return 0.0  # no table; and comparing them all would take for ever
    aligned = total = 0
    for i, row in enumerate(cells):
        beside = cells[max(0, i - 1):i] + cells[i + 1:i + 2]
        for begin, end in row:
            total += 1
            aligned += any(
                min(abs(begin - b), abs(end - e), abs(begin + end - b - e) / 2) < _ALIGNED_POINTS
                for other in beside for b, e in other)
    return aligned / total
