"""Reading the files of a folder in tests."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from data_beam.base.records import DeadLetter, Dropped, Record
from data_beam.config import InputConfig, RecipeConfig, SourceConfig
from data_beam.readers.listing import list_files
from data_beam.readers.read_file import read_file

LIMIT = 1000


def source(root: Path, pattern: str = "*", format: str = "jsonl", **fields: Any) -> SourceConfig:
    """A source of one input."""
    return SourceConfig("s", "general", "CC0-1.0",
                        (InputConfig(str(root), pattern, format, **fields),))


def read(root: Path, limit: int = LIMIT, **fields: Any) -> list[Any]:
    """Everything that is read of a folder."""
    config = source(root, **fields)
    return [item for file in list_files(RecipeConfig(sources=(config,)))
            for item in read_file(file, config, limit)]


def outcomes(items: list[Record | Dropped | DeadLetter]) -> list[tuple[str, int | None, str]]:
    """Kind, record number and reason (or text) of each."""
    return [(type(item).__name__, item.origin.record,
             item.text if isinstance(item, Record) else item.reason) for item in items]


def write_rows(folder, format: str, rows: list[dict]) -> dict:
    """Writes rows in a format with fields; what an input of them needs besides."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if format == "jsonl":
        (folder / "a").write_text("\n".join(map(json.dumps, rows)))
    elif format == "json":
        (folder / "a").write_text(json.dumps(rows))
    elif format == "parquet":
        pyarrow.parquet.write_table(
            pa.table({name: [row.get(name) for row in rows] for name in names}), folder / "a")
    else:
        (folder / "a").unlink(missing_ok=True)
        with sqlite3.connect(folder / "a") as connection:
            connection.execute(f"CREATE TABLE t ({', '.join(names)})")
            connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(names))})",
                                   [tuple(row.get(name) for name in names) for row in rows])
        connection.close()
        return {"format": format, "query": "SELECT * FROM t ORDER BY rowid"}
    return {"format": format}
