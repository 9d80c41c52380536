"""Moments, quantiles and histograms of shards add up to those of all numbers (against NumPy)."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from data_beam.reporting.distribution import Distribution, lower_edges


def of(*parts) -> Distribution:
    """The distribution of numbers in parts, each of which went through JSON."""
    whole = Distribution()
    for part in parts:
        one = Distribution()
        one.add(np.asarray(part, np.float64))
        whole.merge(Distribution.from_json(json.loads(json.dumps(one.to_json()))))
    return whole


RANDOM = np.random.default_rng(7)
SAMPLES = {
    "normal": RANDOM.normal(size=2000), "lognormal": RANDOM.lognormal(5, 2, 3000),
    "uniform": RANDOM.random(777), "lengths": RANDOM.integers(0, 10**6, 1000),
    "one": np.array([5.0]), "zeros": np.zeros(3), "equal": np.full(10, 990.5),
    "negative": -RANDOM.lognormal(5, 2, 500), "wide": np.array([-3.0, -2, 0, 1e-30, 1e30]),
    "far": np.array([1e-90, 1e90] + [1e-90] * 98), "large and close": 1e9 + RANDOM.random(500),
    "powers": np.array([1.0, 2.0, 4.0] * 30 + [1000.0] * 10)}


@pytest.mark.parametrize("values", SAMPLES.values(), ids=SAMPLES)
def test_parts_add_up_to_the_whole(values):
    found = of(values[:len(values) // 3], values[len(values) // 3:], [])
    assert found.count == len(values)
    assert (found.low, found.high) == (values.min(), values.max())
    assert math.isclose(found.mean, np.mean(values), rel_tol=1e-12, abs_tol=1e-12)
    # The mean of numbers near 1e9 has seven digits behind the point, their distances no more.
    exact, digits = float(np.var(values.astype(np.longdouble))), 7 if found.mean > 1e8 else 10
    assert math.isclose(found.variance, exact, rel_tol=10.0**-digits, abs_tol=1e-12)


@pytest.mark.parametrize("values", SAMPLES.values(), ids=SAMPLES)
def test_a_histogram_counts_as_numpy_does_between_its_edges(values):
    scale, edges, counts = of(values[::2], values[1::2]).histogram()
    assert edges == sorted(set(edges)) and edges[0] <= values.min() and edges[-1] > values.max()
    assert counts == [int(((values >= low) & (values < high)).sum())
                      for low, high in itertools.pairwise(edges)]
    assert 1 <= len(counts) <= 40
    assert scale == "linear" or edges[0] > 0


def test_the_axis_is_logarithmic_for_a_long_tail_only():
    assert of(SAMPLES["lognormal"]).histogram()[0] == "logarithmic"
    assert of(SAMPLES["uniform"]).histogram()[0] == "linear"
    # A classifier's scores, most of them small: zero has no logarithm.
    assert of(np.append(RANDOM.beta(0.2, 5, 500), 0.0)).histogram()[0] == "linear"
    scale, edges, _ = of(np.array([0.01, 0.3, 0.97])).histogram()
    assert (scale, edges) == ("linear", [i / 32 for i in range(33)])


@pytest.mark.parametrize("values", SAMPLES.values(), ids=SAMPLES)
def test_quantiles_are_those_of_numpy_but_for_a_bin(values):
    fractions = (0.0, 0.01, 0.25, 0.5, 0.95, 1.0)
    exact = np.quantile(values, fractions, method="inverted_cdf")
    found = np.array(of(values).quantiles(fractions))
    assert np.array_equal(found, np.maximum(lower_edges(exact), values.min()))
    assert np.all((found <= exact) & (exact - found <= np.abs(exact) * 2.0**-8))


def test_tails_are_exact_at_an_edge():
    values = SAMPLES["uniform"]
    for limit in (0.25, 0.5, 0.75):
        assert of(values).share_from(limit) == np.mean(values >= limit)
    assert of([0.5, 0.4999999]).share_from(0.5) == 0.5


def test_infinities_and_nans_are_counted_apart():
    found = of([1.0, math.nan, 3.0], [math.inf, -math.inf, -1e200])
    assert (found.count, found.not_finite, found.mean, found.variance) == (2, 4, 2.0, 1.0)
    assert of([math.nan]).facts() == {"count": 0, "not_finite": 1}
    json.dumps(found.facts(), allow_nan=False)


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=40),
       st.integers(0, 40))
@example([0.0, -33.0], 0)  # the number above zero, divided by the width of a bin, is zero
@example([1e47, 7e-262], 0)  # 1e309 apart
@example([5e-324, 1e100], 0)
@example([5e-324], 0)
@example([-5e-324, 1000.0], 0)
@example([-5e-324, -1000.0], 0)
def test_any_numbers_in_any_two_parts(values, cut):
    found = of(values[:cut], values[cut:])
    counted = [value for value in values if abs(value) <= 1e100]
    assert (found.count, found.not_finite) == (len(counted), len(values) - len(counted))
    if not counted:
        return
    assert (found.low, found.high) == (min(counted), max(counted))
    edges, counts = np.unique(lower_edges(np.array(counted)), return_counts=True)
    assert found.bins == dict(zip(edges.tolist(), counts.tolist(), strict=True))
    _, edges, counts = found.histogram()
    assert edges == sorted(set(edges)) and edges[0] <= min(counted) and max(counted) < edges[-1]
    assert sum(counts) == len(counted)
    json.dumps(found.facts(), allow_nan=False)
