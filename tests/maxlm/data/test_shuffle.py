import hashlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from maxlm.data.shuffle import permute, stable_key


def permutation(size, key):
    return permute(np.arange(size), np.full(size, size), np.full(size, key, np.uint64))


@given(st.integers(1, 3000), st.integers(0, 2**64 - 1))
def test_is_a_permutation(size, key):
    np.testing.assert_array_equal(np.sort(permutation(size, key)), np.arange(size))


@given(st.lists(st.tuples(st.integers(1, 100), st.integers(0, 2**64 - 1)), min_size=1, max_size=20))
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


def test_orders_look_random():
    """First places over many keys are uniform (chi-square, 9 degrees, 0.1 % point is 27.9), and
    neighbours do not stay neighbours."""
    first = np.array([permutation(10, key)[0] for key in range(2000)])
    expected = 200
    assert ((np.bincount(first, minlength=10) - expected) ** 2 / expected).sum() < 27.9
    steps = np.diff(permutation(10_000, 3))
    assert (steps == 1).sum() < 20
    # Positions before and after are uncorrelated: |r| < 4 / sqrt(n).
    assert abs(np.corrcoef(np.arange(10_000), permutation(10_000, 3))[0, 1]) < 0.04


def reference(index, size, key):
    """The same permutation of one number, in Python's own integers."""
    def mix(value):
        value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        value = (value ^ value >> 27) * 0x94D049BB133111EB % 2**64
        return value ^ value >> 31

    bits = max(2, (size - 1).bit_length())
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


@given(st.integers(1, 2**50), st.integers(0, 2**64 - 1), st.data())
def test_equals_the_definition(size, key, data):
    index = data.draw(st.integers(0, size - 1))
    result = permute(np.array([index]), np.array([size]), np.array([key], np.uint64))
    assert result.tolist() == [reference(index, size, key)]


def test_values_never_change():
    """Runs resume with a later version of the program: the order is part of the format."""
    assert stable_key("rows", 0, "web", 0) == int.from_bytes(
        hashlib.sha256(b"rows\x000\x00web\x000").digest()[:8], "little")
    assert permutation(8, 42).tolist() == [5, 3, 4, 0, 1, 7, 2, 6]


def test_keys_tell_parts_apart():
    assert len({stable_key("rows", 1, "a", 2), stable_key("rows", 2, "a", 1),
                stable_key("rows", 1, "a", 3), stable_key("rows", 12, "a", "")}) == 4
