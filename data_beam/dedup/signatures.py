"""What documents are compared by: shingles, MinHash signatures, SimHash fingerprints.

**Shingles.** A text is lower-cased and cut into tokens: a letter of a script that puts no spaces
between words (Chinese, Japanese, Thai, ...) is a token, and so is a run of other letters, digits
and combining marks; all else separates. A shingle is `word_ngram` tokens in a row, or
`character_ngram` when its first token is such a letter. The rule is local: in a text of two scripts
each part is cut in its own way, and no guess about the language of the whole can separate two
copies. A token's hash is a polynomial in its mixed code points, a shingle's a mixed sum of its
tokens' hashes times odd constants, all modulo 2^64.

**MinHash** (Broder 1997). Under a random permutation the smallest elements of two sets are equal
with probability their Jaccard similarity. A signature is the smallest image under each of several
permutations x -> a x + b modulo 2^64 with odd a. Shingles are already hashes, so such simple
permutations are enough; tests compare the estimate with the exact similarity.

**SimHash** (Charikar 2002). Bit i of the fingerprint is the majority of bit i over the shingles.
Lookup is that of Manku, Jain, Das Sarma 2007: cut the 64 bits into blocks; if two fingerprints
differ in at most d bits, at least blocks - d blocks are equal, so each choice of blocks - d of them
is a key under which the two meet.
"""

import functools
import itertools
import unicodedata

import numpy as np
import xxhash

from data_beam.base.characters import HAN_RANGES
from data_beam.base.hashing import GOLDEN, mix64

_LETTER, _ALONE = 1, 2  # 0 separates
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
_LAST = 0x3FFFF  # code points above are private use, variation selectors and unassigned
_MULTIPLIER = 0xD1342543DE82EF95  # odd; Steele and Vigna 2021, table of 64-bit LCG multipliers
_POWERS = np.power(np.uint64(_MULTIPLIER), np.arange(256, dtype=np.uint64))

_SEED = 0x6D61786C6D  # any constant; another one gives other signatures
_CHUNK = 2**16  # products in memory at a time: fits in a core's cache
EMPTY = np.iinfo(np.uint64).max  # each element of the signature of no shingles

BITS = 64  # of a fingerprint


# Shingles.

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
def _factors(size: int) -> tuple[np.uint64, ...]:
    """An odd constant for each place in a shingle."""
    return tuple(mix64(np.arange(1, size + 1, dtype=np.uint64)) | np.uint64(1))


def token_hashes(text: str) -> tuple[np.ndarray, np.ndarray]:
    """The tokens of a text: [tokens] uint64 hashes, and [tokens] bool, whether it stands alone."""
    points = np.frombuffer(text.lower().encode("utf-32-le", "surrogatepass"), np.uint32)
    kinds = _classes()[np.minimum(points, _LAST)]
    kept = np.flatnonzero(kinds)
    if not len(kept):
        return np.empty(0, np.uint64), np.empty(0, bool)
    points, kinds = points[kept], kinds[kept]
    # A token continues where two letters of words touch.
    starts = np.empty(len(kept), bool)
    starts[0] = True
    starts[1:] = (kept[1:] - kept[:-1] != 1) | (kinds[1:] + kinds[:-1] != 2 * _LETTER)
    first = np.flatnonzero(starts)
    place = np.arange(len(kept)) - np.repeat(first, np.diff(first, append=len(kept)))
    values = (points + np.uint64(1)) * np.uint64(GOLDEN)
    values ^= values >> np.uint64(32)
    values *= _POWERS[place % len(_POWERS)]
    return np.add.reduceat(values, first), kinds[first] == _ALONE


def shingles(text: str, word_ngram: int = 5, character_ngram: int = 5) -> np.ndarray:
    """The shingles of a text: [shingles] uint64 in no order, some maybe more than once; empty for
    too few tokens. A shingle that begins with a word has `word_ngram` tokens, one that begins with
    a letter that stands alone `character_ngram`."""
    tokens, alone = token_hashes(text)
    if word_ngram == character_ngram:
        return _windows(tokens, word_ngram)
    by_words, by_letters = _windows(tokens, word_ngram), _windows(tokens, character_ngram)
    return np.concatenate([by_words[~alone[:len(by_words)]], by_letters[alone[:len(by_letters)]]])


