"""Thresholds of the heuristic rule sets, a table for each language they are published for.

The defaults are the published values; the module of the same name in `data_beam/filters` says how
each is measured and where it comes from. None switches a threshold off.
"""

import dataclasses
from typing import Any

from data_beam.config.checks import check_idle, check_order
from maxlm.config.schema import ConfigError, setting

_OFF = "; None switches it off"


def _share(default: float | None, help: str) -> float | None:
    return setting(default, help + _OFF, minimum=0.0)


def _check_off(section: Any, path: str, threshold: str, off: float | None, *idle: str) -> None:
    """Refuses changes of fields that only serve a threshold, in the tables where it is off.

    A table that is written out, as in zh=GopherQualityTable(min_stop_words=None), has the values of
    its class where nobody changed them, and not those of its language.
    """
    usual = type(section)()
    for language in ("en", "paper", "zh"):
        table = getattr(section, language, None)
        if table is not None and getattr(table, threshold) == off:
            written = type(table)()
            check_idle(table, f"{path}.{language}", f"{path}.{language}.{threshold} is {off}",
                       "set that", default=getattr(usual, language),
                       only=[name for name in idle
                             if getattr(table, name) != getattr(written, name)])


@dataclasses.dataclass(frozen=True)
class GopherQualityTable:
    """Gopher's quality rules for one language."""

    min_words: int | None = setting(50, "words at least, punctuation not counted" + _OFF, minimum=1)
    max_words: int | None = setting(100_000, "words at most" + _OFF, minimum=1)
    min_mean_word_length: float | None = _share(3.0, "mean characters of a word, at least")
    max_mean_word_length: float | None = _share(10.0, "mean characters of a word, at most")
    max_symbol_ratio: float | None = _share(0.1, "# per word, and ellipses per word, at most")
    max_bullet_lines: float | None = _share(0.9, "share of lines that begin with a bullet")
    max_ellipsis_lines: float | None = _share(0.3, "share of lines that end with an ellipsis")
    min_words_with_letter: float | None = _share(0.8, "share of words with a letter, at least")
    min_stop_words: int | None = setting(2, "different stop words at least" + _OFF, minimum=1)
    stop_words: tuple[str, ...] = setting(
        ("the", "be", "to", "of", "and", "that", "have", "with"), "the stop words, as written")

    def check(self, path: str) -> None:
        check_order(self, path, "words", "mean_word_length")
        if self.min_stop_words is not None and len(set(self.stop_words)) < self.min_stop_words:
            raise ConfigError(f"{path}.stop_words: {len(set(self.stop_words))} words, fewer than "
                              f"min_stop_words ({self.min_stop_words}), so nothing would pass")


@dataclasses.dataclass(frozen=True)
class GopherQualityConfig:
    """Gopher's quality rules (Rae et al. 2021, as in datatrove; Chinese as in FineWeb-2)."""

    en: GopherQualityTable = setting(GopherQualityTable(), "English")
    zh: GopherQualityTable = setting(GopherQualityTable(
        min_mean_word_length=1.0, max_mean_word_length=5.0, min_words_with_letter=0.735,
        stop_words=tuple("的年在月是和日了於·為有被人中为他與後也而由")), "Chinese")

    def check(self, path: str) -> None:
        _check_off(self, path, "min_stop_words", None, "stop_words")


@dataclasses.dataclass(frozen=True)
class GopherRepetitionTable:
    """Gopher's repetition rules for one language."""

    max_duplicate_paragraphs: float | None = _share(0.30, "share of paragraphs seen before")
    max_duplicate_paragraph_characters: float | None = _share(
        0.20, "share of characters in paragraphs seen before")
    max_duplicate_lines: float | None = _share(0.30, "share of lines seen before")
    max_duplicate_line_characters: float | None = _share(
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
                                  f"looked at, for {sizes}; leave out the rest")


