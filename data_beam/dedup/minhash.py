"""MinHash signatures, and how often documents of a similarity meet in a band.

Broder 1997: under a random permutation the smallest elements of two sets are equal with probability
their Jaccard similarity. A signature is the smallest image under each of several permutations
x -> a x + b modulo 2^64 with odd a. Shingles are already hashes, so that such simple permutations
do; tests compare the estimate with the exact similarity.
"""

import functools

import numpy as np
import xxhash

from data_beam.dedup.shingles import mix

_SEED = 0x6D61786C6D  # any constant; another one gives other signatures
_CHUNK = 2**16
"""Products in memory at a time: what stays in a core's cache."""
EMPTY = np.iinfo(np.uint64).max
"""Each element of the signature of no shingles."""


@functools.cache
def _coefficients(permutations: int) -> tuple[np.ndarray, np.ndarray]:
    values = mix(np.arange(_SEED, _SEED + 2 * permutations, dtype=np.uint64)
                 * np.uint64(0x9E3779B97F4A7C15)).reshape(permutations, 2)
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


def estimate(first: np.ndarray, second: np.ndarray) -> float:
    """Jaccard similarity from two signatures: unbiased, with standard deviation
    sqrt(s (1 - s) / permutations)."""
    return float(np.mean(first == second))


def candidate_probability(similarity: float, bands: int, rows: int) -> float:
    """1 - (1 - s^rows)^bands: all rows of at least one band agree (Leskovec, Rajaraman, Ullman,
    Mining of Massive Datasets, 3.4.2)."""
    return 1 - (1 - similarity**rows) ** bands


def choose_bands(similarity: float, permutations: int, probability: float = 0.95
                 ) -> tuple[int, int]:
    """(bands, rows): as many rows as allow a pair of this similarity to meet with the probability,
    or rows of one hash where nothing does. More rows let fewer dissimilar pairs meet."""
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
