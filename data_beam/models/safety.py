"""Toxicity from a classifier and from keywords, and the filter that drops toxic documents.

    toxicity = max(probability by the classifier,
                   min(1, share of visible characters in keywords / keyword_saturation))

The two find different documents, so the larger one counts: the classifier recognises text like its
training examples, the keywords listed terms, and a single keyword does not make a page an
advertisement. A document of at least 3 lines is also dropped if too many of them contain a keyword,
as in ChineseWebText (Chen et al. 2023, arXiv 2311.01149: at most 0.5 sensitive words per line).
"""

import bisect
import itertools

from data_beam.base.characters import fold_width
from data_beam.base.filter import Filter
from data_beam.base.records import Document, Dropped
from data_beam.config import SafetyConfig
from data_beam.models.classifier import TextClassifier
from data_beam.models.folder import description_path
from data_beam.models.keywords import DEFAULT_EN, DEFAULT_ZH, Keywords, read_list

_MIN_LINES = 3
_BEFORE, _QUOTED = 20, 80


class SafetyFilter(Filter):
    """Scores a document's toxicity from 0 to 1, kept with it, and drops it above a threshold.

    Reasons: `toxic`, `lines with keywords`.
    """

    name = "safety"
    section = "safety"
    libraries = ("xxhash",)

    @classmethod
    def is_enabled(cls, config: SafetyConfig) -> bool:
        return config.is_on

    @classmethod
    def files(cls, config: SafetyConfig) -> list[tuple[str, str]]:
        model = [("config.safety.model", description_path(config.model))] if config.model else []
        return model + [(f"config.safety.keywords[{i}].file", entry.file)
                        for i, entry in enumerate(config.keywords)]

    def __init__(self, config: SafetyConfig):
        super().__init__(config)
        self._classify = (TextClassifier(config.model, "safety", "config.safety.model")
                          if config.model else None)
        self._has_keywords = bool(config.default_keywords or config.keywords)
        entries: dict[str, list[str]] = {"*": []}
        if config.default_keywords:
            entries["*"] += [*DEFAULT_ZH, *DEFAULT_EN]
        for i, given in enumerate(config.keywords):
            entries.setdefault(given.language, []).extend(
                read_list(given.file, f"config.safety.keywords[{i}].file"))
        everywhere = entries.pop("*")
        self._everywhere = Keywords(everywhere)
        self._by_language = {language: Keywords([*everywhere, *more])
                             for language, more in entries.items()}

    def __call__(self, document: Document) -> Document | Dropped:
        if document.is_code:
            return document
        folded = fold_width(document.text)
        text = folded.lower()
        found = self._by_language.get(document.language, self._everywhere).find(text)
        share = (sum(_visible(text[start:end]) for start, end in found)
                 / max(1, _visible(text))) if found else 0.0
        by_keywords = min(1.0, share / self._config.keyword_saturation)
        by_classifier = self._classify(folded) if self._classify else 0.0
        toxicity = max(by_classifier, by_keywords)
        if toxicity > self._config.max_toxicity:
            scored = [f"classifier {by_classifier:.3f}"] if self._classify else []
            if self._has_keywords:
                scored.append(f"{share:.2%} of the characters in keywords")
            return Dropped(
                document.origin, self.name, "toxic",
                f"{toxicity:.3f}, more than {self._config.max_toxicity:g} ({', '.join(scored)})"
                + _quoted(text, found))
        lines, with_keyword = _lines(text, found) if found else (0, 0)
        if lines >= _MIN_LINES and with_keyword / lines > self._config.max_keyword_lines:
            return Dropped(
                document.origin, self.name, "lines with keywords",
                f"{with_keyword} of {lines} lines, more than {self._config.max_keyword_lines:g}"
                + _quoted(text, found))
        return document.with_scores(toxicity=toxicity)


def _visible(text: str) -> int:
    return sum(map(len, text.split()))


def _lines(text: str, found: list[tuple[int, int]]) -> tuple[int, int]:
    """Number of lines with text, and number of lines in which a keyword begins."""
    lines = text.split("\n")
    begins = list(itertools.accumulate((len(line) + 1 for line in lines), initial=0))
    with_keyword = {bisect.bisect(begins, start) for start, _ in found}
    return sum(bool(line.strip()) for line in lines), len(with_keyword)


def _quoted(text: str, found: list[tuple[int, int]]) -> str:
    if not found:
        return ""
    begin = max(0, found[0][0] - _BEFORE)
    return f": {' '.join(text[begin:begin + _QUOTED].split())!r}"