@dataclasses.dataclass(frozen=True)
class GopherRepetitionConfig:
    """Gopher's repetition rules (Rae et al. 2021, table A1; Chinese as in FineWeb-2)."""

    counting: str = setting(
        "later", "later: copies after the first, over the text (datatrove); every: each copy, over "
        "the characters of all n-grams, words cut at whitespace (dolma)",
        choices=("later", "every"))
    en: GopherRepetitionTable = setting(GopherRepetitionTable(), "English")
    zh: GopherRepetitionTable = setting(GopherRepetitionTable(
        max_duplicate_paragraphs=None, max_duplicate_paragraph_characters=None,
        max_duplicate_lines=0.287, max_duplicate_line_characters=None,
        max_top_ngram=(0.256, 0.201, 0.171),
        max_duplicate_ngrams=(0.198, 0.182, 0.167, 0.154, 0.14, 0.127)), "Chinese")


@dataclasses.dataclass(frozen=True)
class C4Table:
    """C4's rules for one language. None for a number takes the preset's."""

    require_end_mark: bool = setting(True, "drop lines that end without terminal punctuation")
    min_words_per_line: int | None = setting(
        None, "lines with fewer words are dropped; None: 5 (tfds) or 3 (datatrove)", minimum=0)
    max_word_length: int = setting(1000, "a longer word drops its line, characters", minimum=1)
    min_sentences: int | None = setting(
        None, "documents with fewer sentences are dropped; None: 3 (tfds) or 5 (datatrove)",
        minimum=0)
    drop_curly_bracket: bool = setting(True, "drop documents with { in a line that is kept so far")


@dataclasses.dataclass(frozen=True)
class C4Config:
    """C4's rules (Raffel et al. 2020), which remove lines before they judge the document."""

    preset: str = setting(
        "datatrove", "whose numbers: tfds (lines of 5 words, 3 sentences) or datatrove (3 words, 5 "
        "sentences)", choices=("tfds", "datatrove"))
    en: C4Table = setting(C4Table(), "English")
    zh: C4Table = setting(C4Table(), "Chinese: words of rjieba, marks of both widths")


@dataclasses.dataclass(frozen=True)
class FineWebTable:
    """FineWeb's own rules for one language."""

    min_end_mark_lines: float | None = _share(
        0.12, "share of lines that end with terminal punctuation, at least")
    short_line_length: int = setting(30, "lines up to this many characters are short", minimum=1)
    max_short_lines: float | None = _share(0.67, "share of short lines")
    max_duplicate_line_characters: float | None = _share(
        0.01, "share of characters in lines seen before")
    max_newlines_per_word: float | None = _share(0.3, "line feeds per word")


@dataclasses.dataclass(frozen=True)
class FineWebConfig:
    """FineWeb's own rules (Penedo et al. 2024; Chinese as in FineWeb-2)."""

    preset: str = setting(
        "datatrove", "whose rules for English: datatrove (table en) or the paper (table paper: "
        "what is at a threshold is dropped too, and a line as long as it is not short)",
        choices=("datatrove", "paper"))
    en: FineWebTable = setting(FineWebTable(), "English, as datatrove has it")
    paper: FineWebTable = setting(FineWebTable(
        max_duplicate_line_characters=0.1, max_newlines_per_word=None),
        "English, as the paper has it")
    zh: FineWebTable = setting(FineWebTable(
        min_end_mark_lines=0.106, max_short_lines=None, max_duplicate_line_characters=0.1,
        max_newlines_per_word=0.178), "Chinese")

    def check(self, path: str) -> None:
        _check_off(self, path, "max_short_lines", None, "short_line_length")
        unused = {"datatrove": "paper", "paper": "en"}[self.preset]
        check_idle(getattr(self, unused), f"{path}.{unused}", f"{path}.preset is {self.preset!r}",
                   "set that", default=getattr(FineWebConfig(), unused))


@dataclasses.dataclass(frozen=True)
class NemoConfig:
    """Rules that NeMo Curator adds to Gopher and C4; for English."""

    max_non_alphanumeric: float | None = _share(
        0.25, "share of characters other than ASCII letters and digits, ? ! , . and line feeds")
    max_digits: float | None = _share(0.15, "share of characters that are digits")
    max_urls: float | None = _share(0.2, "share of characters in URLs")
    max_whitespace: float | None = _share(0.25, "share of whitespace")
    max_parentheses: float | None = _share(0.1, "parentheses per character")
    max_boilerplate: float | None = _share(
        0.4, "share of paragraphs with a phrase of legal boilerplate")
    max_unterminated: float | None = _share(
        0.85, "share of sentences that end without terminal punctuation")


