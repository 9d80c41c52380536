"""report.html: the facts as one page that needs no network, no server and no other file.

Texts of documents may be hostile. Jinja2 escapes every value, `visible` replaces control
characters, and the page's Content-Security-Policy forbids everything that it does not contain.
"""

import base64
import functools
import hashlib
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jinja2
from markupsafe import Markup, escape

Facts = Mapping[str, Any]
_WIDTH, _HEIGHT = 340, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 8, 8, 18, 24
# Control characters become their pictures, or U+FFFD where they have none.
_CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"}
_CONTROLS |= {0x7F: 0x2421, **dict.fromkeys(range(0x80, 0xA0), 0xFFFD)}
# Invisible characters that change the direction of the text after them, even outside an element.
_CONTROLS |= dict.fromkeys([0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD)


def render(facts: Facts) -> str:
    """The page of the facts that `facts.make` made."""
    return _environment().get_template("page.html.jinja").render(
        facts=facts, glance=glance(facts), total=facts["total"],
        code={row["language"] for entry in facts["samples"]["kept"] for row in entry["samples"]
              if row["language_score"] is None})


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("data_beam.reporting", ""), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined, finalize=visible)
    environment.filters.update(
        number=number, rounded=rounded, percent=percent, megabytes=megabytes, change=change,
        duration=duration, few=few, sizes=sizes, marked=marked, histogram=histogram,
        csp_hash=csp_hash)
    return environment


def visible(value: Any) -> Any:
    """A value as the page shows it: None is empty, control characters are visible."""
    if value is None or isinstance(value, Markup):
        return value or ""
    return value.translate(_CONTROLS) if isinstance(value, str) else value


def marked(text: str, marks: Iterable[Sequence[int]]) -> Markup:
    """Text with <mark> around spans that are in order and do not overlap."""
    parts, position = [], 0
    for start, end in marks:
        parts += [escape(visible(text[position:start])),
                  Markup("<mark>%s</mark>") % visible(text[start:end])]
        position = end
    return Markup("").join([*parts, escape(visible(text[position:]))])


def csp_hash(script: str) -> str:
    """The hash by which the Content-Security-Policy allows the page's own script."""
    return base64.b64encode(hashlib.sha256(str(script).encode()).digest()).decode()


def number(value: float | None) -> str:
    """A count or a measure: 1,234 or 0.0123."""
    if value is None:
        return "–"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.3g}"


def rounded(value: float | None) -> str:
    """A count in little space: 12,345 or 1.23 M or 4.56 G."""
    for size, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M")):
        if value is not None and abs(value) >= size:
            return f"{value / size:.2f} {unit}"
    return number(value)


def percent(part: float, whole: float = 1.0) -> str:
    """A share: 12.3 %, or <0.1 % of a small part that is not zero."""
    if not part or not whole:
        return "0 %"
    share = 100 * part / whole
    if share < 0.1:
        return "<0.1 %"
    return f"{share:.1f} %" if share < 99.95 or part == whole else ">99.9 %"


def megabytes(size: float) -> str:
    """Bytes as MB or GB of 10^6 and 10^9."""
    return f"{size / 1e9:,.2f} GB" if size >= 1e9 else f"{size / 1e6:,.2f} MB"


def change(pair: Sequence[float | None], share: bool = False) -> str:
    """The difference of [then, now] with its sign: in percentage points for shares, else absolute
    and relative to `then`."""
    then, now = pair
    if then is None or now is None:
        return "–"
    if now == then:
        return "="
    sign = "+" if now > then else "−"
    if share:
        return f"{sign}{100 * abs(now - then):.1f} pp"
    return f"{sign}{number(abs(now - then))}" + (
        f" ({sign}{100 * abs(now - then) / then:,.1f} %)" if then else "")


