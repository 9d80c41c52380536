"""SimHash fingerprints, and finding those within a Hamming distance without comparing all.

Charikar 2002: bit i of the fingerprint is the majority of bit i over the hashes of the features,
here the shingles. The lookup is that of Manku, Jain, Das Sarma 2007: cut the 64 bits into blocks;
if two fingerprints differ in at most d bits, at least blocks - d blocks are equal, so each choice
of blocks - d of them is a key under which one may meet the other.
"""

import itertools

import numpy as np

from data_beam.dedup.shingles import mix

BITS = 64


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
    assert blocks > distance
    edges = [BITS * block // blocks for block in range(blocks + 1)]
    block_masks = [(1 << last) - (1 << first) for first, last in itertools.pairwise(edges)]
    return np.array([sum(chosen) for chosen in
                     itertools.combinations(block_masks, blocks - distance)], np.uint64)


def lookup_keys(fingerprints: np.ndarray, distance: int, blocks: int) -> np.ndarray:
    """[n, choices] uint64 keys of [n] uint64 fingerprints: two within the distance share one."""
    chosen = masks(distance, blocks)
    numbers = np.arange(len(chosen), dtype=np.uint64)
    return mix((fingerprints[:, None] & chosen) ^ mix(numbers + np.uint64(1)))


def hamming(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Number of bits in which uint64 arrays differ."""
    return np.bitwise_count(first ^ second)
