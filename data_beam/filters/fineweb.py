"""FineWeb's own rules.

Sources: datatrove 0.10 (`FineWebQualityFilter`), with which FineWeb was made; the paper, Penedo et
al. 2024 (arXiv 2406.17557, section 3.6), which has other numbers (`preset`); in Chinese FineWeb-2's
`cmn_Hani.yml` and its pipeline. A document is dropped for

| reason | datatrove | paper | Chinese |
|---|---|---|---|
| few lines end with a mark (share) | < 0.12 | <= 0.12 | < 0.106 |
| short lines (share) | > 0.67 | >= 0.67 | off |
| what line is short (characters) | <= 30 | < 30 | |
| duplicate line characters (over those of the text without line feeds) | > 0.01 | >= 0.1 | > 0.1 |
| newlines (line feeds per word and mark) | > 0.3 | off | > 0.178 |

Lines without a visible character do not count. Terminal punctuation is that of any script; in
Chinese also a closing quote, … and ；, which FineWeb-2 does not take for an end.

FineWeb runs it after `c4` with `require_end_mark=False`; FineWeb-2 leaves `c4` out.
"""

import operator
from collections.abc import Mapping

from data_beam.config.rule_sets import FineWebTable
from data_beam.filters.marks import LINE_ENDS
from data_beam.filters.table_rule import Failure, TableFilter, measured
from data_beam.filters.views import View, excerpt, seen_before


class FineWebFilter(TableFilter):
    """See the module."""

    stage = "fineweb"

    def tables(self) -> Mapping[str, FineWebTable]:
        paper = self.config.preset == "paper"
        return {"en": self.config.paper if paper else self.config.en, "zh": self.config.zh}

    def judge(self, view: View, table: FineWebTable) -> Failure | None:
        lines = view.lines
        if not lines:
            return "empty", ""
        as_paper = self.config.preset == "paper" and view.table == "en"
        past = operator.ge if as_paper else operator.gt

        def over(value: float, limit: float | None) -> bool:
            return limit is not None and past(value, limit)

        ends = LINE_ENDS[view.table]
        share = sum(line.endswith(ends) for line in lines) / len(lines)
        least = table.min_end_mark_lines
        if least is not None and past(least, share):
            return "few lines end with a mark", measured(share, least)
        longest_short = table.short_line_length - as_paper
        share = sum(len(line) <= longest_short for line in lines) / len(lines)
        if over(share, table.max_short_lines):
            return "short lines", measured(share, table.max_short_lines)
        _, characters, longest = seen_before(lines)
        share = characters / (len(view.text) - view.text.count("\n"))
        if over(share, table.max_duplicate_line_characters):
            return "duplicate line characters", \
                f"{measured(share, table.max_duplicate_line_characters)} {excerpt(longest)}"
        newlines = view.text.count("\n") / max(len(view.words), 1)
        if over(newlines, table.max_newlines_per_word):
            return "newlines", measured(newlines, table.max_newlines_per_word)
        return None
