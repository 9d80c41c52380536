"""Counting n-grams of words or characters with arithmetic on arrays.

The hash of a string s is sum(m(s[k]) * B**k) modulo 2**64, B odd, m a mixing of code points. Hashes
of words are looked up; sums over words, each shifted by where it starts, give the hash of any run
of words as (sum to its end - sum to its start) / B**start, because B has an inverse. So each n-gram
costs one multiplication, and equal strings have equal hashes, however they are cut into words. Two
different strings have the same hash with probability 2**-64.
"""

import functools
from collections.abc import Sequence
from operator import mul

import numpy as np

from data_beam.base.hashing import GOLDEN as _BASE
from data_beam.base.hashing import mix64

_INVERSE = pow(_BASE, -1, 2**64)
_CACHED = 40
_CACHE_ENTRIES = 500_000


def _powers(base: int, exponents: np.ndarray) -> np.ndarray:
    """base**k modulo 2**64 for an array of k, uint64."""
    return np.power(np.uint64(base), exponents.astype(np.uint64))


def _mixed(text: str) -> np.ndarray:
    """Code points as evenly spread numbers, uint64 [characters]."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    return mix64(codes + np.uint64(_BASE))


@functools.cache
def _letter(character: str) -> int:
    """The mixed code point of a character."""
    return int(_mixed(character)[0])


_first_powers = _powers(_BASE, np.arange(_CACHED)).tolist()


class _WordHashes(dict[str, int]):
    """Word -> its hash; emptied when full."""

    def __missing__(self, word: str) -> int:
        if len(word) > _CACHED:
            codes = _mixed(word)
            return int(np.sum(codes * _powers(_BASE, np.arange(len(codes))), dtype=np.uint64))
        if len(self) >= _CACHE_ENTRIES:
            self.clear()
        # Integers of Python: an array of five numbers costs more than five of them.
        value = sum(map(mul, map(_letter, word), _first_powers)) % 2**64
        self[word] = value
        return value


_word_hashes = _WordHashes()


class WordNgrams:
    """The n-grams of a list of W words, with `gap` characters between two words. With 0, `foo bar`
    and `fo obar` are equal; with 1 they differ."""

    def __init__(self, words: Sequence[str], gap: int):
        count = len(words)
        self._gap = gap
        self._starts = np.zeros(count + 1, np.int64)
        np.cumsum(np.fromiter(map(len, words), np.int64, count) + gap, out=self._starts[1:])
        hashes = np.fromiter(map(_word_hashes.__getitem__, words), np.uint64, count)
        self._sums = np.zeros(count + 1, np.uint64)
        np.cumsum(hashes * _powers(_BASE, self._starts[:-1]), out=self._sums[1:])
        self._shift = _powers(_INVERSE, self._starts[:-1])

    def hashes(self, n: int) -> np.ndarray:
        """Of the n-grams in their order, uint64 [max(W - n + 1, 0)]."""
        count = len(self._shift) - n + 1
        if count <= 0:
            return np.zeros(0, np.uint64)
        return (self._sums[n:] - self._sums[:count]) * self._shift[:count]

    def lengths(self, n: int) -> np.ndarray:
        """Characters of the n-grams, without a gap at the end, int64 [max(W - n + 1, 0)]."""
        count = max(len(self._shift) - n + 1, 0)
        return self._starts[n:][:count] - self._starts[:count] - self._gap

    def top(self, n: int) -> tuple[int, int, int]:
        """The index of the most frequent n-gram (of equally frequent ones the first), its
        characters with gaps, and its copies; (0, 0, 0) if there is no n-gram."""
        hashes = self.hashes(n)
        if not len(hashes):
            return 0, 0, 0
        ordered = np.sort(hashes)
        first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
        copies = np.diff(first, append=len(ordered))
        most = int(copies.max())
        index = 0  # when none is repeated, the first one
        if most > 1:
            index = int(np.argmax(np.isin(hashes, ordered[first[copies == most]])))
        return index, int(self.lengths(n)[index]), most

    def later_copies(self, n: int) -> tuple[int, int]:
        """Characters of n-grams seen before, and the index of the first of them.

        The text is read from its start; after a copy, reading continues behind it, so that no
        character counts twice (datatrove's `find_all_duplicate`).
        """
        hashes = self.hashes(n)
        candidates, keys = repeated(hashes)
        seen: set[int] = set()
        characters = position = 0
        first = -1
        starts = self._starts
        for index, key in zip(candidates.tolist(), keys.tolist(), strict=True):
            if index < position:
                continue
            if key in seen:
                characters += int(starts[index + n] - starts[index]) - self._gap
                position = index + n
                first = index if first < 0 else first
            else:
                seen.add(key)
        return characters, max(first, 0)

    def every_copy(self, n: int) -> tuple[int, int, int]:
        """Characters of n-grams that occur twice or more, every copy counted; characters of all
        n-grams; and the index of the first repeated one.

        Overlapping n-grams each count, gaps do not (dolma's `gopher_v1`).
        """
        lengths = self.lengths(n) - self._gap * (n - 1)
        candidates, _ = repeated(self.hashes(n))
        return (int(lengths[candidates].sum()), int(lengths.sum()),
                int(candidates[0]) if len(candidates) else 0)


def repeated(hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices [R], ascending, of the hashes that occur twice or more, and those hashes [R]."""
    ordered = np.sort(hashes)
    doubles = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(doubles):
        return np.zeros(0, np.int64), doubles
    # isin would sort again; a binary search in the few distinct doubles is a fifth of the time.
    doubles = doubles[np.concatenate(([True], doubles[1:] != doubles[:-1]))]
    found = np.minimum(np.searchsorted(doubles, hashes), len(doubles) - 1)
    indices = np.flatnonzero(doubles[found] == hashes)
    return indices, hashes[indices]


def character_hashes(text: str, n: int) -> np.ndarray:
    """Hashes of the character n-grams of a text, uint64 [max(characters - n + 1, 0)]."""
    codes = _mixed(text)
    count = len(codes) - n + 1
    if count <= 0:
        return np.zeros(0, np.uint64)
    result = np.zeros(count, np.uint64)
    factor = 1
    for offset in range(n):
        result += codes[offset:offset + count] * np.uint64(factor)
        factor = factor * _BASE % 2**64
    return result
