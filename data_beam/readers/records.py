"""Records of a file, by format. Everything yielded is one document read, with exactly one end."""

import os
from collections.abc import Callable, Iterator

from data_beam.base import files
from data_beam.config import SourceConfig
from data_beam.config.sources import BINARY_FORMATS
from data_beam.readers import json_array, programming_languages, streams, tables, warc
from data_beam.readers.base import Read, Reading
from data_beam.readers.listing import File


def read_file(file: File, source: SourceConfig, max_record_bytes: int,
              at: Callable[[float], None] = lambda position: None) -> Iterator[Read]:
    """Reads one file.

    Args:
      file: which.
      source: its source.
      max_record_bytes: a larger record is a dead letter.
      at: told now and then how many of the file's bytes lie behind.

    Yields:
      A `Record` for each document; a `DeadLetter` for each that cannot be read and one more, with
      no record number, when the file itself is damaged, missing or no regular file; a
      `Dropped` for an empty file and for records of a kind that holds no text. Blank lines of
      jsonl are no records.
    """
    reading = Reading(file, source, max_record_bytes, at)
    read = {"jsonl": tables.jsonl, "json": json_array.json_array, "sqlite": tables.sqlite,
            "parquet": tables.parquet, "warc": warc.warc}.get(reading.config.format, whole)
    try:
        kind = files.irregular(file.location)
    except OSError as error:
        link = "a symbolic link: " if os.path.islink(file.location) else ""
        yield reading.dead(None, "unreadable file", f"{link}{error.strerror}")
        return
    if kind is not None:
        yield reading.dead(None, "not a regular file", kind)
        return
    try:
        if file.size == 0:
            yield reading.dropped(None, "empty file")
            return
        yield from read(reading)
    except streams.DamagedFile as error:
        yield reading.dead(None, error.reason, f"the file is damaged: {error.detail}")
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        yield reading.dead(None, "unreadable file", str(error.strerror))


def whole(reading: Reading) -> Iterator[Read]:
    """The file is one document."""
    format = reading.config.format
    if format == "code" and not programming_languages.language_of(reading.file.path):
        yield reading.dropped(None, "no known language", reading.file.path.rpartition("/")[2])
        return
    data = reading.all()
    if data is None:
        yield reading.too_large(None)
    elif not data:
        yield reading.dropped(None, "empty file")
    elif format in BINARY_FORMATS:
        yield reading.record(None, "", data, binary=True)
    else:
        yield reading.decoded(None, data)
