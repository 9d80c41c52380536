"""Token shards: ArrayRecord files with an index, whole or absent, the same bytes every time."""

import os
import shutil
import tempfile
from collections.abc import Iterable
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io.filesystems import FileSystems
from array_record.python.array_record_module import ArrayRecordReader, ArrayRecordWriter

from data_beam.base import files
from maxlm.data.corpus import ID_BYTES, Shard, TokenRecord, encode_record

# A group of one record is read alone; see docs/decisions.md for what compression costs and saves.
OPTIONS = "group_size:1,zstd:1"
INDEX_SCHEMA = pa.schema([
    pa.field("id", pa.binary(ID_BYTES), nullable=False),
    pa.field("tokens", pa.int32(), nullable=False),
    pa.field("bytes", pa.int64(), nullable=False),
    pa.field("group", pa.string()),
])
"""`group` only in the index of a shard in which a document has one."""


def write_shard(directory: str, temporary: str, source: str, number: int, of: int,
                documents: Iterable[tuple[TokenRecord, int]]) -> Shard:
    """Writes a shard (its number from 0, of so many of the source) and its index into the directory
    of the split, which exists, on any file system that Beam knows; returns the shard's entry in the
    manifest. `temporary` is an existing folder on the same file system for unfinished files.
    Documents are records and UTF-8 bytes of their texts, in final order."""
    records = files.shard_name(source, number, of, "array_record")
    index = files.shard_name(source, number, of, "index.parquet")
    columns: tuple[list, ...] = ([], [], [], [])

    def copy(path: str, handle: IO[bytes]) -> None:
        with open(path, "rb") as local:
            shutil.copyfileobj(local, handle, 2**20)

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "shard")  # ArrayRecord writes local files only
        writer = ArrayRecordWriter(path, OPTIONS)
        for record, size in documents:
            writer.write(encode_record(record))
            for column, value in zip(columns, (
                    record.id, len(record.tokens), size, record.group or None), strict=True):
                column.append(value)
        writer.close()
        written = ArrayRecordReader(path).num_records()
        if written != len(columns[0]):  # a full disk would be one way to get here
            raise OSError(f"{path}: {len(columns[0])} records were written, {written} are there; "
                          "is the disk full?")
        size, sha256 = files.write_atomically(
            FileSystems.join(directory, records), temporary, lambda handle: copy(path, handle))
    table = pa.table([pa.array(column, field.type) for column, field in
                      zip(columns, INDEX_SCHEMA, strict=True)], schema=INDEX_SCHEMA)
    if not any(columns[3]):
        table = table.drop_columns("group")
    _, index_sha256 = files.write_atomically(
        FileSystems.join(directory, index), temporary,
        lambda handle: pq.write_table(table, handle, compression="zstd"))
    return Shard(file=records, index=index, documents=len(columns[0]), tokens=sum(columns[1]),
                 bytes=sum(columns[2]), size=size, sha256=sha256, index_sha256=index_sha256)
