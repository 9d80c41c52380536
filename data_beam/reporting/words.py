"""Words of a text in any language, for topics."""

import re
import unicodedata

from data_beam.base.characters import HAN
from data_beam.filters.segmentation import chinese_words

_CHINESE = frozenset({"zh", "wuu", "yue"})
UNSPACED = frozenset({"ja", "th", "lo", "km", "my", "bo", "dz"})
"""Languages without spaces between words, for which there is no cutter here."""
# Vowel signs and accents that are characters of their own, which \w leaves out.
_MARKS = "".join(chr(code) for code in range(0x300, 0x10000)
                 if unicodedata.category(chr(code)) in ("Mn", "Mc"))
_WORD = re.compile(rf"[^\W\d_](?:[^\W\d_]|[{_MARKS}]|['’](?=[^\W\d_]))*")
_HAN_WORD = re.compile(f"[{HAN}]+")


def words(text: str, language: str) -> list[str]:
    """The words of a text in lower case, without numbers and punctuation.

    Chinese is cut by rjieba; other languages where their letters end, so those of `UNSPACED` must
    not be given.
    """
    if language in _CHINESE:
        return [word for word in chinese_words(text) if _HAN_WORD.fullmatch(word)]
    return _WORD.findall(text.lower())


def may_name_a_topic(word: str, language: str) -> bool:
    """Whether it is long enough to mean something alone: 2 Han characters, 3 letters."""
    return len(word) >= (2 if language in _CHINESE else 3)
