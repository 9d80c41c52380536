"""Finds buckets of documents that share a key, and the copies in a bucket.

A *node* is a document, given by its number among all rows of all shards (int64). Buckets are found
by sorting arrays of (key, node). Keys and nodes are shuffled as packed arrays, because the cost of
a shuffle grows with the number of elements. No pairs are formed: a key that a million documents
share costs a million entries, not half a trillion pairs.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from data_beam.dedup.signatures import compare

KEYED = np.dtype([("key", "<u8"), ("node", "<i8")])  # a band of MinHash, or a sampled shingle
FINGERPRINTED = np.dtype([("key", "<u8"), ("node", "<i8"), ("fingerprint", "<u8")])  # of SimHash
REMEMBERED = 2**20
"""Number of pairs (about 150 MB) that are remembered as different and not compared again. Pairs
beyond it may be compared again: thousands of pages of one template, all just under the threshold,
have millions of pairs."""


def unpack(blobs: Iterable[bytes], dtype: np.dtype) -> np.ndarray:
    """The entries of blobs, concatenated."""
    return np.concatenate([np.empty(0, dtype), *(np.frombuffer(blob, dtype) for blob in blobs)])


def by_part(part: np.ndarray, values: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """(number, values of that part): parts ascending, values in their original order."""
    order = np.argsort(part, kind="stable")
    numbers, starts = np.unique(part[order], return_index=True)
    if len(numbers):
        yield from zip(numbers.tolist(), np.split(values[order], starts[1:]), strict=True)


def groups(keys: np.ndarray) -> Iterator[np.ndarray]:
    """Indices of equal keys, for each key that occurs at least twice, in order of keys."""
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
    """For each fingerprint among `FINGERPRINTED` entries of equal key, the nodes near it,
    ascending. Any two nodes within the distance that share a key are together in one of these
    buckets."""
    for places in groups(entries["key"]):
        group = entries[places]
        fingerprints, which = np.unique(group["fingerprint"], return_inverse=True)
        for fingerprint in fingerprints:
            near = np.bitwise_count(fingerprints ^ fingerprint) <= distance
            nodes = np.unique(group["node"][near[which]])
            if len(nodes) > 1:
                yield nodes


def pack_buckets(buckets: list[np.ndarray]) -> bytes:
    """Buckets as bytes: the number of buckets, their sizes, their nodes."""
    return np.concatenate([[len(buckets)], [len(bucket) for bucket in buckets], *buckets]
                          ).astype("<i8").tobytes()


def unpack_buckets(blob: bytes) -> list[np.ndarray]:
    """The inverse of `pack_buckets`."""
    values = np.frombuffer(blob, "<i8")
    count = int(values[0])
    sizes = values[1:1 + count]
    return np.split(values[1 + count:], np.cumsum(sizes)[:-1]) if count else []


def distinct_buckets(blobs: Iterable[bytes]) -> list[np.ndarray]:
    """The distinct buckets of blobs, sorted by their nodes. Copies share many bands, so they are in
    many equal buckets, and one comparison is enough."""
    different = {bucket.tobytes(): bucket for blob in blobs for bucket in unpack_buckets(blob)}
    return sorted(different.values(), key=lambda bucket: bucket.tolist())


class UnionFind:
    """Union-find over nodes (Tarjan 1975, with path halving)."""

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}

    def find(self, node: int) -> int:
        """The representative node of the set that contains this node."""
        parent = self._parent
        while (above := parent.setdefault(node, node)) != node:
            parent[node] = parent[above]
            node = parent[node]
        return node

    def join(self, first: int, second: int) -> None:
        """Joins the sets of two nodes."""
        first, second = self.find(first), self.find(second)
        self._parent[max(first, second)] = min(first, second)


class Verifier:
    """Finds pairs of copies in buckets, by comparing their shingles exactly.

    A pair of a bucket is compared unless the two nodes are already connected, or their numbers of
    shingles rule out a copy, or they were compared before. So the `edges` connect every component
    of the graph of copies that share a bucket, whatever the size of the bucket; they are not all
    pairs.

    Copies have at least the Jaccard similarity `threshold`, or one contains the share `containment`
    of the shingles of the other (0: not looked for). `size` returns the number of shingles of a
    node, `shingles` these, [shingles] uint64, ascending.
    """

    def __init__(self, threshold: float, containment: float, size: Callable[[int], int],
                 shingles: Callable[[int], np.ndarray]):
        self._threshold, self._containment = threshold, containment
        self._size, self._shingles = size, shingles
        self._sets = UnionFind()
        self._different: set[tuple[int, int]] = set()
        self.edges: list[tuple[int, int]] = []
        self.comparisons = 0  # compared pairs

    def add(self, bucket: Iterable[int]) -> None:
        """Compares the nodes of a bucket, ascending."""
        parts: list[list[int]] = []  # the nodes so far, grouped by connected set
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
