"""Comparing the documents of buckets, and joining those that are similar enough.

Two documents of a bucket are compared by their exact Jaccard similarity, unless they are known to
be connected, or their numbers of shingles alone rule it out, or they were just compared. Nothing
is left out otherwise, whatever the size of a bucket: what is found is every connected component of
the graph of similar pairs that share a bucket.
"""

from collections.abc import Callable, Iterable

import numpy as np

from data_beam.dedup.shingles import jaccard

REMEMBERED = 2**20
"""Pairs found different that are not compared again: some 150 MB. Beyond, time is the lesser evil:
a bucket of thousands of pages of one template, all just under the threshold, has millions."""


class UnionFind:
    """Sets of nodes that are joined two at a time (Tarjan 1975, with path halving)."""

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}

    def find(self, node: int) -> int:
        """The node that stands for the set of this one."""
        parent = self._parent
        while (above := parent.setdefault(node, node)) != node:
            parent[node] = parent[above]
            node = parent[node]
        return node

    def join(self, first: int, second: int) -> None:
        """Makes one set of two."""
        first, second = self.find(first), self.find(second)
        self._parent[max(first, second)] = min(first, second)


class Verifier:
    """Finds similar pairs in buckets.

    Args:
      threshold: smallest Jaccard similarity of a pair.
      size: number of shingles of a node.
      shingles: [shingles] uint64, ascending, of a node.

    Attributes:
      edges: pairs found: enough to connect all that are similar, not all of them.
      comparisons: similarities computed.
    """

    def __init__(self, threshold: float, size: Callable[[int], int],
                 shingles: Callable[[int], np.ndarray]):
        self._threshold, self._size, self._shingles = threshold, size, shingles
        self._sets = UnionFind()
        self._different: set[tuple[int, int]] = set()
        self.edges: list[tuple[int, int]] = []
        self.comparisons = 0

    def add(self, bucket: Iterable[int]) -> None:
        """Takes the nodes of a bucket, ascending."""
        parts: list[list[int]] = []  # of the nodes so far, those of one set together
        for node in bucket:
            mine = [node]
            others = []
            for part in parts:
                if self._connect(node, part):
                    mine = part + mine
                else:
                    others.append(part)
            parts = [*others, mine]

    def _connect(self, node: int, part: list[int]) -> bool:
        if self._sets.find(node) == self._sets.find(part[0]):
            return True
        for other in part:
            if self._similar(other, node):
                self.edges.append((other, node))
                self._sets.join(other, node)
                return True
        return False

    def _similar(self, first: int, second: int) -> bool:
        sizes = self._size(first), self._size(second)
        # |A and B| / |A or B| is at most the smaller size by the larger.
        if min(sizes) < self._threshold * max(sizes) or (first, second) in self._different:
            return False
        self.comparisons += 1
        if jaccard(self._shingles(first), self._shingles(second)) >= self._threshold:
            return True
        if len(self._different) < REMEMBERED:
            self._different.add((first, second))
        return False