@dataclasses.dataclass(frozen=True)
class ChineseWebTextConfig:
    """The rules of ChineseWebText (Chen et al. 2023); for Chinese."""

    min_characters: int = setting(
        200, "documents of this many characters and fewer are dropped", minimum=0)
    min_mean_line: float | None = _share(10.0, "mean characters of a line, at least")
    min_han: float | None = _share(0.3, "share of Han characters, at least")
    simplified_only: bool = setting(
        False, "drop texts that OpenCC would still simplify; a single quoted name is enough")
    max_repeated_13grams: float | None = _share(
        0.5, "different character 13-grams that occur again, over all 13-grams")


@dataclasses.dataclass(frozen=True)
class RootsTable:
    """Special characters and stop words of one language."""

    max_special_characters: float | None = _share(0.4, "share of characters that are no letters")
    min_stop_words: float | None = _share(0.3, "share of words that are stop words, at least")


@dataclasses.dataclass(frozen=True)
class RootsConfig:
    """Shares of special characters and stop words (ROOTS, Laurençon et al. 2022)."""

    en: RootsTable = setting(RootsTable(), "English")
    zh: RootsTable = setting(RootsTable(max_special_characters=0.3, min_stop_words=0.1691),
                             "Chinese")


@dataclasses.dataclass(frozen=True)
class NgramRepetitionTable:
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

    en: NgramRepetitionTable = setting(NgramRepetitionTable(), "English")
    zh: NgramRepetitionTable = setting(NgramRepetitionTable(unit="characters"), "Chinese")

    def check(self, path: str) -> None:
        _check_off(self, path, "max_repeated", 1, "unit", "window")


@dataclasses.dataclass(frozen=True)
class RepeatedSentencesTable:
    """A long sentence that comes back through a long document, for one language."""

    min_characters: int = setting(
        40, "shorter sentences may be repeated, counted without whitespace", minimum=1)
    min_copies: int = setting(20, "copies that are too many", minimum=2)
    min_distance: int = setting(
        1000, "characters between two copies; closer ones (a chorus, a list) count once", minimum=0)
    max_gap: float = setting(
        3.0, "longest stretch without the sentence, in units of the mean; longer, and it does not "
        "run through the whole text", minimum=1.0)


@dataclasses.dataclass(frozen=True)
class RepeatedSentencesConfig:
    """The same sentence at the end of every chapter."""

    action: str = setting(
        "drop", "drop the document, or remove the copies after the first from its text",
        choices=("drop", "remove"))
    en: RepeatedSentencesTable = setting(RepeatedSentencesTable(), "English")
    zh: RepeatedSentencesTable = setting(
        RepeatedSentencesTable(min_characters=10, min_distance=300), "Chinese")


@dataclasses.dataclass(frozen=True)
class EntropyTable:
    """Bounds of the entropy of characters, for one language."""

    min_bits: float | None = _share(3.0, "bits per character, at least")
    max_bits: float | None = _share(6.5, "bits per character, at most")
    min_characters: int = setting(200, "shorter texts are not judged", minimum=1)

    def check(self, path: str) -> None:
        check_order(self, path, "bits")
        if self.min_bits is None and self.max_bits is None:
            check_idle(self, path, f"{path}.min_bits and max_bits are None", "set one",
                       only=("min_characters",))


@dataclasses.dataclass(frozen=True)
class EntropyConfig:
    """Entropy of the distribution of characters without whitespace."""

    en: EntropyTable = setting(EntropyTable(), "English")
    zh: EntropyTable = setting(EntropyTable(min_bits=4.0, max_bits=10.5), "Chinese")


@dataclasses.dataclass(frozen=True)
class ChatLogConfig:
    """Logs of chats, in any language."""

    max_chat_lines: float = setting(
        0.5, "share of lines that begin with a time or a speaker in brackets", minimum=0.0,
        maximum=1.0)
    min_lines: int = setting(5, "documents with fewer lines are not judged", minimum=1)

    def check(self, path: str) -> None:
        if self.max_chat_lines == 1:
            check_idle(self, path, f"{path}.max_chat_lines is 1", "lower that", only=("min_lines",))
