"""Hard-wrapped lines: text that was broken at a fixed width, as in mail and old plain text files.

A rule of our own. A break is a wrap when the first word of the next line would not have fitted into
the width of the text. Where most breaks inside of paragraphs are, those breaks become spaces
(nothing between Chinese characters). Blank lines stay, and so do breaks beside indented lines, list
items, tables and headings, and every break that is no wrap: verse has short lines.
"""

import re

from data_beam.clean.width import width

_MIN_WRAPS = 4
_MIN_SHARE = 0.6
_WIDTHS = range(40, 121)
_APART = re.compile(r"\s|[-*+•·|>#=~_]|\d{1,3}[.)、]|[(（][\d一二三四五六七八九十]{1,3}[)）]"
                    r"|第\S{1,6}[条章节回]")
"""Lines that begin so stand for themselves."""
_FULL_WIDTH = re.compile("[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uf900-\ufaff\ufe30-\ufe4f"
                         "\uff00-\uff60\uffe0-\uffe6\U00020000-\U0003fffd]")


def rejoin(text: str) -> str:
    """The text with wrapped lines joined, or unchanged if it is not hard-wrapped."""
    lines = text.split("\n")
    widths = [width(line) for line in lines]
    # A break is inside a paragraph when there is plain text on both of its sides.
    plain = [bool(line) and not _APART.match(line) for line in lines]
    inside = [i for i in range(len(lines) - 1) if plain[i] and plain[i + 1]]
    if len(inside) < _MIN_WRAPS:
        return text
    # A few lines may be longer than the rest: an address cannot be broken.
    column = sorted(widths[i] for i in inside)[(len(inside) - 1) * 19 // 20]
    if column not in _WIDTHS:
        return text
    wraps = {i for i in inside
             if widths[i] <= column and widths[i] + _needed(lines[i], lines[i + 1]) > column}
    if len(wraps) < _MIN_WRAPS or len(wraps) < _MIN_SHARE * len(inside):
        return text
    pieces: list[str] = []
    for i, line in enumerate(lines):
        pieces.append(line)
        if i in wraps:
            pieces.append(_joint(line, lines[i + 1]))
        elif i < len(lines) - 1:
            pieces.append("\n")
    return "".join(pieces)


def _joint(line: str, following: str) -> str:
    wide = _FULL_WIDTH.match(line[-1]) or _FULL_WIDTH.match(following[0])
    divided = line.endswith("-") and line[-2:-1].isalpha() and following[0].islower()
    return "" if wide or divided else " "


def _needed(line: str, following: str) -> int:
    """Columns that the next line's first word takes behind a line."""
    if _FULL_WIDTH.match(following[0]):
        # A full stop may not begin a line, so one more character may have come down with it.
        return 4
    first = following.split(None, 1)[0]
    cut = _FULL_WIDTH.search(first)
    word = first[:cut.start()] if cut else first
    return len(_joint(line, following)) + width(word)
