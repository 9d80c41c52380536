"""Records out of tables: lines of JSON, rows of SQLite and of Parquet."""

import os
import shutil
import sqlite3
import tempfile
import urllib.parse
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from data_beam.readers import json_values, streams
from data_beam.readers.base import Read, Reading, field_names

_BATCH_ROWS = 256


def jsonl(reading: Reading) -> Iterator[Read]:
    """One JSON value a line, UTF-8."""
    empty = True
    for line in streams.lines(streams.chunks(reading.file.location, reading.at), reading.limit):
        if line.content is None:
            if line.cut:
                continue  # the file's dead letter is this line's too
            empty = False
            yield reading.too_large(line.number, line.size)
            continue
        content = line.content
        if line.number == 1:
            content = content.removeprefix(b"\xef\xbb\xbf")
        if not content.strip():
            continue
        empty = False
        if line.cut and not _is_whole(content):
            continue
        try:
            item = json_values.only(content.decode("utf-8"))
        except UnicodeDecodeError as error:
            yield reading.dead(line.number, "bad encoding",
                               f"not UTF-8 at byte {error.start} of the line")
            continue
        except json_values.Invalid as error:
            yield reading.dead(line.number, error.reason, error.detail)
            continue
        yield reading.from_item(line.number, item, content)
    if empty:
        yield reading.dropped(None, "empty file")


def _is_whole(content: bytes) -> bool:
    """Whether a line that may be cut is not: no beginning of an object or a text is JSON."""
    try:
        return isinstance(json_values.only(content.decode("utf-8")), (dict, str))
    except (UnicodeDecodeError, json_values.Invalid):
        return False


def _text_or_bytes(data: bytes) -> str | bytes:
    """A TEXT value of SQLite, which may hold anything; bytes are no text to `from_item`."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


def sqlite(reading: Reading) -> Iterator[Read]:
    """The rows of the input's query; the database is opened read-only."""
    location = reading.file.location
    with tempfile.TemporaryDirectory() as folder:
        local = location
        if not os.path.isfile(local):  # not on this machine's disk: SQLite needs it there.
            local = os.path.join(folder, "copy.sqlite")
            with streams.open_raw(location) as raw, open(local, "wb") as copy:
                shutil.copyfileobj(raw, copy)
        uri = f"file:{urllib.parse.quote(os.fsencode(os.path.abspath(local)))}"
        connection = sqlite3.connect(uri + "?mode=ro&immutable=1", uri=True)
        connection.text_factory = _text_or_bytes
        number = 0
        try:
            rows = connection.execute(reading.config.query)
            names = [column[0] for column in rows.description]
            seen = 0
            for number, row in enumerate(rows, 1):
                yield reading.from_item(number, dict(zip(names, row, strict=True)), None)
                # How many rows there are is not known; their values are most of the file.
                seen += sum(len(value) for value in row if isinstance(value, (str, bytes)))
                reading.at(min(seen, reading.file.size))
        except sqlite3.Error as error:
            yield reading.dead(None, "bad database", f"after {number} rows: {error}")
            number += 1
        finally:
            connection.close()
        if number == 0:
            yield reading.dropped(None, "empty file")


def _values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Bytes of each text of a column, undecoded: one bad row must not cost the others."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.large_binary()).to_pylist()


def _may_be_text(kind: pa.DataType) -> bool:
    """Whether the values are texts, or null all of them."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)


def parquet(reading: Reading) -> Iterator[Read]:
    """The rows of a Parquet file, one row group after the other; only the fields named are read.

    A file may lack the columns of licence, domain and URL, as a record may lack those fields. One
    that has them in another type than text, or no text, is one dead letter.

    A row group that is damaged costs its own rows, and the file is a dead letter for it.
    """
    names = field_names(reading.config)
    wanted = list(dict.fromkeys(names.values()))
    with streams.open_raw(reading.file.location) as raw:
        try:
            file = pyarrow.parquet.ParquetFile(
                raw, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True)
            schema = file.schema_arrow
        except (pa.ArrowException, OSError) as error:
            yield reading.dead(None, "invalid Parquet", str(error))
            return
        for name in tuple(wanted):
            found = schema.names.count(name)
            if found == 0 and name != names["text"]:
                wanted.remove(name)
            elif found != 1 or not _may_be_text(schema.field(name).type):
                what = "not there" if not found else "there twice" if found > 1 else \
                    f"no text but {schema.field(name).type}"
                yield reading.dead(None, "missing field", f"{name!r} is {what}")
                return
        total = file.metadata.num_rows
        if total == 0:
            yield reading.dropped(None, "empty file")
            return
        first, damaged = 0, []
        for group in range(file.num_row_groups):
            number = first
            try:
                for batch in file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=wanted):
                    columns = [_values(batch.column(name)) for name in wanted]
                    for row in zip(*columns, strict=True):
                        number += 1
                        yield _from_row(reading, number, dict(zip(wanted, row, strict=True)))
                    reading.at(reading.file.size * min(1.0, number / total))
            except (pa.ArrowException, OSError) as error:
                damaged.append(f"row group {group} after {number - first} rows: {error}")
            first += file.metadata.row_group(group).num_rows
        if damaged:
            raise streams.DamagedFile("damaged Parquet", "; ".join(damaged))


def _from_row(reading: Reading, number: int, row: dict[str, bytes | None]) -> Read:
    text = row[reading.config.text_field]
    if text is not None and len(text) > reading.limit:
        return reading.too_large(number, len(text))
    try:
        item = {name: None if value is None else value.decode("utf-8")
                for name, value in row.items()}
    except UnicodeDecodeError as error:
        return reading.dead(number, "bad encoding", f"not UTF-8 at byte {error.start}")
    return reading.from_item(number, item, None)
