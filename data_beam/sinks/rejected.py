"""What did not become a document: dropped documents to Parquet, dead letters to JSON lines."""

import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from apache_beam.io.filesystems import FileSystems

from data_beam.base import files
from data_beam.base.records import DeadLetter, Dropped
from data_beam.base.stage_context import Report, StagePaths
from data_beam.sinks.documents import write_table
from maxlm.data import corpus

DROPPED_SCHEMA = pa.schema([
    ("id", pa.string()),
    ("source", pa.string()),
    ("path", pa.string()),
    ("stage", pa.string()),
    ("reason", pa.string()),
    ("record", pa.int64()),
    ("detail", pa.string()),
])
assert tuple(DROPPED_SCHEMA.names) == corpus.DROPPED_COLUMNS


def row(record: Dropped | DeadLetter) -> dict[str, Any]:
    """The columns of both outputs; `detail` says what `reason`, which is counted, measured."""
    origin = record.origin
    return {"id": origin.id, "source": origin.source, "path": origin.path, "stage": record.stage,
            "reason": record.reason, "record": origin.record, "detail": record.detail}


def write(paths: StagePaths, kind: str, shard: int, rows: Iterable[dict[str, Any]]) -> Report:
    """Writes the shard of dropped documents or of dead letters, small enough for memory.

    Args:
      paths: of the stage.
      kind: `dropped` (Parquet) or `dead_letters` (JSON lines).
      shard: number.
      rows: as `row` makes them, in any order.
    """
    assert kind in ("dropped", "dead_letters")
    # Two dead letters may share an id (a damaged file, and the file as a whole).
    ordered = sorted(rows, key=lambda r: (r["id"], r["stage"], r["reason"], r["detail"]))
    path = paths.shard_path(paths.output, kind, shard)
    files.make_folder(FileSystems.join(paths.output, kind))

    def content(handle: Any) -> None:
        if kind == "dropped":
            write_table(handle, pa.Table.from_pylist(ordered, DROPPED_SCHEMA))
            return
        for entry in ordered:
            line = {field: entry[field] for field in corpus.DEAD_LETTER_FIELDS}
            handle.write((json.dumps(line, ensure_ascii=False) + "\n").encode("utf-8"))

    size, digest = files.write_atomically(path, paths.temporary, content)
    sources: dict[str, dict[str, dict[str, int]]] = {}
    for entry in ordered:
        reasons = sources.setdefault(entry["source"], {}).setdefault(entry["stage"], {})
        reasons[entry["reason"]] = reasons.get(entry["reason"], 0) + 1
    return {"file": path[len(paths.output.rstrip("/")) + 1:], "bytes": size, "sha256": digest,
            "rows": len(ordered), "sources": sources}
