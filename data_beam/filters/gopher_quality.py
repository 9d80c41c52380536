"""Gopher's quality rules.

Source: Rae et al. 2021 (arXiv 2112.11446, appendix A.1.1), as datatrove 0.10 implements them
(`GopherQualityFilter`), with the thresholds of its defaults for English and those of FineWeb-2's
`cmn_Hani.yml` for Chinese. A word is what spaCy (English) or rjieba (Chinese) makes of the text.

A document is dropped when

| reason | English | Chinese |
|---|---|---|
| too few words (punctuation not counted) | < 50 | < 50 |
| too many words (the same) | > 100,000 | > 100,000 |
| words too short (mean characters) | < 3 | < 1 |
| words too long | > 10 | > 5 |
| hashes (# per word and mark) | > 0.1 | > 0.1 |
| ellipses (`...` and `…` per word and mark) | > 0.1 | > 0.1 |
| bullet lines (begin with • or -) | > 0.9 | > 0.9 |
| ellipsis lines (end with one) | > 0.3 | > 0.3 |
| words without letters (share with a letter) | < 0.8 | < 0.735 |
| few stop words (different ones) | < 2 of 8 | < 2 of 22 |
"""

from data_beam.config.rule_sets import GopherQualityTable
from data_beam.filters.table_rule import Failure, TableFilter, measured, over, under
from data_beam.filters.views import View, has_letter, is_punctuation


class GopherQualityFilter(TableFilter):
    """See the module."""

    stage = "gopher_quality"

    def judge(self, view: View, table: GopherQualityTable) -> Failure | None:
        total = len(view.words)
        words = characters = 0
        for word, count in view.word_counts.items():
            if not is_punctuation(word):
                words += count
                characters += count * len(word)
        if under(words, table.min_words):
            return "too few words", measured(words, table.min_words)
        if over(words, table.max_words):
            return "too many words", measured(words, table.max_words)
        if total == 0:  # min_words is off
            return None
        if words:
            mean = characters / words
            if under(mean, table.min_mean_word_length):
                return "words too short", measured(mean, table.min_mean_word_length)
            if over(mean, table.max_mean_word_length):
                return "words too long", measured(mean, table.max_mean_word_length)
        text = view.text
        hashes = text.count("#") / total
        if over(hashes, table.max_symbol_ratio):
            return "hashes", measured(hashes, table.max_symbol_ratio)
        ellipses = (text.count("...") + text.count("…")) / total
        if over(ellipses, table.max_symbol_ratio):
            return "ellipses", measured(ellipses, table.max_symbol_ratio)
        lines = text.splitlines()
        bullets = sum(line.lstrip().startswith(("•", "-")) for line in lines) / len(lines)
        if over(bullets, table.max_bullet_lines):
            return "bullet lines", measured(bullets, table.max_bullet_lines)
        ends = sum(line.rstrip().endswith(("...", "…")) for line in lines) / len(lines)
        if over(ends, table.max_ellipsis_lines):
            return "ellipsis lines", measured(ends, table.max_ellipsis_lines)
        letters = sum(count for word, count in view.word_counts.items() if has_letter(word)) / total
        if under(letters, table.min_words_with_letter):
            return "words without letters", measured(letters, table.min_words_with_letter)
        stop_words = sum(word in view.word_counts for word in set(table.stop_words))
        if under(stop_words, table.min_stop_words):
            return "few stop words", measured(stop_words, table.min_stop_words)
        return None
