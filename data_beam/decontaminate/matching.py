"""Finds all n-grams of the evaluation sets in a document, without a Python loop over its words.

**Tokens.** Documents are cleaned, evaluation items are not. So both are normalised before they are
cut into tokens: invisible characters are removed and NFKC is applied. Most items are compared token
by token. Items in scripts without spaces are compared character by character over all their tokens,
so that a space or line break inside a number or a Latin word does not matter.

**Index.** If a window of a document has the hash of an n-gram, the window is a candidate. Then all
its tokens (or characters) are compared by their 64-bit hashes.
"""

import dataclasses
import re
import unicodedata
from collections.abc import Iterable, Iterator

import numpy as np
import xxhash

from data_beam.base.characters import HAN, HIRAGANA_KATAKANA
from data_beam.base.hashing import GOLDEN, mix64
from data_beam.config import DecontaminateConfig

# Scripts written without spaces between words: kana, Han, Thai, Lao, Myanmar, Khmer.
_UNSPACED = ("\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u31f0-\u31ff\uff66-\uff9f"
             + HIRAGANA_KATAKANA + HAN)
# Accents and vowel signs that are characters of their own, and characters that NFKC turns into one.
# \w matches none of them. `re` compares those above U+FFFF one by one, so they are tested only for
# characters in their range.
_MARKS = "".join(chr(code) for code in range(0x300, 0x10000)
                 if unicodedata.category(chr(code))[0] == "M") + "\u0e33\u0eb3\uff9e\uff9f"
_HIGH = "\U00010000-\U0001efff"
_HIGH_MARKS = "".join(chr(code) for code in range(0x10000, 0x1f000)
                      if unicodedata.category(chr(code))[0] == "M")
_MARK = f"(?:[{_MARKS}]|(?=[{_HIGH}])[{_HIGH_MARKS}])"
_JAMO = "\u1160-\u11ff\u3131-\u318e\ud7b0-\ud7ff\uffa0-\uffdc"

# Characters that cleaning removes (data_beam/clean/repairs.py), and other invisible characters:
# joiners, direction marks, fillers, variation selectors, tags.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0e-\x1f\x7f\x80-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffc\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]")
_ASCII_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f]")
# NFKC turns these into other separators. Most texts without them are already in NFKC.
_CHINESE_MARKS = "，：；！？（）…\u3000"
# Normalisation sorts runs of marks in quadratic time. So only the first 30 marks of a run are used,
# the limit of UAX #15 (Stream-Safe Text Format).
_MAYBE_MARK = re.compile(f"[{_MARKS}{_HIGH}]")  # or any character above U+FFFF: a fast test
_MANY_MARKS = re.compile(f"{_MAYBE_MARK.pattern}{_MAYBE_MARK.pattern}{{30}}")
_FURTHER_MARKS = re.compile(f"(?<={_MARK}{{30}}){_MARK}++")
# A part of a text that NFKC changes independently: a character and those that may combine with it.
_JOINING = f"(?:{_MARK}|[{_JAMO}])"
_NORMALISED_ALONE = re.compile(
    f"[\\x00-\\x7f\u3041-\u3096\u4e00-\u9fff]+(?!{_JOINING})|.{_JOINING}*+", re.DOTALL)

_PLAIN_WORD = re.compile(r"[^\W_]+")
_WORD = re.compile(f"[^\\W_]+(?:{_MARK}++[^\\W_]*)*+")
_PIECE = re.compile(f"[{_UNSPACED}]{_MARK}*+|(?:[^{_UNSPACED}]++{_MARK}*+)++")
_ONLY_CHARACTERS = re.compile(  # kana and Han, the scripts of `_UNSPACED` without marks
    "[\u3041-\u3096\u309d-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]+"
).fullmatch
_ANY_UNSPACED = re.compile(f"[{_UNSPACED}]").search
_ONE_UNSPACED = re.compile(f"[{_UNSPACED}]").match


