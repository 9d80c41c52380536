"""Layout of a PDF page: groups spans of characters into rows, columns and tables in reading order.

Coordinates are PDF points from the lower left corner of the page, y upwards.
"""

import bisect
import dataclasses
import itertools
import re
import statistics
from collections.abc import Sequence

# A gap of this many line heights between two characters of a line is more than a word space: a cell
# or a column ends there.
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
_MAX_WRAPPED = 2
_LEADER = re.compile(r"(?:[.·…]\s*){4}")
_ITEM_NUMBER = re.compile(r"\W{1,2}|[(（]?\w{1,4}[.)）、]|\d{1,2}(?:\.\d{1,2})*\.?")
_EAST_ASIAN = re.compile("[\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"
                         "\U00020000-\U0003ffff]")
_MAX_STACKED = 3  # characters side by side in a vertical line, as in dates
_MIN_STACK = 5
_MAX_STACK_GAP = 0.6
_RUBY = 0.7


@dataclasses.dataclass(slots=True)
class Span:
    """Adjacent characters of a line."""

    text: str
    x0: float
    x1: float
    y0: float
    y1: float
    size: float  # of the font, in points
    fixed: bool  # of fixed pitch, as program text is
    rotated: bool = False  # at an angle to the page

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
        """The longest span, whose letters have the size of the row."""
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


Region = list[Row]  # read from top to bottom: a page, or a piece of one of its columns


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


