"""Texts of any language as sparse vectors: hashed n-grams of characters or words.

A token is a Han or Kana character, a run of other letters and digits (in lower case), any other
visible character, or a line feed (frequent in menus). So n-grams are of characters in Chinese and
of words in languages that use spaces. This is the hashing trick of Weinberger et al. 2009 (arXiv
0902.2206) without its sign, which does not improve a linear model with 2**18 buckets.
"""

import functools
import re

import numpy as np
import xxhash

from data_beam.base.characters import HAN, HIRAGANA_KATAKANA
from data_beam.base.hashing import MIX_MULTIPLIERS

_UNSPACED = HIRAGANA_KATAKANA + HAN
_TOKENS = re.compile(f"[{_UNSPACED}]|[^\\W{_UNSPACED}]+|[^\\w\\s]|\\n")
_MULTIPLIER, _SECOND_MULTIPLIER = map(np.uint64, MIX_MULTIPLIERS)


@functools.lru_cache(2**18)
def _hash(token: str) -> int:
    return xxhash.xxh3_64_intdigest(token.encode("utf-8", "surrogatepass"))


class HashedNgrams:
    """Text -> buckets and their values. The number of buckets, `features`, is a power of two; the
    longest n-grams have `longest` tokens."""

    def __init__(self, features: int, longest: int):
        bits = features.bit_length() - 1
        assert features == 1 << bits and 1 <= bits <= 32 and longest >= 1
        self._shift, self._longest = np.uint64(64 - bits), longest

    def __call__(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """Sorted buckets, [n] int64, and 1 + log(count) in each, scaled to length 1, [n]
        float32."""
        tokens = np.array([_hash(token) for token in _TOKENS.findall(text.lower())], np.uint64)
        grams, parts = tokens, [_mixed(tokens)]
        for n in range(2, self._longest + 1):
            # Hashes of the n-grams that begin at each token, from the (n - 1)-grams. Order matters.
            grams = grams[:-1] * _MULTIPLIER + tokens[n - 1:]
            parts.append(_mixed(grams))
        buckets, counts = np.unique(np.concatenate(parts) >> self._shift, return_counts=True)
        values = 1 + np.log(counts, dtype=np.float32)
        norm = np.sqrt(np.square(values).sum())
        return buckets.astype(np.int64), values / norm if len(values) else values


def _mixed(hashes: np.ndarray) -> np.ndarray:
    """Hashes whose high bits depend on all input bits: half of `mix64`. Trained models depend on
    it."""
    return (hashes ^ (hashes >> np.uint64(31))) * _SECOND_MULTIPLIER