def duration(seconds: float) -> str:
    """8 s, 12 min 3 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def few(parts: Sequence[tuple[str, float]], whole: float, most: int = 8) -> list[tuple[str, float]]:
    """The first parts of a whole, and the rest as one called "others"."""
    shown = list(parts if len(parts) <= most else parts[:most - 1])
    rest = whole - sum(size for _, size in shown)
    return [*shown, ("others", rest)] if rest > 0 else shown


def sizes(counts: Sequence[Sequence[int]]) -> list[tuple[str, int, int]]:
    """Label, smallest size and clusters, from pairs (size, clusters); sizes of 8 and more are
    grouped by powers of two."""
    steps: dict[int, int] = {}
    for size, count in counts:
        low = size if size < 8 else 1 << (size.bit_length() - 1)
        steps[low] = steps.get(low, 0) + count
    return [(str(low) if low < 8 else f"{low} to {2 * low - 1}", low, count)
            for low, count in sorted(steps.items())]


def glance(facts: Facts) -> list[tuple[str, bool]]:
    """The most important facts in sentences, and which of them are warnings."""
    total = facts["total"]
    lines: list[tuple[str, bool]] = []
    sources = sorted(facts["sources"], key=lambda entry: -entry["bytes"])
    if sources and total["bytes"]:
        share = sources[0]["bytes"] / total["bytes"]
        lines.append((f"The largest source is {sources[0]['name']}: {percent(share)} of the text.",
                      len(sources) > 1 and share > 0.8))
    reasons = sorted(((row["documents"], stage["stage"], row["reason"])
                      for stage in facts["funnel"] for row in stage["reasons"]), reverse=True)
    lost = total["dropped"] + total["dead_letters"]
    if reasons:
        count, stage, reason = reasons[0]
        text = total["dropped_characters"] + total["characters"]
        lines.append((f"{number(lost)} of {number(total['read'])} documents "
                      f"({percent(total['dropped_characters'], text)} of the characters) were not "
                      f"kept; the most frequent reason is “{reason}” ({stage}): {number(count)}, "
                      f"{percent(count, lost)} of them.", lost > 0.9 * total["read"]))
    else:
        lines.append(("Every document that was read is kept.", False))
    for entry in facts["sources"]:
        if entry["read"] and not entry["kept"]:
            lines.append((f"Nothing of source {entry['name']} was kept.", True))
        elif entry["kept"] < 0.2 * entry["read"]:
            lines.append((f"Only {percent(entry['kept'], entry['read'])} of source {entry['name']} "
                          "was kept.", True))
    unknown = sum(row["documents"] for row in facts["mixture"]["language"]["rows"]
                  if row["language"] == "und")
    if unknown:
        lines.append((f"The language of {number(unknown)} documents is unknown (und): "
                      f"{percent(unknown, total['kept'])}.", unknown > 0.1 * total["kept"]))
    licences = facts["mixture"]["licence"]["rows"]
    if licences:
        shown = ", ".join(f"{row['licence']} {percent(row['bytes'], total['bytes'])}"
                          for row in licences[:3])
        lines.append((f"Licences by share of the text: {shown}"
                      f"{' and others' if len(licences) > 3 else ''}.", False))
    near = facts["duplicates"]["near_copies"]
    if near and near["largest"]:
        lines.append((f"The largest cluster of near copies has "
                      f"{number(near['largest'][0]['documents'])} documents.", False))
    if total["dead_letters"]:
        lines.append((f"{number(total['dead_letters'])} records could not be read: "
                      f"{percent(total['dead_letters'], total['read'])}.",
                      total["dead_letters"] > 0.05 * total["read"]))
    return lines


def histogram(found: Mapping[str, Any], median: float) -> dict[str, Any]:
    """Coordinates of a histogram's columns, ticks and median in an SVG of 340 x 150, from `scale`,
    `edges` and `counts` as `Distribution.facts` gives them."""
    edges, counts = found["edges"], found["counts"]
    logarithmic, first, last = found["scale"] == "logarithmic", edges[0], edges[-1]

    def x(value: float) -> float:
        if logarithmic:
            share = math.log(value / first) / math.log(last / first)
        else:
            share = (value - first) / (last - first)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def anchor(at: float, margin: int = 14) -> str:
        return "start" if at < _LEFT + margin else (
            "end" if at > _WIDTH - _RIGHT - margin else "middle")

    floor, most = _HEIGHT - _BOTTOM, max(counts)
    columns = []
    for (low, high), count in zip(itertools.pairwise(edges), counts, strict=True):
        if count:
            height = max(1.0, count / most * (floor - _TOP))
            columns.append({
                "x": f"{x(low) + 0.5:.1f}", "y": f"{floor - height:.1f}", "height": f"{height:.1f}",
                "width": f"{max(0.8, x(high) - x(low) - 1):.1f}", "low": low, "high": high,
                "count": count})
    middle = x(min(max(median, first), last))
    return {
        "width": _WIDTH, "height": _HEIGHT, "left": _LEFT, "right": _WIDTH - _RIGHT, "top": _TOP,
        "floor": floor, "total": sum(counts), "columns": columns, "first": first, "last": last,
        "ticks": [{"x": f"{x(tick):.1f}", "label": _short(tick), "anchor": anchor(x(tick))}
                  for tick in _ticks(first, last, logarithmic)],
        "median": {"x": f"{middle:.1f}", "value": median, "anchor": anchor(middle, 45)}}


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
