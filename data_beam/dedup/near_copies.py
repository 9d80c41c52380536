"""Finds similar documents of a corpus with a Beam pipeline, which turns texts into edges.

A node is a document; an edge connects two copies (see `buckets`).

    shards -> (key, node) by key -> buckets -> by their first node -> units -----------.
                                       `-> nodes by shard -> shards -> store ---------- +-> edges

A worker reads the texts of its shard twice: once for the keys, and once for the shingles of the
documents that share a bucket (`store`). Keys are the bands of MinHash. `simhash` adds the lookup
keys of SimHash. `containment` adds one shingle in 16, because a document that is part of a much
longer one shares few bands with it.
"""

import dataclasses
import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import TaggedOutput

from data_beam.base import files
from data_beam.base.hashing import mix64
from data_beam.config import MinHashConfig, SimHashConfig
from data_beam.dedup import buckets, signatures, store
from data_beam.dedup.components import read_edges, write_edges
from data_beam.dedup.signatures import shingles
from data_beam.dedup.texts import Texts, shards_of, work, write_file
from data_beam.runners.progress import WorkerProgress

_FLUSH_ROWS = 2**15
_ENTRIES_A_PART = 2**22
_ROWS_A_UNIT = 2**16
_LEAST_PARTS = 8
_MINHASH, _SIMHASH, _SHINGLES = range(3)
_SAMPLED = 16  # a shingle that is 0 modulo this is a key of containment (Broder 1997)
_EXPECTED_SAMPLES = 64  # of a document with about 1,000 shingles, for the number of parts
MOST_HOLDERS = 200  # a shingle of more documents is a common phrase and no key of containment


