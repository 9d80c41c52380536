import itertools
import types
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxlm.data.mixture import Mixture, StagedMixture, interleave, largest_remainder
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


@st.composite
def staged(draw):
    """Sources, and stages of random length, members and counts."""
    sources = draw(st.integers(1, 6))
    stages, row = [], 0
    for _ in range(draw(st.integers(1, 8))):
        members = draw(st.lists(st.integers(0, sources - 1), min_size=1, unique=True))
        stages.append((row, members, [draw(st.integers(1, 60)) for _ in members]))
        row += draw(st.integers(1, 150))
    return sources, stages, row


def ideal(stages, rows):
    """[rows + 1, sources] of rows by the shares, at every prefix."""
    sources = 1 + max(max(members) for _, members, _ in stages)
    rate = np.zeros((rows, sources))
    for first, members, counts in stages:
        rate[first:] = 0
        rate[first:, members] = np.asarray(counts) / sum(counts)
    return np.concatenate([np.zeros((1, sources)), np.cumsum(rate, axis=0)])


@given(staged())
@settings(max_examples=100, deadline=None)
def test_stages_skip_and_repeat_no_row_of_a_source(case):
    sources, stages, last = case
    mixture = StagedMixture(sources, stages)
    chosen, before = mixture.locate(np.arange(last + 200))
    for source in range(sources):
        assert before[chosen == source].tolist() == list(range((chosen == source).sum()))
        for rows in (0, 1, *(first for first, _, _ in stages), last, last + 150):
            assert mixture.count(source, rows) == (chosen[:rows] == source).sum()
    for (first, members, _), following in itertools.zip_longest(stages, stages[1:]):
        assert set(chosen[first:following and following[0]]) <= set(members)


@given(staged())
@settings(max_examples=100, deadline=None)
def test_shares_hold_at_every_prefix_of_a_stage(case):
    """A window of a period is within two rows of the shares: one at either end."""
    sources, stages, last = case
    chosen, _ = StagedMixture(sources, stages).locate(np.arange(last + 200))
    for (first, members, counts), following in itertools.zip_longest(stages, stages[1:]):
        end = following[0] if following else last + 200
        for member, count in zip(members, counts, strict=True):
            taken = np.cumsum(chosen[first:end] == member)
            wanted = np.arange(1, end - first + 1) * count / sum(counts)
            assert np.abs(taken - wanted).max() < 2


@pytest.mark.parametrize(("rows", "shares", "bound"), [
    (5, [(1, 99)], 1.0),  # under one row of the small source in a stage
    (7, [(7, 3), (3, 7), (1, 1)], 1.1),
    (3, [(1, 1, 98), (5, 1, 94)], 1.5),
    (50, [(90, 10), (70, 30)], 1.1),
])
def test_rounding_does_not_add_up_over_many_stages(rows, shares, bound):
    stages = [(rows * i, range(len(shares[0])), shares[i % len(shares)]) for i in range(200)]
    mixture = StagedMixture(len(shares[0]), stages)
    chosen, _ = mixture.locate(np.arange(200 * rows))
    taken = np.cumsum(chosen[:, None] == np.arange(len(shares[0])), axis=0)
    assert np.abs(taken - ideal(stages, 200 * rows)[1:]).max() < bound


def test_the_first_stage_is_the_mixture_alone():
    alone, stages = Mixture([7, 3]), StagedMixture(2, [(0, [0, 1], [7, 3])])
    rows = np.arange(10**15, 10**15 + 40)
    for one, other in zip(alone.locate(rows), stages.locate(rows), strict=True):
        np.testing.assert_array_equal(one, other)


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
