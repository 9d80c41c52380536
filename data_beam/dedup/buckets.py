"""Buckets of documents that share a key, and which documents of a bucket are copies.

A document is a *node*: its number over all rows of all shards, an int64. Buckets are found by
sorting arrays of (key, node). Keys and nodes are shuffled as packed arrays, because a shuffle costs
by the element. No pairs are formed, so a key that a million documents share costs a million entries
and not half a billion pairs.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from data_beam.dedup.signatures import compare, hamming

KEYED = np.dtype([("key", "<u8"), ("node", "<i8")])
"""A band of MinHash, or a sampled shingle."""
FINGERPRINTED = np.dtype([("key", "<u8"), ("node", "<i8"), ("fingerprint", "<u8")])
"""A lookup key of SimHash."""
REMEMBERED = 2**20
"""Pairs found different that are not compared again: some 150 MB. Above, time is spent instead: a
bucket of thousands of pages of one template, all just under the threshold, has millions."""


def unpack(blobs: Iterable[bytes], dtype: np.dtype) -> np.ndarray:
    """The entries of blobs, concatenated."""
    return np.concatenate([np.empty(0, dtype), *(np.frombuffer(blob, dtype) for blob in blobs)])


def by_part(part: np.ndarray, values: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """(number, values of that part): parts ascending, values in their order."""
    order = np.argsort(part, kind="stable")
    numbers, starts = np.unique(part[order], return_index=True)
    if len(numbers):
        yield from zip(numbers.tolist(), np.split(values[order], starts[1:]), strict=True)


def groups(keys: np.ndarray) -> Iterator[np.ndarray]:
    """Places of equal keys, for each key that occurs twice or more, in order of keys."""
    order = np.argsort(keys, kind="stable")
    _, starts, counts = np.unique(keys[order], return_index=True, return_counts=True)
    for start, count in zip(starts[counts > 1].tolist(), counts[counts > 1].tolist(), strict=True):
        yield order[start:start + count]


def key_buckets(entries: np.ndarray) -> Iterator[np.ndarray]:
    """Nodes, ascending, of each key of `KEYED` entries that two or more nodes have."""
    for places in groups(entries["key"]):
        nodes = np.unique(entries["node"][places])
        if len(nodes) > 1:
            yield nodes


def simhash_buckets(entries: np.ndarray, distance: int) -> Iterator[np.ndarray]:
    """Nodes, ascending, near each fingerprint of `FINGERPRINTED` entries with an equal key: any two
    nodes within the distance are in one of them."""
    for places in groups(entries["key"]):
        group = entries[places]
        fingerprints, which = np.unique(group["fingerprint"], return_inverse=True)
        for fingerprint in fingerprints:
            near = hamming(fingerprints, fingerprint) <= distance
            nodes = np.unique(group["node"][near[which]])
            if len(nodes) > 1:
                yield nodes


def pack_buckets(buckets: list[np.ndarray]) -> bytes:
    """Buckets as bytes: their number, their sizes, their nodes."""
    return np.concatenate([[len(buckets)], [len(bucket) for bucket in buckets], *buckets]
                          ).astype("<i8").tobytes()


def unpack_buckets(blob: bytes) -> list[np.ndarray]:
    """The inverse of `pack_buckets`."""
    values = np.frombuffer(blob, "<i8")
    count = int(values[0])
    sizes = values[1:1 + count]
    return np.split(values[1 + count:], np.cumsum(sizes)[:-1]) if count else []


def distinct_buckets(blobs: Iterable[bytes]) -> list[np.ndarray]:
    """The different buckets of blobs, in order of their nodes: copies meet in many bands, and one
    comparison is enough."""
    different = {bucket.tobytes(): bucket for blob in blobs for bucket in unpack_buckets(blob)}
    return sorted(different.values(), key=lambda bucket: bucket.tolist())


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
    """Finds pairs of copies in buckets, by comparing their shingles exactly.

    A pair of a bucket is compared unless the two are known to be connected, or their numbers of
    shingles alone rule it out, or they were just compared. So the pairs found connect every
    component of the graph of all copies that share a bucket, whatever the size of a bucket.

    Args:
      threshold: smallest Jaccard similarity of copies.
      containment: the two are copies too where one holds this share of the other; 0 for none.
      size: number of shingles of a node.
      shingles: [shingles] uint64, ascending, of a node.

    Attributes:
      edges: pairs found: enough to connect all copies, not all pairs of them.
      comparisons: pairs compared.
    """

    def __init__(self, threshold: float, containment: float, size: Callable[[int], int],
                 shingles: Callable[[int], np.ndarray]):
        self._threshold, self._containment = threshold, containment
        self._size, self._shingles = size, shingles
        self._sets = UnionFind()
        self._different: set[tuple[int, int]] = set()
        self.edges: list[tuple[int, int]] = []
        self.comparisons = 0

    def add(self, bucket: Iterable[int]) -> None:
        """Compares the nodes of a bucket, ascending."""
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
            if self._copies(other, node):
                self.edges.append((other, node))
                self._sets.join(other, node)
                return True
        return False

    def _copies(self, first: int, second: int) -> bool:
        smaller, larger = sorted((first, second), key=self._size)
        # |A and B| / |A or B| is at most the smaller size divided by the larger.
        ruled_out = self._size(smaller) < self._threshold * self._size(larger)
        if (ruled_out and not self._containment) or (first, second) in self._different:
            return False
        self.comparisons += 1
        similarity, held = compare(self._shingles(larger), self._shingles(smaller))
        if similarity >= self._threshold or 0 < self._containment <= held:
            return True
        if len(self._different) < REMEMBERED:
            self._different.add((first, second))
        return False
