"""Reading the files of a folder in tests."""

from pathlib import Path
from typing import Any

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
