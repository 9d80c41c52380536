"""Decides which copies are kept, which are dropped, and which documents share a split.

    CORPUS/clusters/*.parquet      near copies: a row for each document of a cluster, the kept first
    CORPUS/clusters/_summary.json  settings of the search, numbers, the largest clusters

A cluster is a kept document and the documents dropped as its copies. Its id is the id of the kept
document. All rows of a cluster are in one file, chosen by a hash of its id.
"""

import collections
import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from apache_beam.io.filesystems import FileSystems
from apache_beam.pvalue import TaggedOutput

from data_beam.base import files
from data_beam.base.stage_context import Report, StagePaths
from data_beam.dedup import components
from data_beam.dedup.near_copies import Search
from data_beam.dedup.signatures import compare
from data_beam.dedup.store import Store, rank
from data_beam.sinks import documents
from data_beam.sinks.shards import file_report

SCHEMA = documents.string_schema(
    ("cluster", "id", "source", "path", "record", "characters", "quality", "similarity", "kept"),
    characters=pa.int64(), quality=pa.float64(), similarity=pa.float64(), kept=pa.bool_())
"""cluster: id of the kept document. similarity: exact Jaccard similarity of the shingles to those
of the kept document. It may be below the threshold with `containment`, and with
`clustering="component"` if only a chain of copies connects the two documents."""

SUMMARY = "_summary.json"  # readers of Parquet folders skip names that begin with _
_PLACE = ("source", "path", "record")
_COPIED = (*_PLACE, "id", "characters", "quality")
LARGEST = 20  # clusters listed in the summary


def stars(ranked: list[dict[str, Any]], store: Store, search: Search
          ) -> list[list[tuple[dict[str, Any], float, float]]]:
    """Divides the documents of a component, rows of the store sorted by `rank`, into stars: a kept
    document and its copies.

    Documents are taken by rank. A document that is a copy of kept documents joins the star of the
    first of them; any other document is kept. With `clustering="component"` only the first is kept.

    A star has (row, similarity to the kept document, share of its shingles that the kept document
    contains) for each document, the kept one first. Stars come by the rank of their kept documents.
    """
    near, threshold = search.minhash, search.threshold
    everything = near.clustering == "component"
    found: list[list[tuple[dict[str, Any], float, float]]] = []
    for row in ranked:
        for star in found:
            sizes = sorted(store.size(each["node"]) for each in (star[0][0], row))
            if sizes[0] < threshold * sizes[1] and not (everything or near.containment):
                continue  # |A and B| / |A or B| is at most the smaller size divided by the larger
            similarity, held = compare(store.shingles(star[0][0]["node"]),
                                       store.shingles(row["node"]))
            if everything or similarity >= threshold or 0 < near.containment <= held:
                star.append((row, similarity, held))
                break
        else:
            found.append([(row, *compare(*[store.shingles(row["node"])] * 2))])
    return found


def keep_one(path: str, search: Search, after: Search | None) -> Iterator[Any]:
    """File of components -> (shard, (id, decision)) for each document; to the output `rows`: (shard
    of the cluster, its rows).

    The kept documents of one component share a split. If another search follows, that for documents
    which must share a split, edges between them are written to a file for it.
    """
    linked = []
    shards = search.texts.paths.shards
    store = search.store()
    for nodes in components.read_components(path):
        ranked = sorted(map(store.row, nodes), key=rank)
        found = stars(ranked, store, search)
        shared = {"split_key": ranked[0]["sha256"]} if len(found) > 1 else {}
        for star in found:
            kept = star[0][0]
            cluster = kept["id"] if len(star) > 1 else ""
            linked.append((ranked[0]["node"], kept["node"]))
            rows = []
            for row, similarity, held in star:
                part = ("" if similarity >= search.threshold or not search.minhash.containment
                        else f"{held:.3f} of it is in that, ")
                rows.append({"cluster": cluster, "similarity": similarity, "kept": row is kept,
                             **{name: row[name] for name in _COPIED}})
                yield files.shard_of(row["id"], shards), (row["id"], {
                    "kept": row is kept, "cluster": cluster, **(shared if row is kept else {}),
                    "detail": f"similarity {similarity:.3f} to {kept['id']}, {part}the longest of "
                              f"{len(star)}"})
            if cluster:
                rows.sort(key=lambda row: (not row["kept"], row["id"]))
                yield TaggedOutput("rows", (files.shard_of(cluster, shards), rows))
    store.close()
    linked = [edge for edge in linked if edge[0] != edge[1]]
    if linked and after:
        name = "linked-" + path.rpartition("/")[2]
        components.write_edges(search.texts.paths, after.folder("edges", name), linked)