@dataclasses.dataclass(frozen=True)
class Search:
    """Settings of a search, and the folder of its working files."""

    name: str  # of the working folder
    threshold: float  # smallest similarity of copies
    bands: int  # of the signature
    rows: int  # of the signature
    minhash: MinHashConfig  # sizes of shingles, containment, and whether code is compared
    simhash: SimHashConfig  # a second source of candidates, if it is enabled
    hot_bucket: int  # buckets with more documents are counted as hot
    texts: Texts  # reads the documents
    offsets: tuple[int, ...]  # what `texts.shard_offsets` returns

    def folder(self, *parts: str) -> str:
        return work(self.texts.paths, self.name, *parts)

    def store(self) -> store.Store:
        """Reads the shingles of documents that share a bucket."""
        return store.Store(self.folder("store"), self.offsets)

    def shingles(self, row: dict[str, Any]) -> np.ndarray:
        """Shingles of a document; none if it is code and code is not compared."""
        if row["is_code"] and not self.minhash.code:
            return np.empty(0, np.uint64)
        return shingles(row["text"], self.minhash.word_ngram, self.minhash.character_ngram)

    @property
    def keys(self) -> int:
        """Number of keys of a document."""
        return self.bands + (math.comb(self.simhash.blocks, self.simhash.distance)
                             if self.simhash.enabled else 0) + (
                                 _EXPECTED_SAMPLES if self.minhash.containment else 0)

    @property
    def units(self) -> int:
        """Number of units, into which the buckets are divided."""
        return max(_LEAST_PARTS, -(-self.offsets[-1] // _ROWS_A_UNIT))


class Keys(beam.DoFn):
    """Shard number -> ((kind, part), packed entries) for its documents."""

    def __init__(self, search: Search):
        self._search = search

    def setup(self) -> None:
        self._progress = WorkerProgress(self._search.texts.paths.progress)

    def process(self, shard: int) -> Iterator[tuple[tuple[int, int], bytes]]:
        search = self._search
        nodes: list[int] = []
        keys: list[list[int]] = []
        fingerprints: list[int] = []
        sampled: list[np.ndarray] = []
        held = (nodes, keys, fingerprints, sampled)
        for row, columns in search.texts.read(shard, progress=self._progress):
            values = search.shingles(columns)
            if not len(values):
                continue
            nodes.append(search.offsets[shard] + row)
            keys.append(signatures.band_keys(
                signatures.signature(values, search.bands * search.rows), search.bands,
                search.rows))
            if search.simhash.enabled:
                fingerprints.append(signatures.simhash(np.unique(values)))
            if search.minhash.containment:
                sampled.append(np.unique(values[values % np.uint64(_SAMPLED) == 0]))
            if len(nodes) == _FLUSH_ROWS:
                yield from self._pack(*held)
                for each in held:
                    each.clear()
        yield from self._pack(*held)
        self._progress.flush()

    def _pack(self, nodes: list[int], keys: list[list[int]], fingerprints: list[int],
              sampled: list[np.ndarray]) -> Iterator[tuple[tuple[int, int], bytes]]:
        if not nodes:
            return
        search, column = self._search, np.array(nodes)[:, None]
        entries = np.empty((len(nodes), search.bands), buckets.KEYED)
        entries["key"], entries["node"] = np.array(keys, np.uint64), column
        yield from self._by_part(_MINHASH, entries.ravel(), search.bands)
        if fingerprints:
            prints = np.array(fingerprints, np.uint64)
            found = signatures.lookup_keys(prints, search.simhash.distance, search.simhash.blocks)
            entries = np.empty(found.shape, buckets.FINGERPRINTED)
            entries["key"], entries["node"] = found, column
            entries["fingerprint"] = prints[:, None]
            yield from self._by_part(_SIMHASH, entries.ravel(), found.shape[1])
        if sampled:
            flat = np.concatenate(sampled)
            entries = np.empty(flat.shape, buckets.KEYED)
            entries["key"], entries["node"] = mix64(flat), np.repeat(nodes, list(map(len, sampled)))
            yield from self._by_part(_SHINGLES, entries, _EXPECTED_SAMPLES)

    def _by_part(self, kind: int, entries: np.ndarray, keys: int
                 ) -> Iterator[tuple[tuple[int, int], bytes]]:
        """Divides entries into parts by key: a part of the whole corpus has a few million."""
        parts = max(_LEAST_PARTS, -(-self._search.offsets[-1] * keys // _ENTRIES_A_PART))
        part = (entries["key"] % np.uint64(parts)).astype(np.int64)
        for number, values in buckets.by_part(part, entries):
            yield (kind, number), values.tobytes()


def _find_buckets(element: tuple[tuple[int, int], Iterable[bytes]], search: Search
                  ) -> Iterator[Any]:
    """((kind, part), packed entries) -> (unit, packed buckets); (shard, packed nodes) to the output
    `nodes`."""
    (kind, _), blobs = element
    if kind == _SIMHASH:
        found = list(buckets.simhash_buckets(
            buckets.unpack(blobs, buckets.FINGERPRINTED), search.simhash.distance))
    else:
        found = list(buckets.key_buckets(buckets.unpack(blobs, buckets.KEYED)))
        if kind == _SHINGLES:
            found = [bucket for bucket in found if len(bucket) <= MOST_HOLDERS]
    if not found:
        return
    units = mix64(np.array([bucket[0] for bucket in found], np.uint64)) % np.uint64(search.units)
    for unit, places in buckets.by_part(units.astype(np.int64), np.arange(len(found))):
        yield unit, buckets.pack_buckets([found[place] for place in places])
    for nodes in _by_shard(np.unique(np.concatenate(found)), search.offsets):
        yield TaggedOutput("nodes", nodes)


def _by_shard(nodes: np.ndarray, offsets: tuple[int, ...]) -> Iterator[tuple[int, bytes]]:
    """(shard, packed nodes)."""
    for shard, those in buckets.by_part(shards_of(nodes, offsets), nodes):
        yield shard, those.astype("<i8").tobytes()


def _write_unit(element: tuple[int, Iterable[bytes]], search: Search) -> str:
    """(unit, packed buckets) -> path of a file with the different ones."""
    unit, blobs = element
    path = search.folder("units", f"{unit:05d}")
    write_file(search.texts.paths, path, buckets.pack_buckets(buckets.distinct_buckets(blobs)))
    return path


def _write_store(element: tuple[int, Iterable[bytes]], search: Search) -> str:
    """(shard, packed nodes) -> "", once their shingles are in the store."""
    shard, blobs = element
    rows = np.unique(buckets.unpack(blobs, np.dtype("<i8"))) - search.offsets[shard]
    folder = search.folder("store")
    files.make_folder(folder)
    store.write(folder, search.texts.paths.temporary, shard, (
        (row, columns, np.unique(search.shingles(columns)))
        for row, columns in search.texts.read(shard, rows.tolist())))
    return ""


def _verify(path: str, search: Search) -> str:
    """Path of a unit -> the same, once its edges and counts are in files of that name."""
    paths = search.texts.paths
    stored = search.store()
    verifier = buckets.Verifier(search.threshold, search.minhash.containment, stored.size,
                                stored.shingles)
    found = buckets.unpack_buckets(files.read_bytes(path))
    sizes = [len(bucket) for bucket in found]
    for bucket in found:
        verifier.add(bucket.tolist())
    stored.close()
    name = path.rpartition("/")[2]
    write_edges(paths, search.folder("edges", name), verifier.edges)
    counts = {"buckets": len(found), "largest_bucket": max(sizes, default=0),
              "hot_buckets": sum(size > search.hot_bucket for size in sizes),
              "edges": len(verifier.edges)}
    write_file(paths, search.folder("counts", name), json.dumps(counts).encode("ascii"))
    return path


def _linked(search: Search) -> Iterator[tuple[int, bytes]]:
    """(shard, packed nodes) for the nodes of edges that are known before the search."""
    known = [entry.path for entry in files.match(search.folder("edges"), "linked-*")]
    yield from _by_shard(np.unique(read_edges(known)), search.offsets)


def find(start: Any, search: Search) -> Any:
    """Adds the search to a pipeline. Its edges and counts are files in the working folder.

    Edges in files `linked-*`, which an earlier search wrote there, are kept, and the shingles of
    their documents are stored too.
    """
    found = (search.texts.shard_numbers(start)
             | "Keys" >> beam.ParDo(Keys(search))
             | "Group by key" >> beam.GroupByKey()
             | "Find buckets" >> beam.FlatMap(_find_buckets, search).with_outputs(
                 "nodes", main="buckets"))
    units = (found["buckets"]
             | "Group by unit" >> beam.GroupByKey()
             | "Write unit" >> beam.Map(_write_unit, search))
    stored = ((found["nodes"], start | "Linked before" >> beam.FlatMap(lambda _: _linked(search)))
              | "All nodes" >> beam.Flatten()
              | "Group by shard" >> beam.GroupByKey()
              | "Write store" >> beam.Map(_write_store, search))
    # Grouping all under one key waits until every shard is stored.
    return ((units, stored)
            | "Units and stores" >> beam.Flatten()
            | "Path with no key" >> beam.Map(lambda path: (None, path))
            | "All stored" >> beam.GroupByKey()
            | "Units" >> beam.FlatMap(lambda all: [path for path in all[1] if path])
            | "Spread units" >> beam.Reshuffle()
            | "Verify" >> beam.Map(_verify, search))


def counts(search: Search) -> dict[str, int]:
    """Counts summed over all units; of `largest_bucket` the maximum."""
    total = {"buckets": 0, "largest_bucket": 0, "hot_buckets": 0, "edges": 0}
    for entry in files.match(search.folder("counts"), "*"):
        for key, value in json.loads(files.read_bytes(entry.path)).items():
            total[key] = max(total[key], value) if key.startswith("largest") else (
                total[key] + value)
    return total
