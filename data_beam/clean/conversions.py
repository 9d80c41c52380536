"""All repairs and conversions of a recipe in their order, and the conversions that it can ask for.

OpenCC (Apache-2.0, dictionaries in the package) is only imported where a recipe asks for it.
"""

import functools
import re
import unicodedata
from collections.abc import Callable

from data_beam.base.characters import HAN
from data_beam.clean.repairs import clean_prose
from data_beam.config.checks import CHINESE
from data_beam.config.clean import CleanConfig

_HAN = re.compile(f"[{HAN}]")
# Without the middle dot and the length mark, which Chinese texts have too.
_KANA_OR_HANGUL = re.compile("[\u3041-\u3096\u30a1-\u30fa\u31f0-\u31ff\uff66-\uff9d"
                             "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3]")
_MAX_FOREIGN = 0.05
"""Kana and hangul as a share of them and Han: a Chinese text may quote some, and a Japanese or
Korean one has more even where most words are in Han characters (図書館で勉強 has a sixth)."""

_PUNCTUATION = "！（），：；？［］～"
"""The full-width forms of ASCII that are punctuation of Chinese (GB/T 15834-2011). Filters, which
only compare, fold more of them (`base.characters`)."""
_TO_ASCII = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F) if chr(code) not in _PUNCTUATION}

# Hard-wrapped text. The thresholds are our own.
_MIN_WRAPS = 4
_MIN_SHARE = 0.6
_WIDTHS = range(40, 121)
_OWN_LINE = re.compile(r"\s|[-*+•·|>#=~_]|\d{1,3}[.)、]|[(（][\d一二三四五六七八九十]{1,3}[)）]"
                       r"|第\S{1,6}[条章节回]")  # beginning of a line that is never joined
_WIDE = re.compile("[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uf900-\ufaff\ufe30-\ufe4f"
                   "\uff00-\uff60\uffe0-\uffe6\U00020000-\U0003fffd]")


def clean(text: str, config: CleanConfig, language: str = "") -> tuple[str, tuple[str, ...]]:
    """Clean prose, and the names of what changed it, in order.

    First the repairs of `clean_prose`, then what the recipe asks for: `fold_width`, the script
    (`opencc:t2s`), `rejoined_lines`. Scripts are converted in Chinese documents only; `language` is
    the code of the document's language, "" if it is not known.
    """
    text, changed = clean_prose(text, config.fix_mojibake, config.normalization)
    names = list(changed)
    converts = config.script != "none" and not text.isascii() and _is_chinese(text, language)
    for name, on, change in (
            ("fold_width", config.fold_width, fold_width),
            (f"opencc:{config.script}", converts, lambda text: converter(config.script)(text)),
            ("rejoined_lines", config.rejoin_lines, rejoin)):
        if on:
            result = change(text)
            if result != text:
                text = result
                names.append(name)
    return text, tuple(names)


def _is_chinese(text: str, language: str) -> bool:
    if language:
        return language in CHINESE
    foreign = len(_KANA_OR_HANGUL.findall(text))
    return not foreign or foreign <= _MAX_FOREIGN * (foreign + len(_HAN.findall(text)))


def fold_width(text: str) -> str:
    """The text with full-width letters, digits and signs as ASCII: Ａ１．５％ becomes A1.5%.

    The punctuation of Chinese stays, and so does half-width katakana, in which voicing marks are
    characters of their own.
    """
    return text if text.isascii() else text.translate(_TO_ASCII)


@functools.cache
def converter(conversion: str) -> Callable[[str], str]:
    """OpenCC's conversion of this name (`t2s`, `s2tw`, ...), as a function on texts."""
    import opencc
    return opencc.OpenCC(conversion).convert


def rejoin(text: str) -> str:
    """The text with hard-wrapped lines joined, or unchanged if it is not hard-wrapped.

    A break is a wrap when the first word of the next line would not have fitted into the width of
    the text. Where most breaks inside of paragraphs are wraps, those become spaces (nothing between
    Chinese characters). Blank lines stay, and so do breaks beside indented lines, list items,
    tables and headings, and all other breaks: verse has short lines.
    """
    lines = text.split("\n")
    widths = [display_width(line) for line in lines]
    # A break is inside a paragraph when there is plain text on both of its sides.
    plain = [bool(line) and not _OWN_LINE.match(line) for line in lines]
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
    wide = _WIDE.match(line[-1]) or _WIDE.match(following[0])
    divided = line.endswith("-") and line[-2:-1].isalpha() and following[0].islower()
    return "" if wide or divided else " "


def _needed(line: str, following: str) -> int:
    """Columns that the next line's first word takes behind a line."""
    if _WIDE.match(following[0]):
        # A full stop may not begin a line, so one more character may have come down with it.
        return 4
    first = following.split(None, 1)[0]
    cut = _WIDE.search(first)
    word = first[:cut.start()] if cut else first
    return len(_joint(line, following)) + display_width(word)


def display_width(line: str) -> int:
    """Columns of a line in a fixed-width font: wide characters count two, combining marks none."""
    if line.isascii():
        return len(line)
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1
               for character in line if not unicodedata.combining(character))