def _windows(tokens: np.ndarray, size: int) -> np.ndarray:
    count = max(0, len(tokens) - size + 1)
    result = np.full(count, size, np.uint64)
    for place, factor in enumerate(_factors(size)):
        result += tokens[place:place + count] * factor
    return mix64(result)


def compare(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Of two sets, each ascending: their Jaccard similarity |A and B| / |A or B|, and the share
    |A and B| / |B| of the second that the first holds. Both are 0 when a set is empty: a text
    without shingles is similar to nothing."""
    if not len(first) or not len(second):
        return 0.0, 0.0
    both = np.concatenate([first, second])
    both.sort(kind="stable")  # two ascending runs: a merge
    common = int(np.count_nonzero(both[1:] == both[:-1]))
    return common / (len(both) - common), common / len(second)


def jaccard(first: np.ndarray, second: np.ndarray) -> float:
    """Jaccard similarity of two sets, each ascending."""
    return compare(first, second)[0]


# MinHash.

@functools.cache
def _coefficients(permutations: int) -> tuple[np.ndarray, np.ndarray]:
    values = mix64(np.arange(_SEED, _SEED + 2 * permutations, dtype=np.uint64)
                   * np.uint64(GOLDEN)).reshape(permutations, 2)
    return values[:, :1] | np.uint64(1), values[:, 1:]


def signature(shingles: np.ndarray, permutations: int) -> np.ndarray:
    """[permutations] uint64 from [shingles] uint64 in any order. Its first elements do not depend
    on how many there are."""
    factors, terms = _coefficients(permutations)
    result = np.full(permutations, EMPTY, np.uint64)
    step = max(1, _CHUNK // permutations)
    buffer = np.empty((permutations, min(step, len(shingles))), np.uint64)
    for start in range(0, len(shingles), step):
        part = shingles[start:start + step]
        images = np.multiply(factors, part, out=buffer[:, :len(part)])
        images += terms
        np.minimum(result, images.min(axis=1), out=result)
    return result


def candidate_probability(similarity: float, bands: int, rows: int) -> float:
    """1 - (1 - s^rows)^bands: all rows of at least one band agree (Leskovec, Rajaraman, Ullman,
    Mining of Massive Datasets, 3.4.2)."""
    return 1 - (1 - similarity**rows) ** bands


def choose_bands(similarity: float, permutations: int, probability: float = 0.95
                 ) -> tuple[int, int]:
    """(bands, rows): the most rows with which a pair of this similarity meets with the probability,
    or rows of one hash where none does. More rows let fewer dissimilar pairs meet."""
    for rows in range(permutations, 0, -1):
        bands = permutations // rows
        if candidate_probability(similarity, bands, rows) >= probability:
            return bands, rows
    return permutations, 1


def band_keys(signature: np.ndarray, bands: int, rows: int) -> list[int]:
    """A 64-bit hash (xxh3, seeded with the band) of each band of a signature."""
    data = np.ascontiguousarray(signature[:bands * rows], "<u8").tobytes()
    width = 8 * rows
    return [xxhash.xxh3_64_intdigest(data[band * width:(band + 1) * width], band)
            for band in range(bands)]


# SimHash.

def simhash(shingles: np.ndarray) -> int:
    """64-bit fingerprint of [shingles] uint64; a tie of the votes is a 0."""
    if not len(shingles):
        return 0
    bits = np.unpackbits(shingles.astype("<u8").view(np.uint8).reshape(-1, 8), axis=1,
                         bitorder="little")
    votes = np.count_nonzero(bits, axis=0) * 2 > len(shingles)
    return int(np.packbits(votes, bitorder="little").view("<u8")[0])


def masks(distance: int, blocks: int) -> np.ndarray:
    """[choices] uint64: the bits of each choice of `blocks - distance` blocks."""
    edges = [BITS * block // blocks for block in range(blocks + 1)]
    block_masks = [(1 << last) - (1 << first) for first, last in itertools.pairwise(edges)]
    return np.array([sum(chosen) for chosen in
                     itertools.combinations(block_masks, blocks - distance)], np.uint64)


def lookup_keys(fingerprints: np.ndarray, distance: int, blocks: int) -> np.ndarray:
    """[n, choices] uint64 keys of [n] uint64 fingerprints: two within the distance share one."""
    chosen = masks(distance, blocks)
    numbers = np.arange(len(chosen), dtype=np.uint64)
    return mix64((fingerprints[:, None] & chosen) ^ mix64(numbers + np.uint64(1)))


