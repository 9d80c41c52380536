"""The words and characters of which n-grams are made.

Evaluation items do not pass through the cleaning that documents do, so both are put into one form
here before they are cut: without invisible characters, in NFKC.
"""

import re
import unicodedata
from collections.abc import Iterator

from data_beam.base.characters import HAN, HIRAGANA_KATAKANA

# Scripts written without spaces between words: kana, Han, Thai, Lao, Myanmar, Khmer.
_UNSPACED = ("\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u31f0-\u31ff\uff66-\uff9f"
             + HIRAGANA_KATAKANA + HAN)
# Accents and vowel signs that are characters of their own, and what NFKC makes one; \w has none.
# `re` looks through those above U+FFFF one by one, so they are asked for only in their range.
_MARKS = "".join(chr(code) for code in range(0x300, 0x10000)
                 if unicodedata.category(chr(code))[0] == "M") + "\u0e33\u0eb3\uff9e\uff9f"
_HIGH = "\U00010000-\U0001efff"
_HIGH_MARKS = "".join(chr(code) for code in range(0x10000, 0x1f000)
                      if unicodedata.category(chr(code))[0] == "M")
_MARK = f"(?:[{_MARKS}]|(?=[{_HIGH}])[{_HIGH_MARKS}])"
_JAMO = "\u1160-\u11ff\u3131-\u318e\ud7b0-\ud7ff\uffa0-\uffdc"

# What cleaning takes out (data_beam/clean/text.py), and what else shows nothing: joiners, direction
# marks, fillers, variation selectors, tags.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0e-\x1f\x7f\x80-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffc\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]")
_ASCII_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f]")
# NFKC makes other separators of these, and text without them is mostly in NFKC.
_CHINESE_MARKS = "，：；！？（）…\u3000"
# Putting marks into order takes quadratic time, so no more than 30 are read of each run, the
# number that UAX #15 (Stream-Safe Text Format) lets normalisation stop at.
_MAYBE_MARK = re.compile(f"[{_MARKS}{_HIGH}]")  # or another above U+FFFF: looks fast
_MANY_MARKS = re.compile(f"{_MAYBE_MARK.pattern}{_MAYBE_MARK.pattern}{{30}}")
_FURTHER_MARKS = re.compile(f"(?<={_MARK}{{30}}){_MARK}++")
# Pieces that NFKC changes one by one: a character with those that may join it.
_JOINING = f"(?:{_MARK}|[{_JAMO}])"
_NORMALISED_ALONE = re.compile(
    f"[\\x00-\\x7f\u3041-\u3096\u4e00-\u9fff]+(?!{_JOINING})|.{_JOINING}*+", re.DOTALL)

_PLAIN_WORD = re.compile(r"[^\W_]+")
_WORD = re.compile(f"[^\\W_]+(?:{_MARK}++[^\\W_]*)*+")
_PIECE = re.compile(f"[{_UNSPACED}]{_MARK}*+|(?:[^{_UNSPACED}]++{_MARK}*+)++")
_ONLY_CHARACTERS = re.compile(  # kana and Han, the scripts of `_UNSPACED` without marks
    f"[\u3041-\u3096\u309d-\u30ff\u31f0-\u31ff{HAN}]+").fullmatch
_ANY_UNSPACED = re.compile(f"[{_UNSPACED}]").search
_ONE_UNSPACED = re.compile(f"[{_UNSPACED}]").match


def tokens(text: str) -> list[str]:
    """The tokens of a text as they are compared.

    A token is a row of letters, digits and the marks on them, in lower case, or one character of a
    script written without spaces, with its marks. Punctuation, whitespace and `_` separate and are
    no tokens. Forms that NFKC makes equal are; invisible characters do not count.
    """
    if not text.isascii() or _ASCII_CONTROL.search(text):
        text = _INVISIBLE.sub("", text)
    if text.isascii():
        return _PLAIN_WORD.findall(text.lower())
    for mark in _CHINESE_MARKS:
        text = text.replace(mark, " ")
    marked = _MAYBE_MARK.search(text)
    if marked and _MANY_MARKS.search(text):
        text = _FURTHER_MARKS.sub("", text)
    normal = unicodedata.normalize("NFKC", text)
    found: list[str] = []
    for word in (_WORD if marked or normal != text else _PLAIN_WORD).findall(normal):
        if word.isascii():
            found.append(word.lower())
        elif _ONLY_CHARACTERS(word):
            found.extend(word)
        elif not _ANY_UNSPACED(word):
            found.append(_lower(word))
        else:
            found.extend(map(_lower, _PIECE.findall(word)))
    return found


def _lower(piece: str) -> str:
    lower = piece.lower()  # of a capital and a mark there may be no one character, but of this
    return lower if lower == piece else unicodedata.normalize("NFKC", lower)


def spans(text: str) -> Iterator[tuple[int, int]]:
    """Start and end in the text of each token of `tokens(text)`.

    Both never fall. Tokens that NFKC makes of one character (株式会社 of ㍿) share its place.
    """
    if text.isascii() and not _INVISIBLE.search(text):
        for word in _PLAIN_WORD.finditer(text):
            yield word.span()
        return
    normal, starts, ends = _normalised(text)
    for word in _WORD.finditer(normal):
        pieces = [word[0]] if word[0].isascii() else _PIECE.findall(word[0])
        at = word.start()
        for piece in pieces:
            yield starts[at], ends[at + len(piece) - 1]
            at += len(piece)


def _normalised(text: str) -> tuple[str, list[int], list[int]]:
    """The text that `tokens` cuts, and of each of its characters start and end in `text`."""
    kept, places = _visible(text)
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for match in _NORMALISED_ALONE.finditer(kept):
        start, end = match.span()
        piece = unicodedata.normalize("NFKC", _FURTHER_MARKS.sub("", match[0]))
        pieces.append(piece)
        if piece == match[0]:
            starts += places[start:end]
            ends += [place + 1 for place in places[start:end]]
        else:
            starts += [places[start]] * len(piece)
            ends += [places[end - 1] + 1] * len(piece)
    return "".join(pieces), starts, ends


def _visible(text: str) -> tuple[str, list[int]]:
    """The text without invisible characters, and where each of the others was."""
    pieces: list[str] = []
    places: list[int] = []
    position = 0
    for match in _INVISIBLE.finditer(text):
        pieces.append(text[position:match.start()])
        places += range(position, match.start())
        position = match.end()
    return "".join(pieces) + text[position:], [*places, *range(position, len(text))]


def mostly_unspaced(found: list[str]) -> bool:
    """Whether most tokens are characters of scripts written without spaces."""
    return 2 * sum(1 for token in found if _ONE_UNSPACED(token)) > len(found)
