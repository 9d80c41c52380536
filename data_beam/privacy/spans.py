"""Where personal data lies in a text, and the form of the text that recognisers read."""

import dataclasses
import re
from collections.abc import Iterable, Iterator


@dataclasses.dataclass(frozen=True, order=True)
class Span:
    """`text[start:end]` is personal data of a kind."""

    start: int
    end: int
    kind: str


# Each becomes one ASCII character, so that positions stay: the full-width forms, the ideographic
# space, the hyphens and dashes that word processors put into numbers.
_ASCII = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_ASCII |= dict.fromkeys(map(ord, "\u00a0\u2002\u2003\u2009\u202f\u3000"), ord(" "))
_ASCII |= dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2212\ufe63"), ord("-"))
_FOREIGN = re.compile(
    "[\uff01-\uff5e\u00a0\u2002\u2003\u2009\u202f\u3000\u2010-\u2014\u2212\ufe63]")

_NUMBER = re.compile(r"[0-9][0-9 ().\-]{5,}")
_MARGIN_BEFORE, _MARGIN_AFTER = 6, 14


def to_ascii(text: str) -> str:
    """The text with full-width forms, spaces and dashes as ASCII; every position stays."""
    return text.translate(_ASCII) if _FOREIGN.search(text) else text


def number_windows(text: str) -> Iterator[tuple[int, int]]:
    """Stretches of `to_ascii` text with rows of digits and what stands between and around them.

    They hold all numbers that `phones`, `identity` and `cards` look for, and are a small part of
    most texts. Windows come in order and do not overlap.
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
    """Of spans that overlap the longest stays; of equally long ones that of the first kind.

    Args:
      spans: in any order, duplicates allowed.
      priority: rank of a kind, the smallest winning.

    Returns:
      Disjoint spans in the order of the text.
    """
    ordered = sorted(set(spans), key=lambda s: (s.start, s.end))
    kept: list[Span] = []
    group: list[Span] = []

    def settle() -> None:
        taken: list[Span] = []
        for span in sorted(group, key=lambda s: (s.start - s.end, priority[s.kind], s.start)):
            if all(span.end <= other.start or other.end <= span.start for other in taken):
                taken.append(span)
        kept.extend(sorted(taken))

    reach = 0
    for span in ordered:
        if span.start >= reach and group:
            settle()
            group = []
        group.append(span)
        reach = max(reach, span.end)
    if group:
        settle()
    return kept
