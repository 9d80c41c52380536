"""The share of n-grams that are repeated.

Source: the repetition filters of ROOTS (Laurençon et al. 2022, arXiv 2303.03915): of the n-grams of
a document, the share that occur more than once, every copy counted. Here n is 5 and a share over
0.8 drops the document; n-grams are of words in English and of characters, whitespace left out, in
Chinese. Poems with a refrain and statutes that number their articles stay far below; a page that
says one thing over and over does not.
"""

from data_beam.config.rule_sets import NgramRepetitionTable
from data_beam.filters.ngrams import character_hashes, repeated
from data_beam.filters.table_rule import Failure, TableFilter, measured
from data_beam.filters.views import View, excerpt


class NgramRepetitionFilter(TableFilter):
    """See the module."""

    stage = "ngram_repetition"

    def judge(self, view: View, table: NgramRepetitionTable) -> Failure | None:
        if table.unit == "words":
            hashes = view.spaced.hashes(table.window)
        else:
            hashes = character_hashes(view.squeezed, table.window)
        if not len(hashes):
            return None
        indices, _ = repeated(hashes)
        share = len(indices) / len(hashes)
        if share <= table.max_repeated:
            return None
        first = int(indices[0])
        if table.unit == "words":
            joint = " " if view.table == "en" else ""
            sample = joint.join(view.words[first:first + table.window])
        else:
            sample = view.squeezed[first:first + table.window]
        return "repeated n-grams", f"{measured(share, table.max_repeated)} {excerpt(sample)}"
