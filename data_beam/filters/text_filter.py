"""What the filters of `filters.rules` share: the text as they judge it, and thresholds by language.

A new filter is one subclass of `TextFilter`, in a module that `data_beam/filters/__init__.py`
imports.
"""

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from data_beam.base.characters import fold_case, fold_width
from data_beam.base.filter import Filter
from data_beam.base.records import Document, Dropped
from data_beam.config.checks import check_idle
from data_beam.config.filters import FilterConfig, add_filter
from data_beam.filters.ngram_counts import WordNgrams
from data_beam.filters.segmentation import WORDS
from maxlm.config.schema import setting

Failure = tuple[str, str]  # the reason to drop a document, and what was measured
Failures = Iterator[Failure | None]
_EXCERPT = 80


class View:
    """A text as filters judge it, with its words and lines, each computed on first use.

    Full-width letters, digits and signs are ASCII here; in Chinese ！（），：；？ stay as they are.
    Positions are those of the original. The language, `en` or `zh`, is the one whose thresholds
    apply: it decides what a word is.
    """

    def __init__(self, text: str, language: str):
        self.text = fold_width(text, marks=language == "en")
        self.language = language

    @functools.cached_property
    def words(self) -> list[str]:
        """Words and punctuation marks, without whitespace."""
        return WORDS[self.language](self.text)

    @functools.cached_property
    def word_counts(self) -> Counter[str]:
        return Counter(self.words)

    @functools.cached_property
    def folded_words(self) -> set[str]:
        """The different words, in the form in which they are compared without case."""
        return set(fold_case("\n".join(self.word_counts)).split("\n"))

    @functools.cached_property
    def spaced(self) -> WordNgrams:
        """n-grams of words with a space between them."""
        return WordNgrams(self.words, 1)

    @functools.cached_property
    def lines(self) -> list[str]:
        """The lines between line feeds that hold something visible."""
        return [line for line in self.text.split("\n") if line and not line.isspace()]

    @functools.cached_property
    def squeezed(self) -> str:
        """The text without whitespace."""
        return "".join(self.text.split())

    def phrase(self, words: list[str]) -> str:
        """Words in a row as they are written."""
        return (" " if self.language == "en" else "").join(words)


view_of = functools.lru_cache(maxsize=1)(View)  # for filters that judge one text after the other


class TextFilter(Filter):
    """A filter that `filters.rules` can name, with its settings in `filters.NAME`: those of the
    frozen dataclass `settings`, see `add_filter`.

    It judges prose by the thresholds for its language. Source code is kept, and so is a language
    that other filters have thresholds for when this one has none: the filter is made for one
    language. Documents in other languages follow `other_languages`: dropped with a reason of its
    own, or kept, and never judged by the thresholds of another language.
    """

    section = "filters"
    libraries = ("rjieba",)
    settings: ClassVar[type]
    by_name: ClassVar[dict[str, type["TextFilter"]]] = {}  # all of them

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        add_filter(cls.name, cls.settings)
        TextFilter.by_name[cls.name] = cls

    def __init__(self, config: FilterConfig):
        super().__init__(getattr(config, self.name))
        self._thresholds_of = config.thresholds_of()
        self._keep_others = config.other_languages == "keep"
        self._thresholds = self.thresholds()

    @classmethod
    def is_enabled(cls, config: FilterConfig) -> bool:
        return cls.name in config.rules

    def thresholds(self) -> Mapping[str, Any]:
        return {"en": self._config.en, "zh": self._config.zh}

    def failures(self, view: View, limits: Any) -> Failures:
        """Compares a text with each threshold in turn; the first failure is why it is dropped.

        A subclass defines this, or `judge` if it changes documents.
        """
        raise NotImplementedError

    def judge(self, document: Document, view: View, limits: Any) -> Document | Failure:
        """The document, changed or not, or why it is dropped."""
        return next(filter(None, self.failures(view, limits)), document)

    def __call__(self, document: Document) -> Document | Dropped:
        if document.is_code:
            return document
        language = self._thresholds_of.get(document.language)
        if language is None:
            if self._keep_others:
                return document
            return Dropped(document.origin, self.name, "no thresholds for its language",
                           document.language)
        limits = self._thresholds.get(language)
        if limits is None:
            return document
        outcome = self.judge(document, view_of(document.text, language), limits)
        if isinstance(outcome, Document):
            return outcome
        return Dropped(document.origin, self.name, *outcome)


def failure(reason: str, value: float, limit: float, sample: str | None = None) -> Failure:
    """`0.3125, limit 0.3 'a part of the text'` with its reason."""
    quoted = "" if sample is None else f" {excerpt(sample)}"
    return reason, f"{value:.4g}, limit {limit:g}{quoted}"


def above(reason: str, value: float, limit: float | None, sample: str | None = None
          ) -> Failure | None:
    """The failure of a value above a limit that is on."""
    return None if limit is None or value <= limit else failure(reason, value, limit, sample)


def below(reason: str, value: float, limit: float | None) -> Failure | None:
    """The failure of a value below a limit that is on."""
    return None if limit is None or value >= limit else failure(reason, value, limit)


def excerpt(text: str) -> str:
    """A quoted piece of at most 80 characters on one line."""
    text = " ".join(text[:4 * _EXCERPT].split())
    return "'" + (text if len(text) <= _EXCERPT else text[:_EXCERPT - 1] + "…") + "'"


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


def share(default: float | None, help: str) -> float | None:
    """A field with a threshold that may be off."""
    return setting(default, help + "; None switches it off", minimum=0.0)


def check_off(section: Any, path: str, threshold: str, off: float | None, *idle: str) -> None:
    """Refuses changes of fields that only serve a threshold, in the languages where it is off.

    Thresholds that are written out, as in zh=GopherQualityThresholds(min_stop_words=None), have the
    defaults of their class in unchanged fields, and not those of their language.
    """
    usual = type(section)()
    for language in ("en", "paper", "zh"):
        limits = getattr(section, language, None)
        if limits is not None and getattr(limits, threshold) == off:
            written = type(limits)()
            check_idle(limits, f"{path}.{language}", f"{path}.{language}.{threshold} is {off}",
                       "set that", default=getattr(usual, language),
                       only=[name for name in idle
                             if getattr(limits, name) != getattr(written, name)])
