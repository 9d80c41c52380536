"""Which source each row of the run comes from, with exact counts at every prefix."""

import heapq
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np


def largest_remainder(shares: Sequence[Fraction], total: int) -> list[int]:
    """Integers that sum to `total`, each within one of `share * total`, none of them zero.

    Shares that would round to zero get one, taken from the largest.

    Args:
      shares: positive, in any unit.
      total: at least the number of shares.
    """
    whole = sum(shares)
    quotas = [share * total / whole for share in shares]
    counts = [max(1, math.floor(quota)) for quota in quotas]
    remainder = [quota - count for quota, count in zip(quotas, counts, strict=True)]
    order = sorted(range(len(shares)), key=lambda i: (-remainder[i], i))
    for i in order[:max(0, total - sum(counts))]:
        counts[i] += 1
    while sum(counts) > total:
        counts[max(range(len(counts)), key=lambda i: (counts[i], -i))] -= 1
    return counts


def interleave(counts: Sequence[int]) -> np.ndarray:
    """An order of sum(counts) slots in which every prefix is within one slot of each share.

    The k-th slot of a source with share s may lie in [floor(k/s), ceil((k+1)/s)); the slot with
    the earliest end is taken first. That order always exists, because the windows are those of a
    proportionate-fair schedule (Baruah, Cohen, Plaxton and Varvel, Algorithmica 1996).

    Returns:
      [sum(counts)] int32, the source of each slot.
    """
    period = sum(counts)
    order = np.empty(period, np.int32)
    waiting = [(0, source, 0) for source in range(len(counts))]
    ready: list[tuple[int, int, int]] = []
    for slot in range(period):
        while waiting and waiting[0][0] <= slot:
            _, source, k = heapq.heappop(waiting)
            heapq.heappush(ready, (-(-(k + 1) * period // counts[source]), source, k))
        end, source, k = heapq.heappop(ready)
        assert slot < end, "the windows of a proportionate-fair schedule can always be met"
        order[slot] = source
        if k + 1 < counts[source]:
            heapq.heappush(waiting, ((k + 1) * period // counts[source], source, k + 1))
    return order


class Mixture:
    """A periodic order of sources, repeated without end.

    Attributes:
      counts: rows of each source in a period.
      period: their sum.
    """

    def __init__(self, counts: Sequence[int]):
        self.counts = np.asarray(counts, np.int64)
        self.period = int(self.counts.sum())
        self._order = interleave([int(count) for count in counts])
        # Earlier slots of the period that have the same source.
        self._rank = np.empty(self.period, np.int64)
        for source in range(len(counts)):
            slots = self._order == source
            self._rank[slots] = np.arange(int(self.counts[source]))

    def locate(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Source of each row, and how many rows of that source came before it.

        Args:
          rows: [n] int64, counted from the start of the run.

        Returns:
          [n] int32 and [n] int64.
        """
        periods, slots = np.divmod(rows, self.period)
        sources = self._order[slots]
        return sources, periods * self.counts[sources] + self._rank[slots]

    def count(self, source: int, rows: int) -> int:
        """Rows of `source` among the first `rows` rows."""
        periods, slots = divmod(rows, self.period)
        return periods * int(self.counts[source]) + int(
            np.count_nonzero(self._order[:slots] == source))
