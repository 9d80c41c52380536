"""The filters of ROOTS: shares of special characters and stop words, and repeated n-grams.

Source: Laurençon et al. 2022 (arXiv 2303.03915, appendix B) and its `parameters_filtering.py`.
Its filters on perplexity and language are `perplexity` and `language`.
"""

import dataclasses
from functools import cache

from data_beam.base.characters import fold_case
from data_beam.filters.ngram_counts import character_hashes, repeated
from data_beam.filters.segmentation import is_punctuation
from data_beam.filters.text_filter import (
    Failures,
    TextFilter,
    View,
    above,
    below,
    check_off,
    share,
)
from maxlm.config.schema import setting


@cache
def stop_words(language: str) -> frozenset[str]:
    """Stop words as `fold_case` has them (stopwords-iso, MIT, bundled with its package)."""
    import stopwordsiso
    return frozenset(map(fold_case, stopwordsiso.stopwords(language)))


@dataclasses.dataclass(frozen=True)
class RootsThresholds:
    """Special characters and stop words of one language."""

    max_special_characters: float | None = share(
        0.4, "share of characters that are not letters, whitespace included")
    min_stop_words: float | None = share(
        0.3, "share of words, punctuation not counted, that are stop words, at least")


@dataclasses.dataclass(frozen=True)
class RootsConfig:
    """Shares of special characters and stop words (ROOTS, Laurençon et al. 2022)."""

    en: RootsThresholds = setting(RootsThresholds(), "English")
    zh: RootsThresholds = setting(
        RootsThresholds(max_special_characters=0.3, min_stop_words=0.1691), "Chinese")


class RootsFilter(TextFilter):
    """Drops texts with many special characters or few stop words.

    Stop words are those of stopwords-iso, the source of the original lists. Words are those of
    spaCy's rules and of rjieba; ROOTS split at spaces and, for Chinese, into SentencePiece pieces.
    """

    name = "roots"
    settings = RootsConfig
    libraries = (*TextFilter.libraries, "stopwordsiso")

    def failures(self, view: View, limits: RootsThresholds) -> Failures:
        text = view.text
        if not text:
            return
        yield above("special characters", 1 - sum(map(str.isalpha, text)) / len(text),
                    limits.max_special_characters)
        words = found = 0
        known = stop_words(view.language)
        for word, count in view.word_counts.items():
            if not is_punctuation(word):
                words += count
                found += count * (fold_case(word) in known)
        yield below("few stop words", found / max(words, 1), limits.min_stop_words)


@dataclasses.dataclass(frozen=True)
class NgramRepetitionThresholds:
    """Repeated n-grams of one language."""

    unit: str = setting("words", "n-grams of words or of characters", choices=("words",
                                                                                 "characters"))
    window: int = setting(5, "n", minimum=1)
    max_repeated: float = setting(
        0.8, "share of the n-grams that occur more than once, every copy counted", minimum=0.0,
        maximum=1.0)


@dataclasses.dataclass(frozen=True)
class NgramRepetitionConfig:
    """Share of repeated n-grams (ROOTS, Laurençon et al. 2022)."""

    en: NgramRepetitionThresholds = setting(NgramRepetitionThresholds(), "English")
    zh: NgramRepetitionThresholds = setting(NgramRepetitionThresholds(unit="characters"), "Chinese")

    def check(self, path: str) -> None:
        check_off(self, path, "max_repeated", 1, "unit", "window")


class NgramRepetitionFilter(TextFilter):
    """Drops texts in which most n-grams occur more than once; every copy counts.

    n-grams are of words in English and of characters without whitespace in Chinese. Poems with a
    refrain and statutes that number their articles stay far below the default of 0.8.
    """

    name = "ngram_repetition"
    settings = NgramRepetitionConfig

    def failures(self, view: View, limits: NgramRepetitionThresholds) -> Failures:
        if limits.unit == "words":
            hashes = view.spaced.hashes(limits.window)
        else:
            hashes = character_hashes(view.squeezed, limits.window)
        indices, _ = repeated(hashes)
        if len(indices):
            run = slice(int(indices[0]), int(indices[0]) + limits.window)
            yield above("repeated n-grams", len(indices) / len(hashes), limits.max_repeated,
                        view.phrase(view.words[run]) if limits.unit == "words"
                        else view.squeezed[run])
