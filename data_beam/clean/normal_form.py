"""Unicode's normal forms, in time linear in the text."""

import functools
import unicodedata
from collections.abc import Iterable
from typing import Literal

import numpy as np

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]

MOST_MARKS = 30
"""Marks behind a character in the Stream-Safe Text Format (Unicode Standard Annex 15, section 13),
"significantly beyond what is required for any linguistic or technical usage"."""
_PLANES = 0x20000
"""Marks are in planes 0 and 1; the others hold ideographs, tags and private use."""
_JOINER = "\u034f"  # combining grapheme joiner: invisible, ends a run of marks


@functools.cache
def _is_mark() -> np.ndarray:
    """By code point, whether it is a mark that has an order among others: [_PLANES] bool."""
    return np.fromiter((unicodedata.combining(chr(code)) > 0 for code in range(_PLANES)), bool,
                       _PLANES)


def places_of_marks(text: str) -> np.ndarray:
    """Indices of the marks that have an order among others: [marks] int."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    return np.flatnonzero(_is_mark()[np.minimum(codes, _PLANES - 1)])


def parted(text: str, places: Iterable[int]) -> str:
    """The text with U+034F before each of the places, which ascend."""
    cuts = list(places)
    return _JOINER.join(text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True))


def stream_safe(text: str) -> str:
    """The text with U+034F behind each 30th mark of a run, for a library that normalises it."""
    if text.isascii():
        return text
    marks = places_of_marks(text)
    if not (marks[MOST_MARKS:] - marks[:-MOST_MARKS] == MOST_MARKS).any():
        return text
    number = np.arange(len(marks))
    first = np.concatenate([[True], np.diff(marks) > 1])  # of its run
    in_run = number - np.maximum.accumulate(np.where(first, number, 0))
    return parted(text, marks[(in_run > 0) & (in_run % MOST_MARKS == 0)])


def normalize(form: Form, text: str) -> str:
    """The text in a normal form.

    Python puts the marks behind a character into their order in time that grows with the square of
    their number: ten seconds for 100,000. So runs of more than 30 are parted by U+034F before, as
    in the Stream-Safe Text Format.
    """
    return unicodedata.normalize(form, stream_safe(text))