def tokens(text: str) -> list[str]:
    """The tokens of a text as they are compared.

    A token is a run of letters, digits and their marks, in lower case, or one character of a script
    written without spaces, with its marks. Punctuation, whitespace and `_` separate tokens. Forms
    that NFKC makes equal give equal tokens, and invisible characters are ignored.
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
    lower = piece.lower()  # may compose with its mark to one character, unlike the capital
    return lower if lower == piece else unicodedata.normalize("NFKC", lower)


def spans(text: str) -> Iterator[tuple[int, int]]:
    """Start and end in the text of each token of `tokens(text)`.

    Starts and ends never decrease. Tokens that NFKC makes from one character (株式会社 from ㍿)
    have the same start and end.
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
    """The normalised text that `tokens` cuts, and start and end in `text` of each of its
    characters."""
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
    shown = np.ones(len(text), bool)
    for match in _INVISIBLE.finditer(text):
        shown[match.start()] = False
    return _INVISIBLE.sub("", text), np.flatnonzero(shown).tolist()


def mostly_unspaced(found: list[str]) -> bool:
    """Whether a text of these tokens is mostly in scripts written without spaces.

    It is if it has more characters of these scripts than other words. Four letters or digits count
    as a word, so that a space inside a number or a formula changes nothing.
    """
    unspaced = [token for token in found if _ONE_UNSPACED(token)]
    others = sum(map(len, found)) - sum(map(len, unspaced))
    return 4 * len(unspaced) > others


# The index.

_BASE = np.uint64(GOLDEN)
_FILTER_MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)
_SLOTS_PER_NGRAM = 8


def lengths(found: list[str], config: DecontaminateConfig) -> tuple[int, int]:
    """n, and the fewest tokens that are searched for, of a text of these tokens."""
    if mostly_unspaced(found):
        return config.characters, config.min_characters
    return config.words, config.min_words


@dataclasses.dataclass(frozen=True)
class Match:
    """Tokens `start` to `start + length` of a document contain an n-gram of text number `text`."""

    start: int
    length: int
    text: int


def _unit_hashes(found: list[str], characters: bool) -> tuple[np.ndarray, np.ndarray]:
    """The units that are compared: [units] uint64 hashes of the tokens, or of the characters of all
    tokens; and [tokens + 1] int64, the index of the unit at which each token begins."""
    if not characters:
        encoded = "\n".join(found).encode("utf-8", "surrogatepass").split(b"\n")  # no token has one
        return (np.fromiter(map(xxhash.xxh3_64_intdigest, encoded), np.uint64, len(found)),
                np.arange(len(found) + 1))
    points = np.frombuffer("".join(found).encode("utf-32-le", "surrogatepass"), np.uint32)
    starts = np.arange(len(found) + 1)
    if len(points) != len(found):
        np.cumsum(np.fromiter(map(len, found), np.int64, len(found)), out=starts[1:])
    return mix64(points + _BASE), starts


def _window_hashes(hashes: np.ndarray, lengths: Iterable[int]) -> Iterator[tuple[int, np.ndarray]]:
    """(n, [N - n + 1] uint64) for each n, ascending: polynomials in the hashes modulo 2^64."""
    wanted = set(lengths)
    window = np.zeros(len(hashes) + 1, np.uint64)
    for n in range(1, max(wanted, default=0) + 1):
        if n > len(hashes):
            return
        window = window[:-1] * _BASE + hashes[n - 1:]
        if n in wanted:
            yield n, window


