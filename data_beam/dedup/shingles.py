"""The set of shingles of a text, as 64-bit hashes.

A text is lower-cased and cut into tokens: a letter of a script that puts no spaces between words
(Chinese, Japanese, Thai, ...) is a token, and so is a run of other letters, digits and combining
marks; all else separates. A shingle is `word_ngram` tokens in a row, or `character_ngram` when its
first token is such a letter. It is a local rule: in a text of two scripts each part is treated in
its own way, and no guess about the language of the whole can part two copies.

Everything is arithmetic modulo 2^64 over arrays of code points. A token's hash is a polynomial in
its mixed code points, a shingle's a sum of its tokens' hashes times odd constants, mixed by the
finaliser of splitmix64 (Steele, Lea, Flood 2014). Nothing depends on the process.
"""

import functools
import unicodedata

import numpy as np

from data_beam.base.characters import HAN_RANGES

_SEPARATOR, _LETTER, _ALONE = 0, 1, 2

_NO_SPACES = (
    (0x0E00, 0x0EFF),    # Thai, Lao
    (0x0F40, 0x0FBC),    # Tibetan
    (0x1000, 0x109F),    # Burmese
    (0x1780, 0x17DD),    # Khmer
    (0x3005, 0x3007),    # iteration mark, zero
    (0x3041, 0x30FF),    # Hiragana, Katakana
    (0x3105, 0x312F),    # Bopomofo
    (0x31F0, 0x31FF),    # Katakana extensions
    (0xFF66, 0xFF9F),    # half-width Katakana
    (0x1B000, 0x1B16F),  # Kana supplements
    *HAN_RANGES,
)
_LAST = 0x3FFFF
"""Beyond are private use, variation selectors and nothing assigned."""

_POWERS = 256
_MULTIPLIER = 0xD1342543DE82EF95  # odd; Steele and Vigna 2021, table of 64-bit LCG multipliers
_GOLDEN = 0x9E3779B97F4A7C15      # 2^64 / golden ratio


@functools.cache
def _classes() -> np.ndarray:
    """[0x40000] uint8: the class of each code point."""
    result = np.zeros(_LAST + 1, np.uint8)
    for point in range(0x20000):  # Han extensions follow
        character = chr(point)
        if character.isalnum() or unicodedata.category(character)[0] == "M":
            result[point] = _LETTER
    for first, last in _NO_SPACES:
        block = result[first:last + 1]
        block[block == _LETTER] = _ALONE
    result[0x20000:] = _ALONE
    return result


@functools.cache
def _powers() -> np.ndarray:
    """[256] uint64: powers of the multiplier."""
    value, values = 1, []
    for _ in range(_POWERS):
        values.append(value)
        value = value * _MULTIPLIER % 2**64
    return np.array(values, np.uint64)


@functools.cache
def _factors(size: int) -> tuple[np.uint64, ...]:
    """An odd constant for each place in a shingle."""
    return tuple(mix(np.arange(1, size + 1, dtype=np.uint64)) | np.uint64(1))


def mix(values: np.ndarray) -> np.ndarray:
    """uint64 -> uint64 of the same shape, one to one: the finaliser of splitmix64."""
    values = values ^ (values >> np.uint64(30))
    values *= np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(27)
    values *= np.uint64(0x94D049BB133111EB)
    values ^= values >> np.uint64(31)
    return values


def token_hashes(text: str) -> tuple[np.ndarray, np.ndarray]:
    """The tokens of a text.

    Returns:
      [tokens] uint64 hashes, and [tokens] bool: whether it is a letter that stands alone.
    """
    points = np.frombuffer(text.lower().encode("utf-32-le", "surrogatepass"), np.uint32)
    kinds = _classes()[np.minimum(points, _LAST)]
    kept = np.flatnonzero(kinds)
    if not len(kept):
        return np.empty(0, np.uint64), np.empty(0, bool)
    points, kinds = points[kept], kinds[kept]
    # A token goes on where two letters of words touch.
    starts = np.empty(len(kept), bool)
    starts[0] = True
    starts[1:] = (kept[1:] - kept[:-1] != 1) | (kinds[1:] + kinds[:-1] != 2 * _LETTER)
    first = np.flatnonzero(starts)
    place = np.arange(len(kept)) - np.repeat(first, np.diff(first, append=len(kept)))
    values = (points + np.uint64(1)) * np.uint64(_GOLDEN)
    values ^= values >> np.uint64(32)
    values *= _powers()[place % _POWERS]
    return np.add.reduceat(values, first), kinds[first] == _ALONE


def shingles(text: str, word_ngram: int = 5, character_ngram: int = 5) -> np.ndarray:
    """The shingles of a text.

    Args:
      text: any text.
      word_ngram: tokens of a shingle that begins with a word.
      character_ngram: tokens of a shingle that begins with a letter that stands alone.

    Returns:
      [shingles] uint64 in no order, some maybe more than once; empty for too few tokens.
    """
    tokens, alone = token_hashes(text)
    if word_ngram == character_ngram:
        return _windows(tokens, word_ngram)
    by_words, by_letters = _windows(tokens, word_ngram), _windows(tokens, character_ngram)
    return np.concatenate([by_words[~alone[:len(by_words)]],
                           by_letters[alone[:len(by_letters)]]])


def _windows(tokens: np.ndarray, size: int) -> np.ndarray:
    count = max(0, len(tokens) - size + 1)
    result = np.full(count, size, np.uint64)
    for place, factor in enumerate(_factors(size)):
        result += tokens[place:place + count] * factor
    return mix(result)


def distinct(values: np.ndarray) -> np.ndarray:
    """The set of an array's values, ascending."""
    values = np.sort(values)
    return values[np.concatenate([[True], values[1:] != values[:-1]])] if len(values) else values


def jaccard(first: np.ndarray, second: np.ndarray) -> float:
    """Jaccard similarity |A and B| / |A or B| of two sets, each `distinct`; 0 when one
    is empty: a text without shingles is similar to nothing."""
    if not len(first) or not len(second):
        return 0.0
    both = np.concatenate([first, second])
    both.sort(kind="stable")  # two ascending runs: a merge
    common = int(np.count_nonzero(both[1:] == both[:-1]))
    return common / (len(both) - common)
