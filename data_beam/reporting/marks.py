"""Where in the text of a dropped document the reason stands."""

import re

from data_beam.filters.basic import width
from data_beam.privacy.filter import PLACEHOLDERS, find

Span = tuple[int, int]

_MOST = 60
_QUOTED = re.compile(r"(?:^|(?<=\s))(['\"])(.+)\1$", re.DOTALL)
_PATTERNS = {
    "bullet lines": r"^[ \t]*[•●◦‣·▪*\-][^\n]*",
    "ellipsis lines": r"(?:…|\.\.\.+)$",
    "ellipses": r"…|\.\.\.+",
    "hashes": r"#",
    "digits": r"\d+",
    "parentheses": r"[()]",
    "not alphanumeric": r"[^\w\s]+",
    "whitespace": r"[ \t]{2,}",
    "words without letters": r"[^\w\s]+|\b\d+\b",
}
"""What rules that measure shares count, by their reason."""


def find_marks(text: str, reason: str, detail: str, short_line_width: int) -> list[Span]:
    """The parts of a text that a rule found fault with, in order, without overlaps.

    Args:
      text: of the dropped document, or its beginning.
      reason: of the rule.
      detail: what it says beside the reason; a piece of the text that it quotes at its end is
        looked for, whatever the white space between its words.
      short_line_width: lines of at most so many columns are short ones.

    Returns:
      Start and end of each; none where the reason is no part of the text (its length, its
      perplexity, a copy elsewhere).
    """
    quoted = _QUOTED.search(detail)
    if quoted:
        words = quoted[2].removesuffix("…").split()
        spans = _matches(r"\s*".join(map(re.escape, words)), text) if words else []
        if spans:
            return spans
    if reason == "short lines":
        return [(match.start(), match.end()) for match in re.finditer(r"[^\n]*\S[^\n]*", text)
                if width(match.group().strip()) <= short_line_width][:_MOST]
    return _matches(_PATTERNS[reason], text) if reason in _PATTERNS else []


def _matches(pattern: str, text: str) -> list[Span]:
    spans = []
    for match in re.finditer(pattern, text, re.IGNORECASE | re.MULTILINE):
        spans.append((match.start(), match.end()))
        if len(spans) == _MOST:
            break
    return spans


def redact(text: str) -> str:
    """The text with placeholders for personal data, as the privacy rule writes them."""
    parts, position = [], 0
    for span in find(text):
        parts += [text[position:span.start], PLACEHOLDERS[span.kind]]
        position = span.end
    return "".join(parts) + text[position:]


def clip(text: str, marks: list[Span], characters: int) -> tuple[str, list[Span], int]:
    """A piece of the text with the first mark in it.

    Returns:
      The piece, the marks within it, and where it starts in the text.
    """
    start = 0
    if marks and marks[0][1] > characters:
        start = max(0, marks[0][0] - characters // 4)
    end = start + characters
    return text[start:end], [(a - start, min(b, end) - start) for a, b in marks
                             if start <= a < end], start
