"""Buckets of documents that share a key, by sorting arrays of (key, document).

A document is a *node*: its number over all rows of all shards, an int64. Keys and nodes travel as
packed bytes of many at a time, because a shuffle costs by the element. No pairs are formed, so a
key that a million documents share costs a million entries and not half a billion pairs.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from data_beam.dedup.simhash import hamming

KEYED = np.dtype([("key", "<u8"), ("node", "<i8")])
"""A band of MinHash."""
FINGERPRINTED = np.dtype([("key", "<u8"), ("node", "<i8"), ("fingerprint", "<u8")])
"""A lookup key of SimHash."""


def unpack(blobs: Iterable[bytes], dtype: np.dtype) -> np.ndarray:
    """The entries of blobs, one array after the other."""
    return np.concatenate([np.empty(0, dtype), *(np.frombuffer(blob, dtype) for blob in blobs)])


def by_part(part: np.ndarray, values: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """(number, values of that part), the parts and the values in them in ascending places."""
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


def minhash_buckets(entries: np.ndarray) -> Iterator[np.ndarray]:
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
    """What `pack_buckets` packed."""
    values = np.frombuffer(blob, "<i8")
    count = int(values[0])
    sizes = values[1:1 + count]
    return np.split(values[1 + count:], np.cumsum(sizes)[:-1]) if count else []


def distinct_buckets(blobs: Iterable[bytes]) -> list[np.ndarray]:
    """The different buckets of blobs, in order of their nodes: copies meet in many bands, and need
    comparing once."""
    different = {bucket.tobytes(): bucket for blob in blobs for bucket in unpack_buckets(blob)}
    return sorted(different.values(), key=lambda bucket: bucket.tolist())
