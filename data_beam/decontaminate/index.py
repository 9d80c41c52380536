"""All n-grams of the evaluation sets, found in a document without a Python step a word."""

import dataclasses
from collections.abc import Iterable, Iterator

import numpy as np
import xxhash

from data_beam.decontaminate.tokens import mostly_unspaced

_BASE = np.uint64(0x9E3779B97F4A7C15)  # odd: multiplication keeps all 64 bits
_MIX = np.uint64(0xD6E8FEB86659FD93)
_SLOTS_PER_NGRAM = 8


@dataclasses.dataclass(frozen=True)
class Lengths:
    """Tokens of an n-gram, and fewest of a text that is searched for, by kind of script."""

    words: int
    min_words: int
    characters: int
    min_characters: int


@dataclasses.dataclass(frozen=True)
class Match:
    """Tokens `start` to `start + length` of a document are those of a text from `offset` on."""

    start: int
    length: int
    text: int
    offset: int


def _token_hashes(tokens: list[str]) -> np.ndarray:
    """[N] uint64, xxh3_64 of each token."""
    encoded = "\n".join(tokens).encode("utf-8", "surrogatepass").split(b"\n")  # no token has one
    return np.fromiter(map(xxhash.xxh3_64_intdigest, encoded), np.uint64, len(tokens))


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
    """The n-grams of one length: sorted hashes, the place of each, and a filter before them."""

    def __init__(self, hashes: np.ndarray, texts: np.ndarray, offsets: np.ndarray):
        # Of equal hashes the first place stays: np.unique names the first.
        self.hashes, first = np.unique(hashes, return_index=True)
        self.texts, self.offsets = texts[first], offsets[first]
        bits = max(10, int(np.ceil(np.log2(_SLOTS_PER_NGRAM * len(self.hashes)))))
        self._shift = np.uint64(64 - bits)
        self._filter = np.zeros(2**bits, bool)
        self._filter[self._slots(self.hashes)] = True

    def _slots(self, hashes: np.ndarray) -> np.ndarray:
        return (hashes * _MIX) >> self._shift

    def find(self, windows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """([M] positions in `windows`, [M] rows of this table) of equal hashes."""
        candidates = np.flatnonzero(self._filter[self._slots(windows)])
        rows = np.searchsorted(self.hashes, windows[candidates])
        rows[rows == len(self.hashes)] = 0
        equal = self.hashes[rows] == windows[candidates]
        return candidates[equal], rows[equal]


class NgramIndex:
    """The n-grams of texts.

    A text with n or more tokens is searched for by its n-grams, a shorter one as a whole if it has
    the fewest tokens allowed, else not at all. n is that of characters where most of the text's
    tokens are single characters of scripts without spaces.

    Of each token 8 bytes are kept, its hash, and of each n-gram about 30.

    Args:
      texts: tokens of each.
      lengths: n, and the fewest.
    """

    def __init__(self, texts: Iterable[list[str]], lengths: Lengths):
        self._texts: list[np.ndarray] = []
        self.too_short: list[bool] = []
        """By text: it is not searched for."""
        gathered: dict[int, list[tuple[int, np.ndarray]]] = {}
        for number, tokens in enumerate(texts):
            n, fewest = ((lengths.characters, lengths.min_characters) if mostly_unspaced(tokens)
                         else (lengths.words, lengths.min_words))
            self.too_short.append(len(tokens) < fewest)
            self._texts.append(_token_hashes([] if self.too_short[-1] else tokens))
            n = min(n, len(self._texts[-1]))
            for _, hashes in _window_hashes(self._texts[-1], [n]):
                gathered.setdefault(n, []).append((number, hashes))
        self._tables = {
            n: _Table(np.concatenate([hashes for _, hashes in found]),
                      np.repeat(np.array([number for number, _ in found], np.int32),
                                [len(hashes) for _, hashes in found]),
                      np.concatenate([np.arange(len(hashes), dtype=np.int32)
                                      for _, hashes in found]))
            for n, found in sorted(gathered.items())}

    def __len__(self) -> int:
        """Different n-grams."""
        return sum(len(table.hashes) for table in self._tables.values())

    def find(self, tokens: list[str]) -> list[Match]:
        """All places where an n-gram stands, by length and place.

        The hash of a window only proposes: the hashes of its tokens, 64 bits each, are compared.
        """
        matches = []
        found = _token_hashes(tokens)
        for n, windows in _window_hashes(found, self._tables):
            table = self._tables[n]
            for start, row in zip(*table.find(windows), strict=True):
                text, offset = int(table.texts[row]), int(table.offsets[row])
                if np.array_equal(found[start:start + n], self._texts[text][offset:offset + n]):
                    matches.append(Match(int(start), n, text, offset))
        return matches
