"""Bars and histograms, as SVG and CSS that need no script."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from data_beam.reporting.markup import Html, join, number, percent, tag

_WIDTH, _HEIGHT = 340, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 8, 8, 18, 24


def bar(share: float, kind: str = "") -> Html:
    """A bar of a share of the width it is given."""
    return tag("span", tag("span", class_=f"fill {kind}".strip(),
                           style=f"width:{100 * min(1.0, max(0.0, share)):.2f}%"), class_="bar")


def stacked(parts: Sequence[tuple[str, float]]) -> Html:
    """One bar of parts that follow each other, with a legend.

    Args:
      parts: name and size of each; the sizes sum to the whole.
    """
    whole = sum(size for _, size in parts)
    if not whole:
        return Html("")
    pieces = [tag("span", class_=f"part hue{i % 8}", style=f"width:{100 * size / whole:.3f}%",
                  title=f"{name}: {percent(size, whole)}") for i, (name, size) in enumerate(parts)]
    legend = [tag("li", tag("span", class_=f"key hue{i % 8}"), name, " ",
                  tag("span", percent(size, whole), class_="quiet"))
              for i, (name, size) in enumerate(parts)]
    return join([tag("div", *pieces, class_="stacked", aria_hidden="true"),
                 tag("ul", *legend, class_="legend")])


def histogram(histogram: Mapping[str, Any], median: float, label: str) -> Html:
    """Bars over an axis, the median marked.

    Args:
      histogram: `scale`, `edges` and `counts` as `Distribution.facts` gives them.
      median: of the numbers.
      label: what they are, for readers who do not see the picture.
    """
    edges, counts = histogram["edges"], histogram["counts"]
    logarithmic = histogram["scale"] == "logarithmic"
    first, last = edges[0], edges[-1]

    def place(value: float) -> float:
        if logarithmic:
            share = math.log(value / first) / math.log(last / first)
        else:
            share = (value - first) / (last - first)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    floor = _HEIGHT - _BOTTOM
    most, total = max(counts), sum(counts)
    shapes = [tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=floor, y2=floor, class_="axis")]
    for (low, high), count in zip(itertools.pairwise(edges), counts, strict=True):
        if not count:
            continue
        height = max(1.0, count / most * (floor - _TOP))
        left, right = place(low), place(high)
        shapes.append(tag(
            "rect", tag("title", f"{number(low)} to {number(high)}: {number(count)} "
                        f"({percent(count, total)})"),
            x=f"{left + 0.5:.1f}", y=f"{floor - height:.1f}",
            width=f"{max(0.8, right - left - 1):.1f}", height=f"{height:.1f}", class_="column"))
    for tick in _ticks(first, last, logarithmic):
        at = f"{place(tick):.1f}"
        shapes += [tag("line", x1=at, x2=at, y1=floor, y2=floor + 4, class_="axis"),
                   tag("text", _short(tick), x=at, y=_HEIGHT - 7, text_anchor=_anchor(place(tick)),
                       class_="tick")]
    at = place(min(max(median, first), last))
    shapes += [tag("line", x1=f"{at:.1f}", x2=f"{at:.1f}", y1=_TOP - 4, y2=floor, class_="median"),
               tag("text", f"median {number(median)}", x=f"{at:.1f}", y=_TOP - 7,
                   text_anchor=_anchor(at, 45), class_="tick")]
    return tag("svg", *shapes, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=(
        f"Histogram of {label}: from {number(first)} to {number(last)}, median {number(median)}"))


def _anchor(at: float, margin: int = 14) -> str:
    return "start" if at < _LEFT + margin else "end" if at > _WIDTH - _RIGHT - margin else "middle"


def _ticks(first: float, last: float, logarithmic: bool) -> list[float]:
    """A few round numbers in a range."""
    if logarithmic:
        low, high = math.ceil(math.log10(first)), math.floor(math.log10(last))
        step = max(1, math.ceil((high - low + 1) / 6))
        ticks = [10.0**power for power in range(low, high + 1, step)]
        if high - low < 2:
            ticks = sorted({*ticks, *(10.0**power * factor for factor in (2, 5)
                                      for power in range(low - 1, high + 1))})
    else:
        rough = (last - first) / 5
        unit = 10.0**math.floor(math.log10(rough))
        step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= rough)
        start = math.ceil(first / step)
        ticks = [number * step for number in range(start, math.floor(last / step) + 1)]
    return [tick for tick in ticks if first <= tick <= last]


def _short(value: float) -> str:
    """A tick's label: 20k, 1.5M, 0.25."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}" if abs(value) < 1e12 else f"{value:.0e}"
    return f"{value:.6g}"


def table(heads: Sequence[str], rows: Sequence[Sequence[Any]], caption: str,
          numeric: Sequence[int] = (), total: Sequence[Any] | None = None) -> Html:
    """A table that can be sorted by its heads.

    Args:
      heads: of the columns.
      rows: cells. A cell that is a pair holds what is shown and the number to sort by.
      caption: what it shows, in a few words.
      numeric: columns that are set to the right.
      total: a last row that is not sorted.
    """
    def cells(row: Sequence[Any], name: str) -> Html:
        made = []
        for i, cell in enumerate(row):
            shown, key = cell if isinstance(cell, tuple) else (cell, None)
            if isinstance(shown, (int, float)) and not isinstance(shown, bool):
                shown, key = number(shown), shown
            made.append(tag("th" if i == 0 else name, shown, scope="row" if i == 0 else None,
                            class_="number" if i in numeric else None, data_key=key))
        return tag("tr", *made)

    head = tag("tr", *(tag("th", text, scope="col", class_="number" if i in numeric else None)
                       for i, text in enumerate(heads)))
    return tag("div", tag(
        "table", tag("caption", caption), tag("thead", head),
        tag("tbody", *(cells(row, "td") for row in rows)),
        tag("tfoot", cells(total, "td")) if total else None), class_="wide", tabindex="0",
        role="region", aria_label=caption)
