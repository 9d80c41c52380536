"""Shares of special characters and of stop words, as in ROOTS.

Source: Laurençon et al. 2022 (arXiv 2303.03915, appendix B) and its `parameters_filtering.py`.

| reason | English | Chinese |
|---|---|---|
| special characters (neither letters nor Han, whitespace too, over all) | > 0.4 | > 0.3 |
| few stop words (share of the words, punctuation not counted) | < 0.3 | < 0.1691 |

Stop words are those of stopwords-iso, which theirs come from. Words are those of spaCy's rules and
of rjieba; ROOTS took words between spaces and, for Chinese, pieces of a SentencePiece model. Its
rules on repetition are `ngram_repetition`; perplexity and language are stages of their own.
"""

from functools import cache

from data_beam.config.rule_sets import RootsTable
from data_beam.filters.table_rule import Failure, TableFilter, measured, over, under
from data_beam.filters.views import View, is_punctuation


@cache
def stop_words(language: str) -> frozenset[str]:
    """Stop words in lower case (stopwords-iso, MIT, bundled with its package)."""
    import stopwordsiso
    return frozenset(word.lower() for word in stopwordsiso.stopwords(language))


class RootsFilter(TableFilter):
    """See the module."""

    stage = "roots"

    def judge(self, view: View, table: RootsTable) -> Failure | None:
        text = view.text
        if not text:
            return None
        special = 1 - sum(map(str.isalpha, text)) / len(text)
        if over(special, table.max_special_characters):
            return "special characters", measured(special, table.max_special_characters)
        words = stops = 0
        known = stop_words(view.table)
        for word, count in view.word_counts.items():
            if not is_punctuation(word):
                words += count
                stops += count * (word.lower() in known)
        share = stops / max(words, 1)
        if under(share, table.min_stop_words):
            return "few stop words", measured(share, table.min_stop_words)
        return None
