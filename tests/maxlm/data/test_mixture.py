import types
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxlm.data.mixture import Mixture, interleave, largest_remainder
from maxlm.data.sources import ChosenSource, rows_of_period

COUNTS = st.lists(st.integers(1, 60), min_size=1, max_size=40)


@given(COUNTS)
@settings(max_examples=100, deadline=None)
def test_every_prefix_is_within_one_row_of_the_shares(counts):
    order = interleave(counts)
    period = sum(counts)
    assert len(order) == period
    for source, count in enumerate(counts):
        taken = np.concatenate([[0], np.cumsum(order == source)])
        assert taken[-1] == count
        # |taken - share * slots| < 1, in whole numbers
        assert (np.abs(taken * period - count * np.arange(period + 1)) < period).all()


def test_seventy_thirty_by_hand():
    # Ends of the windows: 2 3 5 6 8 9 10 and 4 7 10; begins: 0 1 2 4 5 7 8 and 0 3 6.
    assert interleave([7, 3]).tolist() == [0, 0, 1, 0, 0, 1, 0, 0, 0, 1]


@given(COUNTS, st.integers(0, 10**15))
@settings(max_examples=50, deadline=None)
def test_locate_counts_rows_of_the_same_source(counts, first):
    mixture = Mixture(counts)
    rows = np.arange(first, first + 2 * mixture.period, dtype=np.int64)
    sources, before = mixture.locate(rows)
    for source in range(len(counts)):
        mine = before[sources == source]
        # No skip, no repeat, and it begins where the rows before `first` ended.
        np.testing.assert_array_equal(
            mine, mixture.count(source, first) + np.arange(len(mine)))


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=30), st.integers(30, 5000))
def test_largest_remainder(weights, total):
    counts = largest_remainder([Fraction(w) for w in weights], total)
    assert sum(counts) == total
    assert min(counts) >= 1
    quotas = [Fraction(w * total, sum(weights)) for w in weights]
    if min(quotas) >= 1:
        assert all(abs(c - q) < 1 for c, q in zip(counts, quotas, strict=True))


@pytest.mark.parametrize("shares, total, counts", [
    ([0.7, 0.3], 10, [7, 3]),
    ([1, 1, 1], 10, [4, 3, 3]),
    ([41, 33, 26], 10, [4, 3, 3]),
    ([1000, 1], 10, [9, 1]),
])
def test_largest_remainder_by_hand(shares, total, counts):
    assert largest_remainder([Fraction(s) for s in shares], total) == counts


def chosen(rows, weights=None):
    """Sources of 100 tokens a row, read by their tokens or by weights."""
    entries = [types.SimpleNamespace(tokens=100 * count) for count in rows]
    return [ChosenSource(f"s{i}", None, entry, Fraction(weight), "config.data.tokens")
            for i, (entry, weight) in enumerate(zip(
                entries, weights or [entry.tokens for entry in entries], strict=True))]


@pytest.mark.parametrize("rows", [(300_000, 40), (300_000, 3), (10**6, 10**6, 35)])
def test_a_small_source_of_a_large_corpus_keeps_its_share(rows):
    counts = rows_of_period(chosen(rows), list(rows))
    for count, row in zip(counts, rows, strict=True):
        assert count / sum(counts) == pytest.approx(row / sum(rows), rel=0.25)


def test_periods_stay_short_where_they_can():
    assert rows_of_period(chosen((200_000, 2)), [200_000, 2]) == [200_000, 2]  # exact
    assert sum(rows_of_period(chosen((10**7, 10**4)), [10**7, 10**4])) == 2**16
    assert rows_of_period(chosen((10**7, 3), (3, 1)), [10**7, 3]) == [49152, 16384]
