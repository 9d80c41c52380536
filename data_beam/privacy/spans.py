"""Spans of personal data in a text, and the normalised text that recognisers read.

Recognisers read the output of `to_ascii`. Those that have `start` and `stop` read a window from
`number_windows`, the others the whole text.
"""

import bisect
import dataclasses
import re
from collections.abc import Iterable, Iterator


@dataclasses.dataclass(frozen=True, order=True)
class Span:
    """`text[start:end]` is an item of personal data of this kind."""

    start: int
    end: int
    kind: str


# Each of these becomes one ASCII character, so positions do not change: full-width forms, Unicode
# spaces, and the hyphens and dashes that word processors insert into numbers.
_ASCII = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_ASCII |= dict.fromkeys(map(ord, "\u00a0\u2002\u2003\u2009\u202f\u3000"), ord(" "))
_ASCII |= dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2212\ufe63"), ord("-"))
_FOREIGN = re.compile(f"[{''.join(map(chr, _ASCII))}]")

_NUMBER = re.compile(r"[0-9][0-9 ().\-]{5,}")
_MARGIN_BEFORE, _MARGIN_AFTER = 6, 14


def to_ascii(text: str) -> str:
    """The text with full-width forms, spaces and dashes as ASCII. Positions do not change."""
    return text.translate(_ASCII) if _FOREIGN.search(text) else text


def number_windows(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of the parts of a text that contain digits, with some context on both sides.

    They contain every number that `phones`, `resident_ids`, `ssns`, `ipv4` and `cards` search for,
    and are a small part of most texts. Windows are in order and do not overlap.
    """
    start = end = 0
    for match in _NUMBER.finditer(text):
        left, right = max(0, match.start() - _MARGIN_BEFORE), match.end() + _MARGIN_AFTER
        if left <= end:
            end = right
            continue
        if end:
            yield start, min(end, len(text))
        start, end = left, right
    if end:
        yield start, min(end, len(text))


def without_overlaps(spans: Iterable[Span], priority: dict[str, int]) -> list[Span]:
    """The longest of overlapping spans, in text order; among equally long spans the one whose kind
    has the smallest rank in `priority`. Spans come in any order, duplicates allowed."""
    kept: list[Span] = []
    for span in sorted(set(spans), key=lambda s: (s.start - s.end, priority[s.kind], s.start)):
        place = bisect.bisect(kept, span)
        if all(span.end <= other.start or other.end <= span.start
               for other in kept[max(0, place - 1):place + 1]):
            kept.insert(place, span)
    return kept