def _is_code(line: str) -> bool:
    """Whether a line is a code, a number or an address, and no prose."""
    words = line.split()
    return not _EAST_ASIAN.search(line) and len(words) <= 2 and (
        len(words) < 2 or line.upper() == line or any(map(str.isdigit, line)))


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
    crossing = list(itertools.accumulate(steps[:bins]))
    low = min(crossing[bins // 6:-(bins // 6)])
    if low > _MAX_CROSSING * len(spans):
        return None
    inner = range(bins // 6, bins - bins // 6)
    widest = max((list(run) for is_low, run in itertools.groupby(
        inner, lambda place: crossing[place] <= low) if is_low), key=len)
    x = left_edge + (widest[0] + len(widest) / 2) * _BIN
    for side in ([s for s in spans if s.x1 <= x], [s for s in spans if s.x0 >= x]):
        if len(side) < _MIN_COLUMN_SPANS:
            return None
        width = max(s.x1 - s.x0 for s in side)  # of one column, where the side has several
        full = [s for s in side if s.x1 - s.x0 > 0.6 * width]
        # In letters; a character of Chinese or Japanese is as wide as two.
        widths = [len(s.text) + sum(character >= "\u2e80" for character in s.text) for s in full]
        if (2 * len(full) < len(side) or statistics.median(widths) < _MIN_COLUMN_WIDTH_CHARACTERS
                or 2 * sum(_is_code(s.text) for s in full) > len(full)):
            return None
    return x


def _stacks(spans: Sequence[Span]) -> list[list[Span]]:
    """Spans of one to three characters that stand close below each other, in lines from the top."""
    stacks: list[list[Span]] = []
    by_place: dict[int, list[Span]] = {}
    for span in sorted(spans, key=lambda s: (-s.y1, s.x0)):
        size, center = max(span.size, 1.0), (span.x0 + span.x1) / 2
        place = round(center / 2)
        for near in (place, place - 1, place + 1, place - 2, place + 2):
            stack = by_place.get(near)
            if stack and abs((stack[-1].x0 + stack[-1].x1) / 2 - center) < 0.3 * size \
                    and -0.5 * size < stack[-1].y0 - span.y1 < _MAX_STACK_GAP * size:
                stack.append(span)
                by_place[place] = stack
                break
        else:
            stacks.append([span])
            by_place[place] = stacks[-1]
    return stacks


def separate_vertical(spans: Sequence[Span]) -> tuple[list[Span], list[Span]]:
    """Spans of the horizontal text of a page, and of the vertical text in coordinates in which its
    lines go from left to right and from the top down.

    A page is vertical where at least half of its characters are in stacks of five or more, most of
    them East Asian. Then everything short between the first and the last line is part of the
    vertical text, Latin letters at an angle too, but for ruby (small characters beside a line).
    Otherwise text at an angle is left out.
    """
    horizontal = [span for span in spans if not span.rotated]
    short = [span for span in spans if len(span.text) <= _MAX_STACKED]
    lines = [stack for stack in _stacks(short) if len(stack) >= _MIN_STACK]
    stacked = [span for line in lines for span in line]
    if 2 * len(stacked) < sum(len(span.text) for span in horizontal) or not stacked or \
            2 * sum(bool(_EAST_ASIAN.match(span.text)) for span in stacked) < len(stacked):
        return horizontal, []
    size = statistics.median(span.size for span in stacked)
    left, right = min(s.x0 for s in stacked), max(s.x1 for s in stacked)
    bottom, top = min(s.y0 for s in stacked), max(s.y1 for s in stacked)
    inside = {id(span) for span in short if span.x0 >= left - size and span.x1 <= right + size
              and span.y0 >= bottom - 1 and span.y1 <= top + 1}
    rest = [span for span in horizontal if id(span) not in inside]
    turned: list[Span] = []
    for row in rows_of([
            Span(span.text, -span.y1, -span.y0, span.x0, span.x1, span.size, False)
            for span in spans if id(span) in inside and span.size > _RUBY * size]):
        for span in row.spans:
            if turned and turned[-1].y0 <= span.middle <= turned[-1].y1 \
                    and turned[-1].x0 <= span.x0 < turned[-1].x1 + SPAN_GAP * size:
                turned[-1].text += span.text
                turned[-1].x1 = max(span.x1, turned[-1].x1)
            else:
                turned.append(span)
    return rest, turned


def page_regions(horizontal: Sequence[Span], vertical: Sequence[Span]) -> list[Region]:
    """Rows of a page in reading order; vertical text follows what is above it."""
    if not vertical:
        return regions_of(horizontal)
    top = -min(span.x0 for span in vertical)
    return [*regions_of([span for span in horizontal if span.middle > top]), *regions_of(vertical),
            *regions_of([span for span in horizontal if span.middle <= top])]


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
        return [rows_of(spans)]
    sides = [sorted((s for s in spans if keep(s)), key=lambda s: -s.middle)
             for keep in (lambda s: s.x1 <= x, lambda s: s.x0 >= x)]
    taken = [0, 0]
    result: list[Region] = []
    across: Region | None = None  # the lines that cross, while no columns are between them
    for row in [*_across(rows_of([s for s in spans if s.x0 < x < s.x1]), *sides), None]:
        bottom = row.main.middle if row else float("-inf")
        for side, spans_of_side in enumerate(sides):
            begin = taken[side]
            end = bisect.bisect_left(spans_of_side, -bottom, begin, key=lambda s: -s.middle)
            taken[side] = end
            if end > begin:
                result += regions_of(spans_of_side[begin:end])
                across = None
        if row and across:
            across.append(row)
        elif row:
            across = [row]
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
    """Marks rows of tables, and leaves out tables whose cells do not line up. Returns the rows that
    stay, and how many tables were left out.

    A table is a run of at least 3 rows of at least 3 cells, with rows of 2 before or after. A cell
    lines up when its left edge, right edge or middle is where a cell of the row above or below has
    it. Below 0.7 of them the order of the cells' text cannot be known. Labels with a code each are
    a table too (see `_labels`).
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
            labels, after = _labels(rows, cells, begin)
            end = after if labels else max(end, begin + 1)
            kept += labels or rows[begin:end]
        elif drop_garbled and _aligned(block) < _MIN_ALIGNED:
            dropped += 1
        else:
            for row in block:
                row.table = True
            kept += block
        begin = end
    return kept, dropped


def _labels(rows: Sequence[Row], cells: Sequence[int], begin: int) -> tuple[list[Row], int]:
    """Rows of a list of labels with a code each, and the index behind it; no rows if there is none.

    At least 3 rows have two cells, the second ones at one left or right edge, the first ones no
    item numbers. Rows of one cell between them that begin where a column does go on in its cell.
    Program text and the lines of a table of contents are none.
    """
    if cells[begin] != 2:
        return [], begin
    end, wrapped = begin, 0
    for index in range(begin, len(rows)):
        if rows[index].main.fixed or _LEADER.search(rows[index].text):
            break
        if cells[index] == 2:
            end, wrapped = index + 1, 0
        elif cells[index] == 1 and wrapped < _MAX_WRAPPED:
            wrapped += 1
        else:
            break
    pairs = [row for row, count in zip(rows[begin:end], cells[begin:end], strict=True)
             if count == 2]
    if len(pairs) < _MIN_TABLE_ROWS:
        return [], begin
    firsts, seconds = zip(*map(_cells, pairs), strict=True)
    numbers = sum(bool(_ITEM_NUMBER.fullmatch(row.spans[0].text.strip())) for row in pairs)
    if 2 * numbers > len(pairs) or all(
            max(edges) - min(edges) > _ALIGNED_POINTS for edges in zip(*seconds, strict=True)):
        return [], begin
    columns = (min(first[0] for first in firsts), min(second[0] for second in seconds))
    result: list[Row] = []
    for row, count in zip(rows[begin:end], cells[begin:end], strict=True):
        if count == 2:
            row.table = True
            result.append(row)
            continue
        column = [abs(row.x0 - x) < 2 * row.main.size for x in columns]
        if not any(column):
            return [], begin
        edge = _cells(result[-1])[column.index(True)][1]
        cell = next(span for span in result[-1].spans if span.x1 == edge)
        space = "" if _EAST_ASIAN.match(cell.text[-1]) and _EAST_ASIAN.match(row.text) else " "
        cell.text += space + row.text
    return result, end


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
        return 0.0  # not a table; comparing all of them would take too long
    aligned = total = 0
    for i, row in enumerate(cells):
        beside = cells[max(0, i - 1):i] + cells[i + 1:i + 2]
        for begin, end in row:
            total += 1
            aligned += any(
                min(abs(begin - b), abs(end - e), abs(begin + end - b - e) / 2) < _ALIGNED_POINTS
                for other in beside for b, e in other)
    return aligned / total
