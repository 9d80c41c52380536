"""What did not become a document: dropped documents to Parquet, dead letters to JSON lines.

Their rows are small and carry no text, so they go through the shuffle themselves.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import pyarrow as pa

from data_beam.records import DeadLetter, Dropped
from data_beam.sinks import files
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


def row(leftover: Dropped | DeadLetter) -> dict[str, Any]:
    """The columns of both outputs; `detail` says what `reason`, which is counted, measured."""
    origin = leftover.origin
    return {"id": origin.id, "source": origin.source, "path": origin.path, "stage": leftover.stage,
            "reason": leftover.reason, "record": origin.record, "detail": leftover.detail}


class WriteLeftovers(beam.DoFn):
    """(shard, {"rows": rows}) -> the shard's report, once its file is in place.

    Args:
      kind: `dropped` (Parquet) or `dead_letters` (JSON lines).
    """

    def __init__(self, kind: str, output: str, temporary: str, shards: int):
        assert kind in ("dropped", "dead_letters")
        self._kind, self._output = kind, output
        self._temporary, self._shards = temporary, shards

    def process(self, element: tuple[int, dict[str, Iterable[Any]]]) -> Iterator[dict[str, Any]]:
        shard, groups = element
        # Two dead letters may share an id (a damaged file, and the file as a whole).
        rows = sorted(groups["rows"], key=lambda r: (r["id"], r["stage"], r["reason"], r["detail"]))
        folder = files.FileSystems.join(self._output, self._kind)
        files.make_folder(folder)
        suffix = "parquet" if self._kind == "dropped" else "jsonl"
        name = files.shard_name(self._kind, shard, self._shards, suffix)
        size, digest = files.write_atomically(
            files.FileSystems.join(folder, name), self._temporary,
            lambda handle: self._write(handle, rows))
        sources: dict[str, dict[str, int]] = {}
        for entry in rows:
            reasons = sources.setdefault(entry["source"], {})
            reasons[entry["reason"]] = reasons.get(entry["reason"], 0) + 1
        yield {"file": f"{self._kind}/{name}", "bytes": size, "sha256": digest, "rows": len(rows),
               "sources": sources}

    def _write(self, handle: Any, rows: list[dict[str, Any]]) -> None:
        if self._kind == "dropped":
            write_table(handle, pa.Table.from_pylist(rows, DROPPED_SCHEMA))
            return
        for entry in rows:
            line = {field: entry[field] for field in corpus.DEAD_LETTER_FIELDS}
            handle.write((json.dumps(line, ensure_ascii=False) + "\n").encode("utf-8"))
