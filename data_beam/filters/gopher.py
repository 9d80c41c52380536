"""Gopher's filters: quality, and repetition.

Source: Rae et al. 2021 (arXiv 2112.11446, appendix A.1.1 and table A1), as datatrove 0.10
implements them (`GopherQualityFilter`, `GopherRepetitionFilter`), with its defaults for English and
the thresholds of FineWeb-2's `cmn_Hani.yml` for Chinese. A word is what spaCy (English) or rjieba
(Chinese) makes of the text. What is exactly at a threshold is kept.
"""

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable

from data_beam.base.characters import fold_case
from data_beam.config.checks import check_order
from data_beam.filters.ngram_counts import WordNgrams
from data_beam.filters.segmentation import is_punctuation
from data_beam.filters.text_filter import (
    Failures,
    TextFilter,
    View,
    above,
    below,
    check_off,
    seen_before,
    share,
)
from maxlm.config.schema import ConfigError, setting

_PARAGRAPH = re.compile(r"\n{2,}")
_LINE = re.compile(r"\n+")


@dataclasses.dataclass(frozen=True)
class GopherQualityThresholds:
    """Thresholds of Gopher's quality filter for one language."""

    min_words: int | None = setting(
        50, "words at least, punctuation not counted; None switches it off", minimum=1)
    max_words: int | None = setting(100_000, "words at most; None switches it off", minimum=1)
    min_mean_word_length: float | None = share(3.0, "mean characters of a word, at least")
    max_mean_word_length: float | None = share(10.0, "mean characters of a word, at most")
    max_symbol_ratio: float | None = share(0.1, "# per word, and ellipses per word, at most")
    max_bullet_lines: float | None = share(0.9, "share of lines that begin with a bullet")
    max_ellipsis_lines: float | None = share(0.3, "share of lines that end with an ellipsis")
    min_words_with_letter: float | None = share(0.8, "share of words with a letter, at least")
    min_stop_words: int | None = setting(
        2, "different stop words at least; None switches it off", minimum=1)
    stop_words: tuple[str, ...] = setting(
        ("the", "be", "to", "of", "and", "that", "have", "with"), "the stop words; case does not "
        "matter")

    def check(self, path: str) -> None:
        check_order(self, path, "words", "mean_word_length")
        different = len(set(map(fold_case, self.stop_words)))
        if self.min_stop_words is not None and different < self.min_stop_words:
            raise ConfigError(f"{path}.stop_words: {different} words, fewer than min_stop_words "
                              f"({self.min_stop_words}), so nothing would pass")


@dataclasses.dataclass(frozen=True)
class GopherQualityConfig:
    """Gopher's quality filter (Rae et al. 2021, as in datatrove; Chinese as in FineWeb-2)."""

    en: GopherQualityThresholds = setting(GopherQualityThresholds(), "English")
    zh: GopherQualityThresholds = setting(GopherQualityThresholds(
        min_mean_word_length=1.0, max_mean_word_length=5.0, min_words_with_letter=0.735,
        stop_words=tuple("的年在月是和日了於·為有被人中为他與後也而由")), "Chinese")

    def check(self, path: str) -> None:
        check_off(self, path, "min_stop_words", None, "stop_words")


class GopherQualityFilter(TextFilter):
    """Drops texts that do not look like prose.

    Words are counted without punctuation for their number and mean length, and with it for the
    other shares. Differs from datatrove in one point: stop words are compared without case.
    """

    name = "gopher_quality"
    settings = GopherQualityConfig
    highlights = (
        ("bullet lines", r"^[ \t]*[•●◦‣·▪*\-][^\n]*"),
        ("ellipsis lines", r"(?:…|\.\.\.+)$"),
        ("ellipses", r"…|\.\.\.+"),
        ("hashes", r"#"),
        ("words without letters", r"[^\w\s]+|\b\d+\b"),
    )

    def failures(self, view: View, limits: GopherQualityThresholds) -> Failures:
        total = len(view.words)
        words = characters = 0
        for word, count in view.word_counts.items():
            if not is_punctuation(word):
                words += count
                characters += count * len(word)
        yield below("too few words", words, limits.min_words)
        yield above("too many words", words, limits.max_words)
        if total == 0:  # min_words is off
            return
        if words:
            yield below("words too short", characters / words, limits.min_mean_word_length)
            yield above("words too long", characters / words, limits.max_mean_word_length)
        text = view.text
        yield above("hashes", text.count("#") / total, limits.max_symbol_ratio)
        ellipses = text.count("...") + text.count("…")
        yield above("ellipses", ellipses / total, limits.max_symbol_ratio)
        lines = text.splitlines()
        bullets = sum(line.lstrip().startswith(("•", "-")) for line in lines)
        yield above("bullet lines", bullets / len(lines), limits.max_bullet_lines)
        ends = sum(line.rstrip().endswith(("...", "…")) for line in lines)
        yield above("ellipsis lines", ends / len(lines), limits.max_ellipsis_lines)
        letters = sum(count for word, count in view.word_counts.items()
                      if any(map(str.isalpha, word)))
        yield below("words without letters", letters / total, limits.min_words_with_letter)
        stop_words = view.folded_words.intersection(map(fold_case, limits.stop_words))
        yield below("few stop words", len(stop_words), limits.min_stop_words)


