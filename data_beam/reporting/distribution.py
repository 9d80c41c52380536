"""How numbers are distributed: moments and a histogram, in bounded memory, of any range.

The bin of a number is given by its first 9 significant binary digits. So a bin is at most 0.4 % of
its number wide, and all shards and corpora have the same bins: the range need not be known before,
and the histograms of two shards add up. The histograms shown merge whole bins, so they are exact.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

_DIGITS = 9
_SHOWN_BINS = 32
_LARGEST = 1e100  # squares of larger numbers may be infinite; no real measure is larger
_LEAST = -1074  # exponent of the smallest positive float64
_SKEW = 6.0  # axis is logarithmic if the 99th percentile is more than this times the median
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def lower_edges(values: np.ndarray) -> np.ndarray:
    """Largest bin edge that is not above each value. [n] float64."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.floor(np.ldexp(mantissa, _DIGITS)), exponent - _DIGITS)


class Distribution:
    """Count, sum, variance, extremes and histogram of the finite numbers among some."""

    def __init__(self) -> None:
        self.not_finite = 0  # NaNs, infinities and numbers beyond 1e100
        self.count = 0
        self.total = 0.0  # exact for integers up to 2**53
        self.squares = 0.0  # sum of squared distances from the mean
        self.low, self.high = math.inf, -math.inf
        self.bins: dict[float, int] = {}  # numbers by lower edge of their bin

    def add(self, values: np.ndarray) -> None:
        """Counts numbers. [n], any numeric dtype."""
        values = np.asarray(values, np.float64)
        finite = np.abs(values) <= _LARGEST
        self.not_finite += len(values) - int(finite.sum())
        values = values[finite]
        if not len(values):
            return
        edges, counts = np.unique(lower_edges(values), return_counts=True)
        total = float(values.sum())
        other = Distribution()
        other.count, other.total = len(values), total
        other.squares = float(((values - total / len(values)) ** 2).sum())
        other.low, other.high = float(values.min()), float(values.max())
        other.bins = dict(zip(edges.tolist(), counts.tolist(), strict=True))
        self.merge(other)

    def merge(self, other: "Distribution") -> None:
        """Adds the numbers of another distribution.

        Variances are combined by the formula of Chan, Golub and LeVeque (1979), which does not lose
        digits as a sum of squares would.
        """
        self.not_finite += other.not_finite
        if not other.count:
            return
        if self.count:
            distance = other.total / other.count - self.total / self.count
            self.squares += distance**2 * self.count * other.count / (self.count + other.count)
        self.count += other.count
        self.total += other.total
        self.squares += other.squares
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        for edge, count in other.bins.items():
            self.bins[edge] = self.bins.get(edge, 0) + count

    @property
    def mean(self) -> float:
        return self.total / self.count

    @property
    def variance(self) -> float:
        """The population variance: divided by the count, not by one less."""
        return self.squares / self.count

    def quantiles(self, fractions: Iterable[float]) -> list[float]:
        """For each fraction q, increasing, the number of rank ceil(q count), as the lower edge of
        its bin: up to 0.4 % too small, exact for integers below 512."""
        wanted = [(max(1, math.ceil(q * self.count)), q) for q in fractions]
        found: list[float] = []
        seen = 0
        for edge, count in sorted(self.bins.items()):
            seen += count
            while len(found) < len(wanted) and seen >= wanted[len(found)][0]:
                found.append(max(edge, self.low))
        return found

    def share_from(self, limit: float) -> float:
        """Share of the numbers of at least `limit`, which must be an edge: 0.5, 0.25, 3."""
        assert float(lower_edges(np.array([limit]))[0]) == limit
        return sum(count for edge, count in self.bins.items() if edge >= limit) / self.count

    def histogram(self) -> tuple[str, list[float], list[int]]:
        """The numbers in about 30 bins: "linear" or "logarithmic", the axis on which the bins are
        about equally wide; the edges, one more than bins; and the count of each bin, its lower edge
        included."""
        median, tail = self.quantiles((0.5, 0.99))
        if self.low > 0 and tail / median > _SKEW:
            scale, edges = "logarithmic", self._logarithmic_edges()
        else:
            scale, edges = "linear", self._linear_edges()
        counts = np.zeros(len(edges) - 1, np.int64)
        lower = np.fromiter(self.bins, np.float64, len(self.bins))
        np.add.at(counts, np.searchsorted(edges, lower, "right") - 1,
                  np.fromiter(self.bins.values(), np.int64, len(self.bins)))
        return scale, edges, counts.tolist()

    def _linear_edges(self) -> list[float]:
        """Multiples of a power of two that is no finer than the bins."""
        _, exponent = math.frexp(max(abs(self.low), abs(self.high)))
        step = math.ldexp(1.0, max(exponent - _DIGITS, _LEAST))
        while (self.high - self.low) / step > _SHOWN_BINS:
            step *= 2
        first, last = math.floor(self.low / step), math.floor(self.high / step) + 1
        if first * step > self.low:  # a number next to zero, of which the quotient is zero
            first -= 1
        return [number * step for number in range(first, last + 1)]

    def _logarithmic_edges(self) -> list[float]:
        """Powers of two, or of a root of it, each moved down to the edge of a bin."""
        octaves = math.log2(self.high) - math.log2(self.low)  # their ratio may be infinite
        per_octave = next((n for n in (8.0, 4.0, 2.0, 1.0) if octaves * n <= _SHOWN_BINS),
                          1 / math.ceil(octaves / _SHOWN_BINS))
        first = math.floor(math.log2(self.low) * per_octave)
        last = math.floor(math.log2(self.high) * per_octave) + 1
        edges = lower_edges(np.exp2(np.arange(first, last + 1) / per_octave)).tolist()
        while edges[0] > self.low:  # rounding of the logarithms
            edges.insert(0, edges[0] / 2)
        while edges[-1] <= self.high:
            edges.append(edges[-1] * 2)
        return edges

    def to_json(self) -> dict[str, Any]:
        """The content, for another process."""
        return {**vars(self), "bins": sorted(self.bins.items())}

    @staticmethod
    def from_json(value: dict[str, Any]) -> "Distribution":
        result = Distribution()
        vars(result).update({**value, "bins": dict(value["bins"])})
        return result

    def facts(self) -> dict[str, Any]:
        """The numbers for the report; only counts where there are no numbers."""
        if not self.count:
            return self.short_facts()
        scale, edges, counts = self.histogram()
        return {
            **self.short_facts(),
            "quantiles": dict(zip(map(str, QUANTILES), self.quantiles(QUANTILES), strict=True)),
            "histogram": {"scale": scale, "edges": edges, "counts": counts}}

    def short_facts(self) -> dict[str, Any]:
        """The moments and the median."""
        if not self.count:
            return {"count": 0, "not_finite": self.not_finite}
        return {
            "count": self.count, "not_finite": self.not_finite, "mean": self.mean,
            "variance": self.variance, "minimum": self.low, "median": self.quantiles((0.5,))[0],
            "maximum": self.high}
