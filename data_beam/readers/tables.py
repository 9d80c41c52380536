"""Records out of tables: rows of SQLite and of Parquet."""

import os
import shutil
import sqlite3
import tempfile
import urllib.parse
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from data_beam.base import files
from data_beam.readers import streams
from data_beam.readers.reading import Read, Reading, field_names

_BATCH_ROWS = 256


def _text_or_bytes(data: bytes) -> str | bytes:
    """A TEXT value of SQLite, which may hold any bytes; `from_item` does not take bytes as text."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


def sqlite(reading: Reading) -> Iterator[Read]:
    """The rows of the input's query; the database is opened read-only."""
    location = reading.file.location
    with tempfile.TemporaryDirectory() as folder:
        local = location
        if not os.path.isfile(local):  # SQLite reads local files only
            local = os.path.join(folder, "copy.sqlite")
            with files.open_raw(location) as raw, open(local, "wb") as copy:
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
                # The number of rows is not known; their values are most of the file.
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
    """Bytes of each text of a column, not decoded: a bad row does not affect the others."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.large_binary()).to_pylist()


def _may_be_text(kind: pa.DataType) -> bool:
    """Whether the values are texts, or all null."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)


def parquet(reading: Reading) -> Iterator[Read]:
    """The rows of a Parquet file, a row group at a time; only the named columns are read.

    A file may lack any column but the text, as a record may lack those fields. A
    file without the text column, or with a named column of another type, is one dead letter.

    The rows of a damaged row group are not used, and the file is a dead letter.
    """
    names = field_names(reading.config)
    wanted, spans = list(dict.fromkeys(names.values())), names.get("trained_spans")
    with files.open_raw(reading.file.location) as raw:
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
            elif found == 0:
                yield reading.missing(None, name, schema.names)
                return
            elif found > 1 or not (name == spans or _may_be_text(schema.field(name).type)):
                what = "there twice" if found > 1 else f"not text but {schema.field(name).type}"
                yield reading.dead(None, "missing field", f"{name!r} is {what}")
                return
        total = file.metadata.num_rows
        if total == 0:
            yield reading.dropped(None, "empty file")
            return
        first, damaged = 0, []  # rows of the groups before, and what is wrong with which
        for group in range(file.num_row_groups):
            number = first
            try:
                for batch in file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=wanted):
                    columns = [batch.column(name).to_pylist() if name == spans else
                               _values(batch.column(name)) for name in wanted]
                    for row in zip(*columns, strict=True):
                        number += 1
                        yield _from_row(reading, number, dict(zip(wanted, row, strict=True)))
                    reading.at(reading.file.size * min(1.0, number / total))
            except (pa.ArrowException, OSError) as error:
                damaged.append(f"row group {group} after {number - first} rows: {error}")
            first += file.metadata.row_group(group).num_rows
        if damaged:
            raise streams.DamagedFile("damaged Parquet", "; ".join(damaged))


def _from_row(reading: Reading, number: int, row: dict[str, Any]) -> Read:
    text = row[reading.config.text_field]
    if text is not None and len(text) > reading.limit:
        return reading.too_large(number, len(text))
    try:
        item = {name: value.decode("utf-8") if isinstance(value, bytes) else value
                for name, value in row.items()}
    except UnicodeDecodeError as error:
        return reading.dead(number, "bad encoding", f"not UTF-8 at byte {error.start}")
    return reading.from_item(number, item, None)
