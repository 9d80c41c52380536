"""Clean documents to Parquet shards, without their text passing through a shuffle.

Workers stage what they cleaned in part files by shard; only ids, hashes and the names of the parts
are shuffled. Then each shard is read from its parts, cut to the documents that are kept, sorted by
id and written.
"""

import io
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from data_beam.config import SplitConfig
from data_beam.records import Document
from data_beam.sinks import files
from data_beam.split.content_hash import split_of
from maxlm.data import corpus

SCHEMA = pa.schema([
    ("id", pa.string()),
    ("text", pa.large_string()),
    ("source", pa.string()),
    ("domain", pa.string()),
    ("licence", pa.string()),
    ("path", pa.string()),
    ("language", pa.string()),
    ("split", pa.string()),
    ("sha256", pa.string()),
    ("record", pa.int64()),
    ("language_score", pa.float32()),
    ("bytes_sha256", pa.string()),
    ("transforms", pa.list_(pa.string())),
])
assert tuple(SCHEMA.names) == corpus.DOCUMENT_COLUMNS

ROW_GROUP_ROWS = 1000
_PART_BYTES = 32 * 2**20


def row(document: Document, split: SplitConfig) -> dict[str, Any]:
    """A document as a row of `SCHEMA`."""
    return {
        "id": document.origin.id,
        "text": document.text,
        "source": document.origin.source,
        "domain": document.domain,
        "licence": document.licence,
        "path": document.url or document.origin.path,
        "language": document.language,
        "split": split_of(document.sha256, split.validation, split.test),
        "sha256": document.sha256,
        "record": document.origin.record,
        "language_score": document.language_score,
        "bytes_sha256": document.bytes_sha256,
        "transforms": list(document.transforms),
    }


def write_table(handle: Any, table: pa.Table) -> None:
    """Parquet whose bytes depend on the table alone (and pyarrow's version)."""
    pyarrow.parquet.write_table(table, handle, compression="zstd", row_group_size=ROW_GROUP_ROWS)


class StageParts(beam.DoFn):
    """Documents -> (shard, part file). A part belongs to the bundle that made it: a bundle that is
    tried again makes new parts, and those of the failed try are never named."""

    def __init__(self, temporary: str, split: SplitConfig, shards: int):
        self._folder = files.FileSystems.join(temporary, "parts")
        self._split, self._shards = split, shards

    def setup(self) -> None:
        files.make_folder(self._folder)

    def start_bundle(self) -> None:
        self._rows: dict[int, list[dict[str, Any]]] = {}
        self._size = 0

    def process(self, document: Document) -> Iterator[tuple[int, str]]:
        shard = files.shard_of(document.origin.id, self._shards)
        self._rows.setdefault(shard, []).append(row(document, self._split))
        self._size += len(document.text)
        if self._size > _PART_BYTES:
            yield from self._flush()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        window = GlobalWindow()
        for part in self._flush():
            yield WindowedValue(part, window.max_timestamp(), (window,))

    def _flush(self) -> Iterator[tuple[int, str]]:
        for shard, rows in sorted(self._rows.items()):
            path = files.FileSystems.join(self._folder, f"{shard:05d}-{uuid.uuid4().hex}.parquet")
            with files.FileSystems.create(
                    path, compression_type=files.CompressionTypes.UNCOMPRESSED) as handle:
                write_table(handle, pa.Table.from_pylist(rows, SCHEMA))
            yield shard, path
        self._rows, self._size = {}, 0


class WriteDocuments(beam.DoFn):
    """(shard, {"parts": paths, "kept": ids}) -> the shard's report, once its file is in place."""

    def __init__(self, output: str, temporary: str, shards: int):
        self._output, self._temporary, self._shards = output, temporary, shards

    def process(self, element: tuple[int, dict[str, Iterable[Any]]]) -> Iterator[dict[str, Any]]:
        shard, groups = element
        kept = set(groups["kept"])
        tables = [SCHEMA.empty_table()]
        for path in groups["parts"]:
            part = pyarrow.parquet.read_table(io.BytesIO(files.read_bytes(path)), schema=SCHEMA)
            tables.append(part.filter(pa.array(
                [id in kept for id in part["id"].to_pylist()], pa.bool_())))
        table = pa.concat_tables(tables).sort_by("id")
        if table.num_rows != len(kept):
            raise RuntimeError(
                f"shard {shard}: {len(kept)} documents kept, {table.num_rows} staged")
        folder = files.FileSystems.join(self._output, "documents")
        files.make_folder(folder)
        name = files.shard_name("documents", shard, self._shards, "parquet")
        size, digest = files.write_atomically(
            files.FileSystems.join(folder, name), self._temporary,
            lambda handle: write_table(handle, table))
        yield {"file": f"documents/{name}", "bytes": size, "sha256": digest,
               "rows": table.num_rows, "sources": _counts(table)}


def _counts(table: pa.Table) -> dict[str, dict[str, Any]]:
    """Documents, characters and UTF-8 bytes by source; documents by split and language."""
    counts: dict[str, dict[str, Any]] = {}
    columns = (table[name].to_pylist() for name in ("source", "split", "language", "text"))
    for source, split, language, text in zip(*columns, strict=True):
        entry = counts.setdefault(source, {"documents": 0, "characters": 0, "bytes": 0,
                                           "splits": {}, "languages": {}})
        entry["documents"] += 1
        entry["characters"] += len(text)
        entry["bytes"] += len(text.encode("utf-8"))
        for kind, value in (("splits", split), ("languages", language)):
            entry[kind][value] = entry[kind].get(value, 0) + 1
    return counts
