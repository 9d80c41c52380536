import hashlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from maxlm.data.shuffle import SHUFFLED_BELOW, permute, stable_key


def permutation(size, key):
    return permute(np.arange(size), np.full(size, size), np.full(size, key, np.uint64))


@given(st.integers(1, 3000), st.integers(0, 2**64 - 1))
def test_is_a_permutation(size, key):
    np.testing.assert_array_equal(np.sort(permutation(size, key)), np.arange(size))


@given(st.lists(st.tuples(st.integers(1, 1000), st.integers(0, 2**64 - 1)), min_size=1,
                max_size=20))
def test_mixed_sizes_and_keys_equal_each_alone(cases):
    sizes = np.array([size for size, _ in cases])
    keys = np.array([key for _, key in cases], np.uint64)
    together = permute(sizes - 1, sizes, keys)
    for result, (size, key) in zip(together, cases, strict=True):
        assert result == permutation(size, key)[size - 1]


def test_sizes_far_beyond_32_bits_stay_inside():
    for size in (2**40 - 1, 2**40, 2**40 + 1, 2**53 + 1, 2**62):
        index = np.array([0, 1, size // 2, size - 1])
        result = permute(index, np.full(4, size), np.full(4, 7, np.uint64))
        assert len(set(result.tolist())) == 4
        assert ((result >= 0) & (result < size)).all()


def chi_square(observed, expected):
    return float(((observed - expected) ** 2 / expected).sum())


def permutations(size, count):
    """[count, size]: the permutations of many keys."""
    keys = np.array([stable_key("uniform", size, i) for i in range(count)], np.uint64)
    index = np.tile(np.arange(size), count)
    return permute(index, np.full(len(index), size), np.repeat(keys, size)).reshape(count, size)


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
def test_every_permutation_of_a_small_size_is_equally_likely(size):
    count = 100 * math.factorial(size)
    _, seen = np.unique(permutations(size, count), axis=0, return_counts=True)
    assert len(seen) == math.factorial(size)
    assert chi_square(seen, 100) < stats.chi2.isf(1e-3, math.factorial(size) - 1)


@pytest.mark.parametrize("size", [5, 7, 8, 9, 16, 17, 33, 100, SHUFFLED_BELOW - 1, SHUFFLED_BELOW])
def test_every_row_is_equally_likely_in_every_place(size):
    count = max(4000, 20 * size)
    table = np.zeros((size, size))
    np.add.at(table, (np.arange(size)[None], permutations(size, count)), 1)
    # A permutation fills each row and column once: (size - 1)^2 degrees of freedom after scaling.
    statistic = chi_square(table, count / size) * (size - 1) / size
    assert statistic < stats.chi2.isf(1e-3, (size - 1) ** 2)


def test_neighbours_do_not_stay_neighbours():
    for size in (500, 10_000):
        order = permutation(size, 3)
        assert (np.diff(order) == 1).sum() < 20
        # Positions before and after are uncorrelated: |r| < 4 / sqrt(n).
        assert abs(np.corrcoef(np.arange(size), order)[0, 1]) < 4 / size**0.5


def mix(value):
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ value >> 27) * 0x94D049BB133111EB % 2**64
    return value ^ value >> 31


def reference(index, size, key):
    """The same permutation of one number, in Python's own integers."""
    if size < SHUFFLED_BELOW:
        order = list(range(size))
        for i in range(size - 1, 0, -1):
            place = mix((key + (i + 1) * 0x9E3779B97F4A7C15) % 2**64) % (i + 1)
            order[i], order[place] = order[place], order[i]
        return order[index]
    bits = (size - 1).bit_length()
    low, high = bits // 2, bits - bits // 2
    while True:
        left, right = index >> low, index % 2**low
        for number in range(6):
            round_key = mix((key + (number + 1) * 0x9E3779B97F4A7C15) % 2**64)
            if number % 2 == 0:
                left ^= mix((right + round_key) % 2**64) % 2**high
            else:
                right ^= mix((left + round_key) % 2**64) % 2**low
        index = left << low | right
        if index < size:
            return index


@given(st.one_of(st.integers(1, 600), st.integers(1, 2**50)), st.integers(0, 2**64 - 1), st.data())
def test_equals_the_definition(size, key, data):
    index = data.draw(st.integers(0, size - 1))
    result = permute(np.array([index]), np.array([size]), np.array([key], np.uint64))
    assert result.tolist() == [reference(index, size, key)]


def test_values_never_change():
    """Runs resume with a later version of the program: the order is part of the format
    (`maxlm.data.plan.PLAN_FORMAT`)."""
    assert stable_key("rows", 0, "web", 0) == int.from_bytes(
        hashlib.sha256(b"rows\x000\x00web\x000").digest()[:8], "little")
    assert permutation(8, 42).tolist() == [6, 1, 3, 7, 5, 0, 2, 4]
    assert permutation(1000, 42)[:8].tolist() == [866, 242, 819, 285, 670, 583, 799, 311]


def test_keys_tell_parts_apart():
    assert len({stable_key("rows", 1, "a", 2), stable_key("rows", 2, "a", 1),
                stable_key("rows", 1, "a", 3), stable_key("rows", 12, "a", "")}) == 4
