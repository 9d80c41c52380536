"""FineWeb's own rules.

Source: Penedo et al. 2024 (arXiv 2406.17557, section 3.6), as datatrove 0.10 implements them
(`FineWebQualityFilter`); Chinese thresholds from FineWeb-2's `cmn_Hani.yml` and its pipeline.

| reason | English | Chinese |
|---|---|---|
| few lines end with a mark (share) | < 0.12 | < 0.106 |
| short lines (share of lines of 30 characters and less) | > 0.67 | off |
| duplicate line characters (over those of the text without line feeds) | > 0.01 | > 0.1 |
| newlines (line feeds per word and mark) | > 0.3 | > 0.178 |

Lines without a visible character do not count. Terminal punctuation is that of any script; in
Chinese also a closing quote, … and ；, which FineWeb-2 does not take for an end.

FineWeb runs it after `c4` with `require_end_mark=False`; FineWeb-2 leaves `c4` out.
"""

from data_beam.config.rule_sets import FineWebTable
from data_beam.filters.marks import LINE_ENDS
from data_beam.filters.table_rule import Failure, TableRule, measured, over, under
from data_beam.filters.views import View, excerpt, seen_before


class FineWebRule(TableRule):
    """See the module."""

    stage = "fineweb"

    def judge(self, view: View, table: FineWebTable) -> Failure | None:
        lines = view.lines
        if not lines:
            return "empty", ""
        ends = LINE_ENDS[view.table]
        share = sum(line.endswith(ends) for line in lines) / len(lines)
        if under(share, table.min_end_mark_lines):
            return "few lines end with a mark", measured(share, table.min_end_mark_lines)
        share = sum(len(line) <= table.short_line_length for line in lines) / len(lines)
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
