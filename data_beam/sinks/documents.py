"""Documents in Parquet: those of a finished corpus, and those that a stage passes to the next.

Both are sorted by id, and their bytes depend on the documents alone (and pyarrow's version).
"""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from data_beam.base import files
from data_beam.base.records import Document, Origin
from maxlm.data import corpus

_TYPES = {
    "text": pa.large_string(), "record": pa.int64(), "offset": pa.int64(), "is_code": pa.bool_(),
    "transforms": pa.list_(pa.string()), "scores": pa.map_(pa.string(), pa.float64()),
    "trained_spans": pa.list_(pa.list_(pa.int64())),
}


def string_schema(columns: Iterable[str], **types: pa.DataType) -> pa.Schema:
    """Columns of strings, but for those named in `types` or well known (see `_TYPES`)."""
    types = {**_TYPES, **types}
    return pa.schema([(name, types.get(name, pa.string())) for name in columns])


SCHEMA = string_schema(corpus.DOCUMENT_COLUMNS, language_score=pa.float32())  # of CORPUS/documents
STAGE_SCHEMA = string_schema(
    ("id", "text", "source", "path", "record", "domain", "licence", "url", "language",
     "language_score", "sha256", "bytes_sha256", "transforms", "is_code", "scores", "cluster",
     "split_key", "offset", "trained_spans", "group"),
    language_score=pa.float64())  # a `Document` and its id

ROW_GROUP_ROWS = 1000
_ROW_GROUP_CHARACTERS = 64 * 2**20


def _row(document: Document, schema: pa.Schema, **others: str | None) -> dict[str, Any]:
    values = {**vars(document), **vars(document.origin), "id": document.origin.id,
              "transforms": list(document.transforms), "scores": sorted(document.scores.items()),
              **others}
    return {name: values[name] for name in schema.names}


def stage_row(document: Document) -> dict[str, Any]:
    """A document as a row of `STAGE_SCHEMA`."""
    return _row(document, STAGE_SCHEMA)


def from_stage_row(row: dict[str, Any]) -> Document:
    """The document of a row of `STAGE_SCHEMA`."""
    return Document(
        Origin(row["source"], row["path"], row["record"]), row["text"], row["domain"],
        row["licence"], row["url"], row["language"], row["language_score"], row["sha256"],
        row["bytes_sha256"], tuple(row["transforms"]), row["is_code"], dict(row["scores"]),
        row["cluster"], row["split_key"], row["offset"],
        None if row["trained_spans"] is None else tuple(map(tuple, row["trained_spans"])),
        row["group"])


def corpus_row(document: Document, split: str) -> dict[str, Any]:
    """A document as a row of `SCHEMA`."""
    return _row(document, SCHEMA, split=split, cluster=document.cluster or None,
                url=document.url or None, group=document.group or None)


def write_table(handle: Any, table: pa.Table) -> None:
    """Writes a table that is in memory."""
    pyarrow.parquet.write_table(table, handle, compression="zstd", row_group_size=ROW_GROUP_ROWS)


def write_rows(path: str, temporary: str, rows: Iterable[dict[str, Any]],
               schema: pa.Schema) -> tuple[int, str, int]:
    """Writes rows with a `text` that come one by one, in final order, with a row group in memory at
    a time. Returns size in bytes, SHA-256 and number of rows."""
    written = 0

    def write(handle: Any) -> None:
        nonlocal written
        with pyarrow.parquet.ParquetWriter(handle, schema, compression="zstd") as writer:
            group: list[dict[str, Any]] = []
            characters = 0
            for row in rows:
                group.append(row)
                characters += len(row["text"])
                if len(group) == ROW_GROUP_ROWS or characters > _ROW_GROUP_CHARACTERS:
                    writer.write_table(pa.Table.from_pylist(group, schema))
                    written += len(group)
                    group, characters = [], 0
            if group:
                writer.write_table(pa.Table.from_pylist(group, schema))
                written += len(group)

    size, digest = files.write_atomically(path, temporary, write)
    return size, digest, written


def read_rows(path: str, schema: pa.Schema, columns: list[str] | None = None
              ) -> Iterator[dict[str, Any]]:
    """The rows of a file that a stage wrote, a row group in memory at a time."""
    with files.open_raw(path) as handle:
        parquet = pyarrow.parquet.ParquetFile(handle)
        if parquet.schema_arrow.names != schema.names:
            raise RuntimeError(f"{path} has columns of another version of this program")
        for number in range(parquet.num_row_groups):
            yield from parquet.read_row_group(number, columns=columns).to_pylist()


def read_documents(path: str) -> Iterator[Document]:
    """The documents of a stage's shard, sorted by id."""
    return map(from_stage_row, read_rows(path, STAGE_SCHEMA))
