"""A text as the rule sets see it: words, lines and counts, each made once, when first asked for."""

from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from unicodedata import category

from data_beam.filters.marks import PUNCTUATION, SENTENCE_ENDS
from data_beam.filters.ngrams import WordNgrams
from data_beam.filters.words import WORDS

_EXCERPT = 80


class View:
    """A text with its words and lines.

    Args:
      text: any text.
      table: the language whose rules apply, `en` or `zh`: it says what a word is.
    """

    def __init__(self, text: str, table: str):
        self.text = text
        self.table = table

    @cached_property
    def words(self) -> list[str]:
        """Words and punctuation marks, without whitespace."""
        return WORDS[self.table](self.text)

    @cached_property
    def word_counts(self) -> Counter[str]:
        return Counter(self.words)

    @cached_property
    def joined(self) -> WordNgrams:
        """n-grams of words written without a space between them."""
        return WordNgrams(self.words, 0)

    @cached_property
    def spaced(self) -> WordNgrams:
        """n-grams of words with a space between them."""
        return WordNgrams(self.words, 1)

    @cached_property
    def lines(self) -> list[str]:
        """The lines between line feeds that hold something visible."""
        return [line for line in self.text.split("\n") if line and not line.isspace()]

    @cached_property
    def squeezed(self) -> str:
        """The text without whitespace."""
        return "".join(self.text.split())


class Views:
    """Makes views, and gives the last one again for the same text: rule sets share its words."""

    def __init__(self) -> None:
        self._last = View("", "en")

    def __call__(self, text: str, table: str) -> View:
        last = self._last
        if last.table != table or last.text != text:
            last = self._last = View(text, table)
        return last


def is_punctuation(word: str) -> bool:
    """Whether a word is made of punctuation alone."""
    return word[0] in PUNCTUATION and PUNCTUATION.issuperset(word)


def has_letter(word: str) -> bool:
    return word[0].isalpha() or word[-1].isalpha() or any(map(str.isalpha, word))


def seen_before(items: Iterable[str]) -> tuple[int, int, str]:
    """Items that equal an earlier one, their characters, and the longest of them."""
    seen: set[str] = set()
    count = characters = 0
    longest = ""
    for item in items:
        if item in seen:
            count += 1
            characters += len(item)
            if len(item) > len(longest):
                longest = item
        else:
            seen.add(item)
    return count, characters, longest


def count_sentences(words: Iterable[str]) -> int:
    """Sentences in a list of words: one begins at the start, and after closing marks.

    A mark ends a sentence when it is a word of its own, so that the points of `e.g.` and `3.5` do
    not; quotes and brackets after it belong to it (the rule of spaCy's sentencizer, as datatrove).
    """
    count = 0
    ended = True
    for word in words:
        if word in SENTENCE_ENDS:
            count = count or 1
            ended = True
        elif ended and (count == 0 or any(category(mark)[0] != "P" for mark in word)):
            count += 1
            ended = False
    return count


def excerpt(text: str) -> str:
    """A quoted piece of at most 80 characters on one line."""
    text = " ".join(text[:4 * _EXCERPT].split())
    return "'" + (text if len(text) <= _EXCERPT else text[:_EXCERPT - 1] + "…") + "'"
