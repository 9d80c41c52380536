"""Hashes that are the same in every process and on every machine."""

import numpy as np

GOLDEN = 0x9E3779B97F4A7C15  # 2^64 / golden ratio, made odd: multiplying modulo 2^64 loses no bit
MIX_MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_FIRST, _SECOND = map(np.uint64, MIX_MULTIPLIERS)


def mix64(values: np.ndarray) -> np.ndarray:
    """uint64 -> uint64 of the same shape, one to one: the finaliser of SplitMix64 (Steele, Lea,
    Flood 2014). Every bit of the result depends on all bits of the value."""
    values = values ^ (values >> np.uint64(30))
    values *= _FIRST
    values ^= values >> np.uint64(27)
    values *= _SECOND
    values ^= values >> np.uint64(31)
    return values


def split_of(sha256: str, validation: float, test: float) -> str:
    """`train`, `validation` or `test`, from the SHA-256 of a text.

    The first 64 bits of the hash are a number in [0, 1): below `test` the split is test, in the
    next `validation` it is validation, above it is train. Equal texts always share a split, and a
    larger share of one split moves documents only from train.
    """
    position = int(sha256[:16], 16) / 2**64
    if position < test:
        return "test"
    return "validation" if position < test + validation else "train"
