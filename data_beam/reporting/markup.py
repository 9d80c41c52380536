"""HTML in which text is text: whatever comes from a document is escaped unless said otherwise."""

import html
from collections.abc import Iterable

# Control characters are no HTML; their pictures are.
_CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"}
_CONTROLS |= {0x7F: 0x2421, **dict.fromkeys(range(0x80, 0xA0), 0xFFFD)}
# Invisible characters that turn the direction of what follows, even outside an element.
_CONTROLS |= dict.fromkeys([0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD)
_VOID = frozenset({"meta", "br", "hr"})


class Html(str):
    """Markup that is safe to put into a page."""


Content = str | int | float | None
"""What elements hold: text to be escaped, numbers, `Html` as it is; None is nothing."""


def escape(content: Content) -> Html:
    """Text as markup, for elements and quoted attributes."""
    if content is None:
        return Html("")
    if isinstance(content, Html):
        return content
    return Html(html.escape(str(content).translate(_CONTROLS), quote=True))


def join(parts: Iterable[Content], separator: str = "") -> Html:
    """Parts one after the other."""
    return Html(separator.join(map(escape, parts)))


def tag(name: str, /, *content: Content, **attributes: Content) -> Html:
    """An element. `class_` is the attribute class, `aria_label` aria-label; None leaves one out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items() if value is not None)
    start = f"<{name}{written}>"
    return Html(start if name in _VOID else f"{start}{join(content)}</{name}>")


def marked(text: str, marks: Iterable[Iterable[int]]) -> Html:
    """Text with <mark> around spans that are in order and do not overlap."""
    parts: list[Content] = []
    position = 0
    for start, end in marks:
        parts += [text[position:start], tag("mark", text[start:end])]
        position = end
    return join([*parts, text[position:]])


def number(value: float | None) -> str:
    """A count or a measure as people write it: 1,234 or 0.0123."""
    if value is None:
        return "–"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1000 and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def rounded(value: int) -> str:
    """A count in little space: 12,345 or 1.23 M or 4.56 G."""
    for size, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M")):
        if value >= size:
            return f"{value / size:.2f} {unit}"
    return f"{value:,}"


def percent(part: float, whole: float = 1.0) -> str:
    """A share: 12.3 %, or <0.1 % of what is not nothing."""
    if not part or not whole:
        return "0 %"
    share = 100 * part / whole
    return "<0.1 %" if share < 0.1 else f"{share:.1f} %" if share < 99.95 or part == whole else (
        ">99.9 %")


def megabytes(size: float) -> str:
    """Bytes as MB or GB of 10^6 and 10^9."""
    return f"{size / 1e9:,.2f} GB" if size >= 1e9 else f"{size / 1e6:,.2f} MB"
