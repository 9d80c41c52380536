"""Finds the parts of a dropped document's text that the report highlights as the reason."""

import re
from collections.abc import Mapping
from typing import Any

from data_beam.base.characters import fold_width
from data_beam.base.filter import Span
from data_beam.filters.chain import all_filters
from data_beam.privacy.filter import find, replace

_MOST = 60
_QUOTED = re.compile(r"(?:^|(?<=\s))(['\"])(.+)\1$", re.DOTALL)


def find_marks(text: str, stage: str, reason: str, detail: str, recipe: Mapping[str, Any]
               ) -> list[Span]:
    """Start and end of the parts of a text (or its beginning) for which a filter dropped it, in
    order, without overlaps; empty if the reason is not a part of the text (its length, its
    perplexity, a copy elsewhere).

    `stage` is the name of the filter; its `highlights` map the reason to parts of a text. If
    `detail`, what it measured, ends with a quotation from the text, that is searched first, with
    any white space between its words. The recipe of the corpus comes as plain values.
    """
    text = fold_width(text, marks=True)  # filters judge the folded text
    quoted = _QUOTED.search(detail)
    if quoted:
        words = fold_width(quoted[2], marks=True).removesuffix("…").split()
        spans = _matches(r"(?i)" + r"\s*".join(map(re.escape, words)), text) if words else []
        if spans:
            return spans
    judge = all_filters().get(stage)
    highlight = dict(judge.highlights).get(reason) if judge else None
    if judge is None or highlight is None:
        return []
    if isinstance(highlight, str):
        return _matches(highlight, text)
    return highlight(text, recipe.get(judge.section, {}))[:_MOST]


def _matches(pattern: str, text: str) -> list[Span]:
    spans = []
    for match in re.finditer(pattern, text, re.MULTILINE):
        spans.append((match.start(), match.end()))
        if len(spans) == _MOST:
            break
    return spans


def redact(text: str) -> str:
    """Replaces personal data by the placeholders of the privacy filter."""
    return replace(text, find(text))


def clip(text: str, marks: list[Span], characters: int) -> tuple[str, list[Span], int]:
    """An excerpt of the text with the first mark, the marks in it, and its start in the text."""
    start = 0
    if marks and marks[0][1] > characters:
        start = max(0, marks[0][0] - characters // 4)
    end = start + characters
    return text[start:end], [(a - start, min(b, end) - start) for a, b in marks
                             if start <= a < end], start