@dataclasses.dataclass(frozen=True)
class GopherRepetitionThresholds:
    """Thresholds of Gopher's repetition filter for one language."""

    max_duplicate_paragraphs: float | None = share(0.30, "share of paragraphs seen before")
    max_duplicate_paragraph_characters: float | None = share(
        0.20, "share of characters in paragraphs seen before")
    max_duplicate_lines: float | None = share(0.30, "share of lines seen before")
    max_duplicate_line_characters: float | None = share(
        0.20, "share of characters in lines seen before")
    max_top_ngram: tuple[float, ...] = setting(
        (0.20, 0.18, 0.16), "share of characters in the most frequent 2-, 3-, 4-gram of words")
    max_duplicate_ngrams: tuple[float, ...] = setting(
        (0.15, 0.14, 0.13, 0.12, 0.11, 0.10),
        "share of characters in repeated 5-, 6-, ... 10-grams of words")

    def check(self, path: str) -> None:
        for name, most, sizes in (("max_top_ngram", 3, "2-, 3- and 4-grams"),
                                  ("max_duplicate_ngrams", 6, "5- to 10-grams")):
            values = getattr(self, name)
            if any(value < 0 for value in values):
                raise ConfigError(f"{path}.{name}: shares must not be negative")
            if len(values) > most:
                raise ConfigError(f"{path}.{name}: {len(values)} values, but only {most} are "
                                  f"used, for {sizes}; remove the rest")


@dataclasses.dataclass(frozen=True)
class GopherRepetitionConfig:
    """Gopher's repetition filter (Rae et al. 2021, table A1; Chinese as in FineWeb-2)."""

    counting: str = setting(
        "later", "later: copies after the first, over the text (datatrove); every: each copy, over "
        "the characters of all n-grams, words cut at whitespace (dolma)",
        choices=("later", "every"))
    en: GopherRepetitionThresholds = setting(GopherRepetitionThresholds(), "English")
    zh: GopherRepetitionThresholds = setting(GopherRepetitionThresholds(
        max_duplicate_paragraphs=None, max_duplicate_paragraph_characters=None,
        max_duplicate_lines=0.287, max_duplicate_line_characters=None,
        max_top_ngram=(0.256, 0.201, 0.171),
        max_duplicate_ngrams=(0.198, 0.182, 0.167, 0.154, 0.14, 0.127)), "Chinese")


class GopherRepetitionFilter(TextFilter):
    """Drops texts whose lines, paragraphs or n-grams of words repeat.

    The paper does not define the counting, and two implementations differ; `counting` chooses:

    - `later` (datatrove; FineWeb and FineWeb-2): a paragraph, line or n-gram counts if the same one
      came before it. Characters are taken over the length of the text. n-grams of 5 to 10 words do
      not overlap, and their words are joined without a space. Paragraphs are split at two line
      feeds or more, lines at one or more.
    - `every` (dolma, `gopher_v1`): every copy of what occurs twice or more counts. n-grams overlap,
      and their characters are taken over those of all n-grams; for lines and for the most frequent
      n-gram over the characters of all words. Words are cut at whitespace (Chinese: by rjieba),
      lines at every line feed, so that empty lines are copies of each other. dolma does not
      count paragraphs; here they are counted like lines.
    """

    name = "gopher_repetition"
    settings = GopherRepetitionConfig

    def failures(self, view: View, limits: GopherRepetitionThresholds) -> Failures:
        text, every = view.text, self._config.counting == "every"
        if not text:
            return
        words = text.split() if every and view.language == "en" else view.words
        size = max(sum(map(len, words)), 1) if every else len(text)
        for name, items, most, most_characters in (
                ("paragraph", _PARAGRAPH.split(text.strip()), limits.max_duplicate_paragraphs,
                 limits.max_duplicate_paragraph_characters),
                ("line", text.split("\n") if every else _LINE.split(text),
                 limits.max_duplicate_lines, limits.max_duplicate_line_characters)):
            count, characters, longest = (_every_copy if every else seen_before)(items)
            yield above(f"duplicate {name}s", count / len(items), most, longest)
            yield above(f"duplicate {name} characters", characters / size, most_characters, longest)
        spaced = WordNgrams(words, 1) if every else view.spaced
        for n, limit in enumerate(limits.max_top_ngram, 2):
            index, characters, copies = spaced.top(n)
            if every and copies:
                characters -= n - 1  # without the spaces
            yield above(f"top {n}-gram", characters * copies / size, limit,
                        view.phrase(words[index:index + n]))
        ngrams = spaced if every else WordNgrams(words, 0)
        for n, limit in enumerate(limits.max_duplicate_ngrams, 5):
            if every:
                characters, of, index = ngrams.every_copy(n)
            else:
                (characters, index), of = ngrams.later_copies(n), size
            yield above(f"duplicate {n}-grams", characters / max(of, 1), limit,
                        view.phrase(words[index:index + n]))


def _every_copy(items: Iterable[str]) -> tuple[int, int, str]:
    """Items that occur twice or more, their characters, and the longest of them."""
    copies = {item: count for item, count in Counter(items).items() if count > 1}
    return (sum(copies.values()), sum(len(item) * count for item, count in copies.items()),
            max(copies, key=len, default=""))
