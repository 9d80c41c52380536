"""Records of a file, by format. Each document read is yielded once, with its outcome."""

import os
from collections.abc import Callable, Iterator

from data_beam.base import files
from data_beam.config import SourceConfig
from data_beam.config.sources import BINARY_FORMATS
from data_beam.readers import json_records, streams, tables, warc
from data_beam.readers.listing import File
from data_beam.readers.programming_languages import language_of
from data_beam.readers.reading import Read, Reading


def read_file(file: File, source: SourceConfig, max_record_bytes: int,
              at: Callable[[float], None] = lambda position: None) -> Iterator[Read]:
    """Reads one file of a source. `at` is called now and then with the number of the file's bytes
    that were read.

    Yields a `Record` for each document; a `DeadLetter` for each that cannot be read or is larger
    than `max_record_bytes`, and for each place where the file is damaged, without a record number;
    one `DeadLetter` for a file that is missing or not a regular file; a `Dropped` for an empty file
    and for records of a kind that holds no text. Blank lines of jsonl are not records.
    """
    reading = Reading(file, source, max_record_bytes, at)
    read = {"jsonl": json_records.jsonl, "json": json_records.json_array,
            "sqlite": tables.sqlite, "parquet": tables.parquet, "warc": warc.warc
            }.get(reading.config.format, _whole_file)
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


def _whole_file(reading: Reading) -> Iterator[Read]:
    """The file is one document."""
    format = reading.config.format
    if format == "code" and not language_of(reading.file.path):
        yield reading.dropped(None, "no known language", reading.file.path.rpartition("/")[2])
        return
    data = streams.read_all(reading.file.location, reading.limit)
    if data is None:
        yield reading.too_large(None)
    elif not data:
        yield reading.dropped(None, "empty file")
    elif format in BINARY_FORMATS:
        yield reading.record(None, "", data, binary=True)
    else:
        yield reading.decoded(None, data)
