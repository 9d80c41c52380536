"""Entropy of the characters of a text, in bits.

H = -sum p(c) log2 p(c) over the characters without whitespace (Shannon 1948). Low for text that
repeats a few characters, high for what is random (keys, encoded data, tables of symbols). The
bounds are our own: outside of the range that documentation, novels and statutes have, with a
margin (docs/decisions.md). Short texts are not judged: their length bounds their entropy.
"""

import math
from collections import Counter

from data_beam.config.rule_sets import EntropyTable
from data_beam.filters.table_rule import Failure, TableFilter, measured, over, under
from data_beam.filters.views import View


def entropy(text: str) -> float:
    """Bits per character; 0.0 for an empty text."""
    total = len(text)
    return -sum(count / total * math.log2(count / total) for count in Counter(text).values()) + 0.0


class EntropyFilter(TableFilter):
    """See the module."""

    stage = "entropy"

    def judge(self, view: View, table: EntropyTable) -> Failure | None:
        if len(view.squeezed) < table.min_characters:
            return None
        bits = entropy(view.squeezed)
        if under(bits, table.min_bits):
            return "low entropy", measured(bits, table.min_bits)
        if over(bits, table.max_bits):
            return "high entropy", measured(bits, table.max_bits)
        return None