def share_split(path: str, search: Search) -> Iterator[tuple[int, tuple[str, dict[str, Any]]]]:
    """File of components -> (shard, (id, {"split_key": hash})) for each document. The hash is that
    of the text of the component's first document by rank."""
    store = search.store()
    for nodes in components.read_components(path):
        rows = [store.row(node) for node in nodes]
        key = min(rows, key=rank)["sha256"]
        for row in rows:
            yield files.shard_of(row["id"], search.texts.paths.shards), (
                row["id"], {"split_key": key})
    store.close()


def write_clusters(element: tuple[int, dict[str, Iterable[Any]]], paths: StagePaths) -> Report:
    """(shard, {"rows": rows of clusters}) -> the report on the file, after it is written."""
    shard, groups = element
    rows = [row for rows in sorted(groups["rows"], key=lambda rows: rows[0]["cluster"])
            for row in rows]
    path = path_of(paths.output, shard, paths.shards)
    size, digest = _write(paths, path, lambda handle: documents.write_table(
        handle, pa.Table.from_pylist(rows, SCHEMA)))
    return {**file_report(paths, path, size, digest, len(rows)), "clusters": _largest(rows)}


def path_of(folder: str, shard: int, shards: int) -> str:
    """Path of a file of clusters in the folder of a stage or of a corpus."""
    return FileSystems.join(folder, "clusters",
                            files.shard_name("clusters", shard, shards, "parquet"))


def _write(paths: StagePaths, path: str, write: Any) -> tuple[int, str]:
    files.make_folder(FileSystems.join(paths.output, "clusters"))
    return files.write_atomically(path, paths.temporary, write)


def hand_on(paths: StagePaths, shard: int) -> Iterator[Report]:
    """Copies a shard of clusters from an earlier stage to this one; with shard 0 the summary too.
    Copies nothing if there was no search for near copies."""
    for folder in paths.earlier:
        found = [path_of(folder, shard, paths.shards)]
        if shard == 0:
            found.append(FileSystems.join(folder, "clusters", SUMMARY))
        for path in filter(FileSystems.exists, found):
            data = files.read_bytes(path)
            target = FileSystems.join(paths.output, "clusters", path.rpartition("/")[2])
            size, digest = _write(paths, target, data)
            rows = 1 if target.endswith(".json") else pyarrow.parquet.read_metadata(
                io.BytesIO(data)).num_rows
            yield file_report(paths, target, size, digest, rows)


def _largest(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """How many clusters and documents, and the largest of them."""
    sizes = collections.Counter(row["cluster"] for row in rows)
    entries = [{"cluster": row["cluster"], "documents": sizes[row["cluster"]],
                **{name: row[name] for name in _PLACE}}
               for row in rows if row["kept"]]
    return {"clusters": len(sizes), "documents": len(rows), "largest": _order(entries)}


def _order(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(entries, key=lambda entry: (-entry["documents"], entry["cluster"]))[:LARGEST]


def write_summary(paths: StagePaths, reports: Iterable[Report], found: dict[str, Any]) -> Report:
    """Writes `clusters/_summary.json` from the reports on all files of clusters and the settings
    and counts of the searches; returns its report."""
    parts = [report["clusters"] for report in reports]
    summary = {
        **found, "clusters": sum(part["clusters"] for part in parts),
        "documents": sum(part["documents"] for part in parts),
        "largest": _order(entry for part in parts for entry in part["largest"])}
    data = (json.dumps(summary, indent=1, ensure_ascii=False) + "\n").encode("utf-8")
    path = FileSystems.join(paths.output, "clusters", SUMMARY)
    size, digest = _write(paths, path, data)
    return file_report(paths, path, size, digest, 1)
