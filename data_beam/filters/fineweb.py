"""FineWeb's own filter.

English thresholds are those of datatrove 0.10 (`FineWebQualityFilter`), which made FineWeb, or by
`preset` those of the paper, Penedo et al. 2024 (arXiv 2406.17557, section 3.6); Chinese ones those
of `cmn_Hani.yml` and the pipeline of FineWeb-2.

Lines without a visible character are not counted. Terminal punctuation of every script counts as
the end of a line. In Chinese a closing quote, … and ； count too, unlike in FineWeb-2. FineWeb runs
it after `c4` with `require_end_mark=False`; FineWeb-2 does not use `c4`.
"""

import dataclasses
import operator
from collections.abc import Mapping

from data_beam.config.checks import check_idle
from data_beam.filters.basic import short_lines
from data_beam.filters.segmentation import LINE_ENDS
from data_beam.filters.text_filter import (
    Failure,
    Failures,
    TextFilter,
    View,
    check_off,
    failure,
    seen_before,
    share,
)
from maxlm.config.schema import setting


@dataclasses.dataclass(frozen=True)
class FineWebThresholds:
    """Thresholds of FineWeb's own filter for one language."""

    min_end_mark_lines: float | None = share(
        0.12, "smallest share of lines that end with terminal punctuation")
    short_line_length: int = setting(30, "lines up to this many characters are short", minimum=1)
    max_short_lines: float | None = share(0.67, "largest share of short lines")
    max_duplicate_line_characters: float | None = share(
        0.01, "largest share of characters, without line feeds, in lines seen before")
    max_newlines_per_word: float | None = share(
        0.3, "largest number of line feeds per word or punctuation mark")


@dataclasses.dataclass(frozen=True)
class FineWebConfig:
    """FineWeb's own filter (Penedo et al. 2024; Chinese as in FineWeb-2)."""

    preset: str = setting(
        "datatrove", "thresholds for English: datatrove (section en) or the paper (section paper; "
        "a text exactly at a threshold is dropped, a line of short_line_length is not short)",
        choices=("datatrove", "paper"))
    en: FineWebThresholds = setting(FineWebThresholds(), "English, as in datatrove")
    paper: FineWebThresholds = setting(FineWebThresholds(
        max_duplicate_line_characters=0.1, max_newlines_per_word=None),
        "English, as in the paper")
    zh: FineWebThresholds = setting(FineWebThresholds(
        min_end_mark_lines=0.106, max_short_lines=None, max_duplicate_line_characters=0.1,
        max_newlines_per_word=0.178), "Chinese")

    def check(self, path: str) -> None:
        check_off(self, path, "max_short_lines", None, "short_line_length")
        unused = {"datatrove": "paper", "paper": "en"}[self.preset]
        check_idle(getattr(self, unused), f"{path}.{unused}", f"{path}.preset is {self.preset!r}",
                   "set that", default=getattr(FineWebConfig(), unused))


class FineWebFilter(TextFilter):
    """Drops lists and menus: few lines end with punctuation, lines are short, line feeds many."""

    name = "fineweb"
    settings = FineWebConfig
    highlights = (("short lines", short_lines),)

    def thresholds(self) -> Mapping[str, FineWebThresholds]:
        paper = self._config.preset == "paper"
        return {"en": self._config.paper if paper else self._config.en, "zh": self._config.zh}

    def failures(self, view: View, limits: FineWebThresholds) -> Failures:
        lines = view.lines
        if not lines:
            yield "empty", ""
            return
        as_paper = self._config.preset == "paper" and view.language == "en"
        beyond = operator.ge if as_paper else operator.gt
        longest_short = limits.short_line_length - as_paper

        def over(reason: str, value: float, limit: float | None, sample: str | None = None
                 ) -> Failure | None:
            return failure(reason, value, limit, sample) if (
                limit is not None and beyond(value, limit)) else None

        ended = sum(line.endswith(LINE_ENDS[view.language]) for line in lines) / len(lines)
        least = limits.min_end_mark_lines
        if least is not None and beyond(least, ended):
            yield failure("few lines end with a mark", ended, least)
        yield over("short lines", sum(len(line) <= longest_short for line in lines) / len(lines),
                   limits.max_short_lines)
        _, characters, longest = seen_before(lines)
        line_feeds = view.text.count("\n")
        yield over("duplicate line characters", characters / (len(view.text) - line_feeds),
                   limits.max_duplicate_line_characters, longest)
        yield over("newlines", line_feeds / max(len(view.words), 1), limits.max_newlines_per_word)
