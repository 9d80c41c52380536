"""What becomes of the documents of a cluster: one is kept, or all share a split.

    CORPUS/clusters/*.parquet      near copies: one row a document of a cluster, the kept one first
    CORPUS/clusters/_summary.json   how they were found, how many, the largest

A cluster is in one file, by the hash of its id, which is that of the document that is kept.
"""

import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet
from apache_beam.io.filesystems import FileSystems
from apache_beam.pvalue import TaggedOutput

from data_beam.base import files
from data_beam.base.stage_context import Report, StagePaths
from data_beam.dedup import join, store
from data_beam.dedup.near_copies import Search
from data_beam.dedup.representative import representative
from data_beam.dedup.shingles import jaccard
from data_beam.dedup.texts import write_decisions
from data_beam.sinks import documents
from data_beam.sinks.shards import file_report

SCHEMA = pa.schema([
    ("cluster", pa.string()),
    ("id", pa.string()),
    ("source", pa.string()),
    ("path", pa.string()),
    ("record", pa.int64()),
    ("characters", pa.int64()),
    ("quality", pa.float64()),
    ("similarity", pa.float64()),
    ("kept", pa.bool_()),
])
"""cluster: id of the document kept. similarity: exact Jaccard similarity of the shingles to those
of the document kept; below the threshold where others link the two."""

SUMMARY = "_summary.json"  # readers of Parquet folders pass names with _ by
LARGEST = 20
"""Clusters listed in the summary."""


class KeepOne(beam.DoFn):
    """File of clusters -> (shard, (id, decision)) of each document; (shard of the cluster, its
    rows) to the output `rows`."""

    def __init__(self, search: Search):
        self._search = search

    def process(self, path: str) -> Iterator[Any]:
        search = self._search
        shards = search.texts.paths.shards
        shelf = store.Store(search.folder("store"), search.offsets)
        for nodes in join.read_clusters(path):
            kept = representative(map(shelf.member, nodes))
            rows = []
            for node in nodes:
                row = shelf.row(node)
                similarity = jaccard(shelf.shingles(kept.node), shelf.shingles(node))
                rows.append({
                    "cluster": kept.id, "similarity": similarity, "kept": node == kept.node,
                    **{name: row[name] for name in (
                        "id", "source", "path", "record", "characters", "quality")}})
                yield files.shard_of(row["id"], shards), (row["id"], {
                    "kept": node == kept.node, "cluster": kept.id,
                    "detail": f"similarity {similarity:.3f} to {kept.id}, the longest of "
                              f"{len(nodes)}"})
            rows.sort(key=lambda row: (not row["kept"], row["id"]))
            yield TaggedOutput("rows", (files.shard_of(kept.id, shards), rows))
        shelf.close()


class ShareSplit(beam.DoFn):
    """File of clusters -> (shard, (id, {"split_key": hash})) of each document: the hash of the text
    of the one that would survive."""

    def __init__(self, search: Search):
        self._search = search

    def process(self, path: str) -> Iterator[tuple[int, tuple[str, dict[str, Any]]]]:
        search = self._search
        shelf = store.Store(search.folder("store"), search.offsets)
        for nodes in join.read_clusters(path):
            key = shelf.row(representative(map(shelf.member, nodes)).node)["sha256"]
            for node in nodes:
                id = shelf.row(node)["id"]
                yield files.shard_of(id, search.texts.paths.shards), (id, {"split_key": key})
        shelf.close()


class WriteDecisions(beam.DoFn):
    """(shard, [(id, decision)]) -> the shard, once a file has the step's decisions on it."""

    def __init__(self, paths: StagePaths, step: str):
        self._paths, self._step = paths, step

    def process(self, element: tuple[int, Iterable[tuple[str, Any]]]) -> Iterator[int]:
        shard, decisions = element
        write_decisions(self._paths, self._step, shard, dict(decisions))
        yield shard


class WriteClusters(beam.DoFn):
    """(shard, {"rows": rows of clusters}) -> the report on the file, once it is written."""

    def __init__(self, paths: StagePaths):
        self._paths = paths

    def process(self, element: tuple[int, dict[str, Iterable[Any]]]) -> Iterator[Report]:
        shard, groups = element
        rows = [row for rows in sorted(groups["rows"], key=lambda rows: rows[0]["cluster"])
                for row in rows]
        yield write(self._paths, shard, rows)


def path_of(folder: str, shard: int, shards: int) -> str:
    """Path of a file of clusters in the folder of a stage or of a corpus."""
    return FileSystems.join(folder, "clusters",
                            files.shard_name("clusters", shard, shards, "parquet"))


def write(paths: StagePaths, shard: int, rows: list[dict[str, Any]]) -> Report:
    """A shard of clusters, and its report."""
    path = path_of(paths.output, shard, paths.shards)
    files.make_folder(FileSystems.join(paths.output, "clusters"))
    size, digest = files.write_atomically(
        path, paths.temporary, lambda handle: documents.write_table(
            handle, pa.Table.from_pylist(rows, SCHEMA)))
    return {**file_report(paths, path, size, digest, len(rows)), "clusters": _largest(rows)}


def hand_on(paths: StagePaths, shard: int) -> Iterator[Report]:
    """Copies the shard of clusters of an earlier stage, and with the first the summary, to the
    output of this one; nothing when near copies were not looked for."""
    for folder in paths.earlier:
        found = [path_of(folder, shard, paths.shards)]
        if shard == 0:
            found.append(FileSystems.join(folder, "clusters", SUMMARY))
        for path in filter(FileSystems.exists, found):
            data = files.read_bytes(path)
            target = FileSystems.join(paths.output, "clusters", path.rpartition("/")[2])
            files.make_folder(FileSystems.join(paths.output, "clusters"))
            size, digest = files.write_atomically(
                target, paths.temporary, lambda handle, data=data: handle.write(data))
            rows = 1 if target.endswith(".json") else pyarrow.parquet.read_metadata(
                io.BytesIO(data)).num_rows
            yield file_report(paths, target, size, digest, rows)


def _largest(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """How many clusters and documents, and the largest of them."""
    sizes: dict[str, dict[str, Any]] = {}
    for row in rows:
        entry = sizes.setdefault(row["cluster"], {"cluster": row["cluster"], "documents": 0})
        entry["documents"] += 1
        if row["kept"]:
            entry.update({name: row[name] for name in ("source", "path", "record")})
    return {"clusters": len(sizes), "documents": sum(e["documents"] for e in sizes.values()),
            "largest": _order(sizes.values())}


def _order(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(entries, key=lambda entry: (-entry["documents"], entry["cluster"]))[:LARGEST]


def write_summary(paths: StagePaths, reports: Iterable[Report], found: dict[str, Any]) -> Report:
    """`clusters/_summary.json` from the reports on the files; returns its report.

    Args:
      paths: of the stage.
      reports: of all files of clusters.
      found: how they were found.
    """
    parts = [report["clusters"] for report in reports]
    summary = {
        **found, "clusters": sum(part["clusters"] for part in parts),
        "documents": sum(part["documents"] for part in parts),
        "largest": _order(entry for part in parts for entry in part["largest"])}
    data = (json.dumps(summary, indent=1, ensure_ascii=False) + "\n").encode("utf-8")
    path = FileSystems.join(paths.output, "clusters", SUMMARY)
    size, digest = files.write_atomically(path, paths.temporary, lambda handle: handle.write(data))
    return file_report(paths, path, size, digest, 1)
