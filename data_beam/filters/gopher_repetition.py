"""Gopher's repetition rules.

Source: Rae et al. 2021 (arXiv 2112.11446, table A1). The paper does not say what is counted over
what, and two implementations differ, so `counting` chooses:

- `later` (datatrove 0.10, `GopherRepetitionFilter`; FineWeb and FineWeb-2): a paragraph, line or
  n-gram counts when the same one came before it. Characters are taken over the length of the text.
  n-grams of 5 to 10 words do not overlap, and their words are joined without a space. Paragraphs
  are split at two line feeds and more, lines at one and more.
- `every` (dolma, `gopher_v1`): whatever occurs twice counts with every copy. n-grams overlap, and
  their characters are taken over those of all n-grams; for lines and for the most frequent n-gram
  over the characters of all words. Words are cut at whitespace (Chinese: by rjieba), lines at every
  line feed, so that empty lines are copies of each other. It has no rule on paragraphs; those here
  are counted the same way.

| measured | English (paper) | Chinese (FineWeb-2 `cmn_Hani.yml`) |
|---|---|---|
| duplicate paragraphs, their characters | 0.30, 0.20 | off |
| duplicate lines, their characters | 0.30, 0.20 | 0.287, off |
| most frequent 2-, 3-, 4-gram | 0.20, 0.18, 0.16 | 0.256, 0.201, 0.171 |
| duplicate 5- to 10-grams | 0.15, .14, .13, .12, .11, .10 | 0.198, .182, .167, .154, .14, .127 |

A share over the threshold drops the document.
"""

import re
from collections import Counter

from data_beam.config.rule_sets import GopherRepetitionTable
from data_beam.filters.ngrams import WordNgrams
from data_beam.filters.table_rule import Failure, TableFilter, measured, over
from data_beam.filters.views import View, excerpt, seen_before

_PARAGRAPH = re.compile(r"\n{2,}")
_LINE = re.compile(r"\n+")


class GopherRepetitionFilter(TableFilter):
    """See the module."""

    stage = "gopher_repetition"

    def judge(self, view: View, table: GopherRepetitionTable) -> Failure | None:
        if not view.text:
            return None
        if self.config.counting == "every":
            return _every(view, table)
        return _later(view, table)


def _later(view: View, table: GopherRepetitionTable) -> Failure | None:
    text = view.text
    size = len(text)
    for name, items, limits in (
            ("paragraph", _PARAGRAPH.split(text.strip()),
             (table.max_duplicate_paragraphs, table.max_duplicate_paragraph_characters)),
            ("line", _LINE.split(text),
             (table.max_duplicate_lines, table.max_duplicate_line_characters))):
        count, characters, longest = seen_before(items)
        if over(count / len(items), limits[0]):
            return f"duplicate {name}s", f"{measured(count / len(items), limits[0])} " \
                                         f"{excerpt(longest)}"
        if over(characters / size, limits[1]):
            return f"duplicate {name} characters", f"{measured(characters / size, limits[1])} " \
                                                   f"{excerpt(longest)}"
    for n, limit in enumerate(table.max_top_ngram, 2):
        index, characters, copies = view.spaced.top(n)
        if over(characters * copies / size, limit):
            return f"top {n}-gram", f"{measured(characters * copies / size, limit)} " \
                                    f"{_words(view.words, index, n, view.table)}"
    for n, limit in enumerate(table.max_duplicate_ngrams, 5):
        characters, index = view.joined.later_copies(n)
        if over(characters / size, limit):
            return f"duplicate {n}-grams", f"{measured(characters / size, limit)} " \
                                           f"{_words(view.words, index, n, view.table)}"
    return None


def _every(view: View, table: GopherRepetitionTable) -> Failure | None:
    words = view.text.split() if view.table == "en" else view.words
    size = max(sum(map(len, words)), 1)
    for name, items, limits in (
            ("paragraph", _PARAGRAPH.split(view.text.strip()),
             (table.max_duplicate_paragraphs, table.max_duplicate_paragraph_characters)),
            ("line", view.text.split("\n"),
             (table.max_duplicate_lines, table.max_duplicate_line_characters))):
        copies = {item: count for item, count in Counter(items).items() if count > 1}
        share = sum(copies.values()) / len(items)
        longest = max(copies, key=len, default="")
        if over(share, limits[0]):
            return f"duplicate {name}s", f"{measured(share, limits[0])} {excerpt(longest)}"
        share = sum(len(item) * count for item, count in copies.items()) / size
        if over(share, limits[1]):
            return f"duplicate {name} characters", f"{measured(share, limits[1])} " \
                                                   f"{excerpt(longest)}"
    ngrams = WordNgrams(words, 1)
    for n, limit in enumerate(table.max_top_ngram, 2):
        index, characters, copies = ngrams.top(n)
        share = (characters - (n - 1)) * copies / size if copies else 0.0
        if over(share, limit):
            return f"top {n}-gram", f"{measured(share, limit)} " \
                                    f"{_words(words, index, n, view.table)}"
    for n, limit in enumerate(table.max_duplicate_ngrams, 5):
        characters, everything, index = ngrams.every_copy(n)
        share = characters / max(everything, 1)
        if over(share, limit):
            return f"duplicate {n}-grams", f"{measured(share, limit)} " \
                                           f"{_words(words, index, n, view.table)}"
    return None


def _words(words: list[str], index: int, n: int, table: str) -> str:
    return excerpt((" " if table == "en" else "").join(words[index:index + n]))
