"""Assigns a source to each row of the run, and counts the rows of a source in any prefix."""

import heapq
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np


def largest_remainder(shares: Sequence[Fraction], total: int) -> list[int]:
    """Positive integers that sum to `total`, each within one of `share * total`.

    A share that would round to zero gets one, which is taken from the largest.

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
    the earliest end is taken first. Such an order always exists: the windows are those of a
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
    """A periodic order of sources.

    Attributes:
      counts: rows of each source in a period.
      period: their sum.
    """

    def __init__(self, counts: Sequence[int]):
        self.counts = np.asarray(counts, np.int64)
        self.period = int(self.counts.sum())
        self._order = interleave([int(count) for count in counts])
        self._slots = [np.flatnonzero(self._order == source) for source in range(len(counts))]
        # Earlier slots of the period that have the same source.
        self._rank = np.empty(self.period, np.int64)
        for slots in self._slots:
            self._rank[slots] = np.arange(len(slots))

    def locate(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Source of each row, and how many rows of that source came before it.

        Args:
          rows: [n] int64, counted from the start of the mixture.

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
            np.searchsorted(self._slots[source], slots))

    def closest_slot(self, behind: Sequence[Fraction]) -> int:
        """The slot at which the sources are closest to being `behind` rows behind their shares.

        Closest: the largest difference over the sources is smallest.
        """
        worst = np.zeros(self.period, np.int64)  # in units of 1/period rows, so integers
        for source, lack in enumerate(behind):
            taken = np.cumsum(self._order == source, dtype=np.int64)
            taken = np.concatenate([[0], taken[:-1]])
            lacks = np.arange(self.period) * self.counts[source] - taken * self.period
            worst = np.maximum(worst, np.abs(lacks - round(lack * self.period)))
        return int(worst.argmin())


class StagedMixture:
    """A sequence of mixtures, each from its first row to the first row of the next.

    A source continues where the previous stage left it: the number of rows of each source before
    each stage is stored. A stage begins at the slot of its period at which its sources are as far
    behind their shares as they are in the run. So rounding does not accumulate over stages, and a
    stage with the shares of the previous one changes nothing.

    Args:
      sources: number of sources of the run.
      stages: first row (0 for the first stage), sources, and the rows of each in a period.

    Attributes:
      mixtures: the mixture of each stage.
    """

    def __init__(self, sources: int, stages: Sequence[tuple[int, Sequence[int], Sequence[int]]]):
        self._first_rows = np.asarray([first_row for first_row, _, _ in stages], np.int64)
        self._members = [list(members) for _, members, _ in stages]
        self.mixtures = [Mixture(counts) for _, _, counts in stages]
        self._phases: list[int] = []  # slot of the period at the first row of each stage
        # [stages, sources]: rows of each source before each stage.
        self._before = np.zeros((len(stages), sources), np.int64)
        behind = [Fraction(0)] * sources  # rows that each source is behind its shares so far
        for number, mixture in enumerate(self.mixtures):
            if number:
                rows = int(self._first_rows[number] - self._first_rows[number - 1])
                last = self.mixtures[number - 1]
                self._before[number] = self._before[number - 1]
                for i, source in enumerate(self._members[number - 1]):
                    taken = self._taken(number - 1, i, rows)
                    self._before[number, source] += taken
                    behind[source] += Fraction(rows * int(last.counts[i]), last.period) - taken
            self._phases.append(mixture.closest_slot([behind[i] for i in self._members[number]]))

    def _taken(self, stage: int, member: int, rows: int) -> int:
        """Rows of a member of a stage among the first `rows` rows of the stage."""
        mixture, phase = self.mixtures[stage], self._phases[stage]
        return mixture.count(member, phase + rows) - mixture.count(member, phase)

    def locate(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`Mixture.locate` with rows and source numbers of the whole run."""
        stages = np.searchsorted(self._first_rows, rows, side="right") - 1
        sources, before = np.empty(rows.shape, np.int32), np.empty(rows.shape, np.int64)
        for number in np.unique(stages).tolist():
            here, mixture, phase = stages == number, self.mixtures[number], self._phases[number]
            local, earlier = mixture.locate(rows[here] - self._first_rows[number] + phase)
            skipped = np.asarray([mixture.count(i, phase) for i in range(len(mixture.counts))])
            sources[here] = np.asarray(self._members[number], np.int32)[local]
            before[here] = self._before[number, sources[here]] + earlier - skipped[local]
        return sources, before

    def count(self, source: int, rows: int) -> int:
        """Rows of `source` among the first `rows` rows of the run."""
        stage = max(0, int(np.searchsorted(self._first_rows, rows)) - 1)
        before = int(self._before[stage, source])
        if source not in self._members[stage]:
            return before
        member = self._members[stage].index(source)
        return before + self._taken(stage, member, rows - int(self._first_rows[stage]))