class _Table:
    """N-grams by the hash of their first units: the sorted hashes, the n-gram of each, and a bit
    table that rejects most other hashes fast. Of equal n-grams the first is kept.

    `grams` are arrays of length n: hash, text, offset and number of units of each n-gram; `whole`
    are [n] hashes of all units.
    """

    def __init__(self, grams: list[np.ndarray], whole: np.ndarray):
        order = np.lexsort((whole, grams[0]))  # stable: the first of equal ones stays first
        first, rest = grams[0][order], whole[order]
        new = np.concatenate([[True], (first[1:] != first[:-1]) | (rest[1:] != rest[:-1])])
        self.hashes, self.texts, self.offsets, self.units = (g[order[new]] for g in grams)
        bits = max(10, int(np.ceil(np.log2(_SLOTS_PER_NGRAM * len(self.hashes)))))
        self._shift = np.uint64(64 - bits)
        self._filter = np.zeros(2**bits, bool)
        self._filter[self._slots(self.hashes)] = True

    def _slots(self, hashes: np.ndarray) -> np.ndarray:
        return (hashes * _FILTER_MULTIPLIER) >> self._shift

    def find(self, windows: np.ndarray) -> Iterator[tuple[int, int]]:
        """(position in `windows`, row of this table) of equal hashes."""
        candidates = np.flatnonzero(self._filter[self._slots(windows)])
        first = np.searchsorted(self.hashes, windows[candidates], side="left")
        last = np.searchsorted(self.hashes, windows[candidates], side="right")
        for place in np.flatnonzero(first < last).tolist():
            for row in range(int(first[place]), int(last[place])):
                yield int(candidates[place]), row


class NgramIndex:
    """The n-grams of texts, each given by its tokens.

    A text with n or more tokens is searched for by its n-grams. A shorter text is searched for as a
    whole if it has at least the minimum number of tokens; otherwise it is ignored. If several texts
    have an n-gram, the index names the first.

    Memory: 8 bytes for each token (character), and about 35 for each n-gram.
    """

    def __init__(self, texts: Iterable[list[str]], config: DecontaminateConfig):
        self._texts: list[np.ndarray] = []
        gathered: dict[tuple[bool, int], list[list[np.ndarray]]] = {}
        for number, found in enumerate(texts):
            n, fewest = lengths(found, config)
            n = min(n, len(found))
            characters = mostly_unspaced(found)
            units, starts = _unit_hashes(found if n >= fewest else [], characters)
            self._texts.append(units)
            if n < fewest:
                continue
            begin = starts[:len(found) - n + 1]
            sizes = starts[n:] - begin
            # Compared by characters, an n-gram of n tokens may have more than n units. The hash of
            # its first n units makes a window a candidate.
            _, proposals = next(_window_hashes(units, [n]))
            grams = [proposals[begin], np.full(len(begin), number, np.int32),
                     begin.astype(np.int32), sizes.astype(np.int32)]
            whole = grams[0].copy()
            for place in np.flatnonzero(sizes > n).tolist():
                whole[place] = xxhash.xxh3_64_intdigest(
                    units[begin[place]:begin[place] + sizes[place]].tobytes())
            gathered.setdefault((characters, n), []).append([*grams, whole])
        self._tables: dict[bool, dict[int, _Table]] = {}
        for (characters, n), parts in sorted(gathered.items()):
            *grams, whole = (np.concatenate(column) for column in zip(*parts, strict=True))
            self._tables.setdefault(characters, {})[n] = _Table(grams, whole)

    def __len__(self) -> int:
        """Number of distinct n-grams."""
        return sum(len(table.hashes) for tables in self._tables.values()
                   for table in tables.values())

    def find(self, found: list[str]) -> list[Match]:
        """All matches of n-grams in the tokens of a document, by script, length and position."""
        matches = []
        for characters, tables in self._tables.items():
            units, starts = _unit_hashes(found, characters)
            for n, windows in _window_hashes(units, tables):
                table = tables[n]
                for start, row in table.find(windows):
                    text, offset = int(table.texts[row]), int(table.offsets[row])
                    end = start + int(table.units[row])
                    if np.array_equal(units[start:end], self._texts[text][
                            offset:offset + end - start]):
                        first, last = np.searchsorted(starts, [start, end - 1], side="right") - 1
                        matches.append(Match(int(first), int(last - first) + 1, text))
        return matches
