"""Similar documents of a corpus, as a Beam pipeline: from texts to edges between nodes.

    shards -> (key, node) by key -> buckets -> by their first node -> units -----------.
                                       `-> nodes by shard -> shards -> store ---------- +-> edges

Keys and nodes are shuffled as packed arrays. The texts are read twice by the workers of their
shards: once for the keys, once for the shingles of those that share a bucket (`store`).
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
from data_beam.config import MinHashConfig, SimHashConfig
from data_beam.dedup import buckets, minhash, simhash, store
from data_beam.dedup.shingles import distinct, mix, shingles
from data_beam.dedup.steps import shard_numbers
from data_beam.dedup.texts import Texts, shards_of, work, write_file
from data_beam.dedup.verify import Verifier
from data_beam.runners.progress import WorkerProgress

_FLUSH_ROWS = 2**15
_ENTRIES_A_PART = 2**22
_ROWS_A_UNIT = 2**16
_LEAST_PARTS = 8
_MINHASH, _SIMHASH = 0, 1


@dataclasses.dataclass(frozen=True)
class Search:
    """What is looked for, and where it works.

    Attributes:
      name: of the working folder.
      threshold: smallest similarity of a pair.
      bands, rows: of the signature.
      minhash: sizes of shingles, and whether code takes part.
      simhash: candidates from there, if it is enabled.
      hot_bucket: buckets of more documents are counted.
      texts: reads the documents.
      offsets: as `texts.shard_offsets` gives them.
    """

    name: str
    threshold: float
    bands: int
    rows: int
    minhash: MinHashConfig
    simhash: SimHashConfig
    hot_bucket: int
    texts: Texts
    offsets: tuple[int, ...]

    def folder(self, *parts: str) -> str:
        """Path in the working folder."""
        return work(self.texts.paths, self.name, *parts)

    def shingles(self, row: dict[str, Any]) -> np.ndarray:
        """Of a document; none of code that does not take part."""
        if row["is_code"] and not self.minhash.code:
            return np.empty(0, np.uint64)
        return shingles(row["text"], self.minhash.word_ngram, self.minhash.character_ngram)

    def parts(self, keys: int) -> int:
        """Parts of the keys, of a few million entries each."""
        return max(_LEAST_PARTS, -(-self.offsets[-1] * keys // _ENTRIES_A_PART))

    @property
    def keys(self) -> int:
        """Keys of a document."""
        return self.bands + (math.comb(self.simhash.blocks, self.simhash.distance)
                             if self.simhash.enabled else 0)

    @property
    def units(self) -> int:
        """Parts of the buckets."""
        return max(_LEAST_PARTS, -(-self.offsets[-1] // _ROWS_A_UNIT))


class Keys(beam.DoFn):
    """Shard number -> ((kind, part), packed entries) of its documents."""

    def __init__(self, search: Search):
        self._search = search

    def setup(self) -> None:
        self._progress = WorkerProgress(self._search.texts.paths.progress)

    def process(self, shard: int) -> Iterator[tuple[tuple[int, int], bytes]]:
        search = self._search
        nodes: list[int] = []
        keys: list[list[int]] = []
        fingerprints: list[int] = []

        def flush() -> Iterator[tuple[tuple[int, int], bytes]]:
            yield from self._pack(nodes, keys, fingerprints)
            for values in (nodes, keys, fingerprints):
                values.clear()

        for row, columns in search.texts.read(shard, progress=self._progress):
            values = search.shingles(columns)
            if not len(values):
                continue
            nodes.append(search.offsets[shard] + row)
            keys.append(minhash.band_keys(minhash.signature(values, search.bands * search.rows),
                                          search.bands, search.rows))
            if search.simhash.enabled:
                fingerprints.append(simhash.simhash(distinct(values)))
            if len(nodes) == _FLUSH_ROWS:
                yield from flush()
        yield from flush()
        self._progress.flush()

    def _pack(self, nodes: list[int], keys: list[list[int]], fingerprints: list[int]
              ) -> Iterator[tuple[tuple[int, int], bytes]]:
        if not nodes:
            return
        search = self._search
        entries = np.empty((len(nodes), search.bands), buckets.KEYED)
        entries["key"] = np.array(keys, np.uint64)
        entries["node"] = np.array(nodes)[:, None]
        yield from self._by_part(_MINHASH, entries)
        if fingerprints:
            prints = np.array(fingerprints, np.uint64)
            found = simhash.lookup_keys(prints, search.simhash.distance, search.simhash.blocks)
            entries = np.empty(found.shape, buckets.FINGERPRINTED)
            entries["key"], entries["node"] = found, np.array(nodes)[:, None]
            entries["fingerprint"] = prints[:, None]
            yield from self._by_part(_SIMHASH, entries)

    def _by_part(self, kind: int, entries: np.ndarray
                 ) -> Iterator[tuple[tuple[int, int], bytes]]:
        parts = np.uint64(self._search.parts(entries.shape[1]))
        flat = entries.ravel()
        for part, values in buckets.by_part((flat["key"] % parts).astype(np.int64), flat):
            yield (kind, part), values.tobytes()


class FindBuckets(beam.DoFn):
    """((kind, part), packed entries) -> (unit, packed buckets); (shard, packed nodes) to the output
    `nodes`."""

    def __init__(self, search: Search):
        self._search = search

    def process(self, element: tuple[tuple[int, int], Iterable[bytes]]) -> Iterator[Any]:
        (kind, _), blobs = element
        if kind == _MINHASH:
            found = list(buckets.minhash_buckets(buckets.unpack(blobs, buckets.KEYED)))
        else:
            found = list(buckets.simhash_buckets(
                buckets.unpack(blobs, buckets.FINGERPRINTED), self._search.simhash.distance))
        if not found:
            return
        units = mix(np.array([bucket[0] for bucket in found], np.uint64)) % np.uint64(
            self._search.units)
        for unit, places in buckets.by_part(units.astype(np.int64), np.arange(len(found))):
            yield unit, buckets.pack_buckets([found[paths] for paths in places])
        nodes = np.unique(np.concatenate(found))
        for shard, those in buckets.by_part(shards_of(nodes, self._search.offsets), nodes):
            yield TaggedOutput("nodes", (shard, those.astype("<i8").tobytes()))


class WriteUnit(beam.DoFn):
    """(unit, packed buckets) -> path of a file with the different ones."""

    def __init__(self, search: Search):
        self._search = search

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[str]:
        unit, blobs = element
        path = self._search.folder("units", f"{unit:05d}")
        write_file(self._search.texts.paths, path,
                   buckets.pack_buckets(buckets.distinct_buckets(blobs)))
        yield path


class WriteStore(beam.DoFn):
    """(shard, packed nodes) -> "", once their shingles are in the store."""

    def __init__(self, search: Search):
        self._search = search

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[str]:
        shard, blobs = element
        search = self._search
        rows = np.unique(buckets.unpack(blobs, np.dtype("<i8"))) - search.offsets[shard]
        folder = search.folder("store")
        files.make_folder(folder)
        store.write(folder, search.texts.paths.temporary, shard, (
            (row, columns, distinct(search.shingles(columns)))
            for row, columns in search.texts.read(shard, rows.tolist())))
        yield ""


class Verify(beam.DoFn):
    """Path of a unit -> the same, once its edges and counts are in files of that name."""

    def __init__(self, search: Search):
        self._search = search

    def process(self, path: str) -> Iterator[str]:
        search = self._search
        paths = search.texts.paths
        shelf = store.Store(search.folder("store"), search.offsets)
        verifier = Verifier(search.threshold, shelf.size, shelf.shingles)
        found = buckets.unpack_buckets(files.read_bytes(path))
        sizes = [len(bucket) for bucket in found]
        for bucket in found:
            verifier.add(bucket.tolist())
        shelf.close()
        name = path.rpartition("/")[2]
        write_file(paths, search.folder("edges", name),
                   np.array(verifier.edges, "<i8").reshape(-1, 2).tobytes())
        counts = {"buckets": len(found), "largest_bucket": max(sizes, default=0),
                  "hot_buckets": sum(size > search.hot_bucket for size in sizes),
                  "edges": len(verifier.edges)}
        write_file(paths, search.folder("counts", name), json.dumps(counts).encode("ascii"))
        yield path


def find(start: Any, search: Search) -> Any:
    """The step: edges and counts appear in the working folder."""
    found = (shard_numbers(start, search.texts.paths.order)
             | "Keys" >> beam.ParDo(Keys(search))
             | "Group by key" >> beam.GroupByKey()
             | "Find buckets" >> beam.ParDo(FindBuckets(search)).with_outputs(
                 "nodes", main="buckets"))
    units = (found["buckets"]
             | "Group by unit" >> beam.GroupByKey()
             | "Write unit" >> beam.ParDo(WriteUnit(search)))
    stored = (found["nodes"]
              | "Group by shard" >> beam.GroupByKey()
              | "Write store" >> beam.ParDo(WriteStore(search)))
    # Grouping all under one key waits until every shard is stored.
    return ((units, stored)
            | "Units and stores" >> beam.Flatten()
            | "Path with no key" >> beam.Map(lambda path: (None, path))
            | "All stored" >> beam.GroupByKey()
            | "Units" >> beam.FlatMap(lambda all: [path for path in all[1] if path])
            | "Spread units" >> beam.Reshuffle()
            | "Verify" >> beam.ParDo(Verify(search)))


def counts(search: Search) -> dict[str, int]:
    """Sums over all units; the largest of `largest_bucket`."""
    total = {"buckets": 0, "largest_bucket": 0, "hot_buckets": 0, "edges": 0}
    for entry in files.match(search.folder("counts"), "*"):
        for key, value in json.loads(files.read_bytes(entry.path)).items():
            total[key] = max(total[key], value) if key.startswith("largest") else (
                total[key] + value)
    return total
