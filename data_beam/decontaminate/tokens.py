"""The words and characters of which n-grams are made."""

import re
import unicodedata
from collections.abc import Iterator

# Scripts written without spaces between words: kana, Han, Thai, Lao, Myanmar, Khmer.
_UNSPACED = ("\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
             "\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff")
_WORD = re.compile(r"[^\W_]+")
_PIECE = re.compile(f"[{_UNSPACED}]|[^{_UNSPACED}]+")
_ONLY_UNSPACED = re.compile(f"[{_UNSPACED}]+").fullmatch
_ONE_UNSPACED = re.compile(f"[{_UNSPACED}]").match


def tokens(text: str) -> list[str]:
    """The tokens of a text as they are compared.

    A token is a row of letters and digits, in lower case and NFKC, or one character of a script
    written without spaces. Punctuation, whitespace and `_` separate and are no tokens.
    """
    if text.isascii():
        return _WORD.findall(text.lower())
    found: list[str] = []
    for word in _WORD.findall(text):
        if word.isascii():
            found.append(word.lower())
        elif _ONLY_UNSPACED(word) and unicodedata.is_normalized("NFKC", word):
            found.extend(word)
        else:
            found.extend(unicodedata.normalize("NFKC", piece).lower()
                         for piece in _PIECE.findall(word))
    return found


def spans(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each token of `tokens(text)`."""
    for word in _WORD.finditer(text):
        if word[0].isascii():
            yield word.span()
        else:
            for piece in _PIECE.finditer(word[0]):
                yield word.start() + piece.start(), word.start() + piece.end()


def mostly_unspaced(found: list[str]) -> bool:
    """Whether most tokens are characters of scripts written without spaces."""
    return 2 * sum(1 for token in found if _ONE_UNSPACED(token)) > len(found)
