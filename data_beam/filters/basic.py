"""The first filter: drops what is not a document at all after extraction."""

import re
from collections.abc import Mapping
from typing import Any

from data_beam.base.characters import fold_width
from data_beam.base.filter import Filter, Span
from data_beam.base.records import Document, Dropped
from data_beam.clean.conversions import display_width
from data_beam.config import FilterConfig

_MIN_LINES = 5  # with fewer lines, documents are judged by length alone


def reason_to_drop(text: str, is_code: bool, config: FilterConfig) -> tuple[str, str] | None:
    """The reason to drop a clean document and what was measured, or None to keep it.

    - `empty after extraction`: no visible character is left.
    - `too short`: fewer than `min_characters` without whitespace.
    - `short lines`: in prose of 5 lines or more, more than `max_short_line_fraction` of the
      lines with text are at most `short_line_width` columns wide. From FineWeb (Penedo et al.
      2024, arXiv 2406.17557), with columns for characters so that it fits Chinese: 15 Han
      characters are as wide as 30 letters. Full-width digits and letters count as ASCII.
    """
    characters = sum(len(word) for word in text.split())
    if characters == 0:
        return "empty after extraction", ""
    if characters < config.min_characters:
        return "too short", f"{characters} characters, fewer than {config.min_characters}"
    if not is_code:
        lines = [line.strip() for line in fold_width(text).split("\n") if line.strip()]
        short = sum(1 for line in lines if display_width(line) <= config.short_line_width)
        fraction = short / len(lines)
        if len(lines) >= _MIN_LINES and fraction > config.max_short_line_fraction:
            return "short lines", f"{fraction:.3f} of the lines, more than " \
                                  f"{config.max_short_line_fraction:g}"
    return None


def short_lines(text: str, settings: Mapping[str, Any]) -> list[Span]:
    """The lines of at most `short_line_width` columns, to highlight them."""
    return [match.span() for match in re.finditer(r"[^\n]*\S[^\n]*", text)
            if display_width(match.group().strip()) <= settings.get("short_line_width", 0)]


class BasicFilter(Filter):
    name = "filter"
    section = "filters"
    highlights = (("short lines", short_lines),)

    def __call__(self, document: Document) -> Document | Dropped:
        failed = reason_to_drop(document.text, document.is_code, self._config)
        return document if failed is None else Dropped(document.origin, self.name, *failed)
