"""Token shards: ArrayRecord files with an index, whole or absent, the same bytes every time."""

import hashlib
import io
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io.filesystems import FileSystems
from array_record.python.array_record_module import ArrayRecordWriter

from maxlm.data.corpus import ID_BYTES, Shard, encode_record

# A group of one record is read alone; see docs/decisions.md for what compression costs and saves.
OPTIONS = "group_size:1,zstd:1"
INDEX_SCHEMA = pa.schema([
    pa.field("id", pa.binary(ID_BYTES), nullable=False),
    pa.field("tokens", pa.int32(), nullable=False),
    pa.field("bytes", pa.int64(), nullable=False),
])


def shard_name(source: str, number: int, of: int) -> str:
    """Stem of the files of a shard."""
    return f"{source}-{number:05d}-of-{of:05d}"


def publish(path: str, content: bytes | str) -> None:
    """Puts a file in place whole: written under a temporary name, then renamed.

    Args:
      path: any path that Beam's file systems know.
      content: bytes, or the name of a local file.
    """
    temporary = f"{path}.tmp-{uuid.uuid4().hex}"
    with FileSystems.create(temporary, mime_type="application/octet-stream",
                            compression_type="uncompressed") as target:
        if isinstance(content, bytes):
            target.write(content)
        else:
            with open(content, "rb") as source:
                shutil.copyfileobj(source, target, 2**20)
    # Workers that write one shard twice write the same bytes, so the last rename may win.
    FileSystems.rename([temporary], [path])


def write_shard(directory: str, source: str, number: int, of: int,
                documents: Iterable[tuple[bytes, np.ndarray, int]]) -> Shard:
    """Writes one shard and its index.

    Args:
      directory: the split's directory, which exists; any path that Beam's file systems know.
      source: name of the source.
      number: of the shard, from 0.
      of: number of shards of the source.
      documents: id (16 bytes), tokens (uint16 or uint32), UTF-8 bytes of the text; in final order.

    Returns:
      The shard's entry in the manifest.
    """
    name = shard_name(source, number, of)
    ids, tokens, sizes = [], [], []
    with tempfile.TemporaryDirectory() as local:
        path = os.path.join(local, "shard")
        writer = ArrayRecordWriter(path, OPTIONS)
        for doc_id, ids_of_text, size in documents:
            writer.write(encode_record(doc_id, ids_of_text))
            ids.append(doc_id)
            tokens.append(len(ids_of_text))
            sizes.append(size)
        writer.close()
        with open(path, "rb") as file:
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
        size = os.path.getsize(path)
        publish(f"{directory}/{name}.array_record", path)
    table = pa.table([pa.array(column, field.type) for column, field in
                      zip((ids, tokens, sizes), INDEX_SCHEMA, strict=True)], schema=INDEX_SCHEMA)
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    index = buffer.getvalue()
    publish(f"{directory}/{name}.index.parquet", index)
    return Shard(file=f"{name}.array_record", index=f"{name}.index.parquet", documents=len(ids),
                 tokens=sum(tokens), bytes=sum(sizes), size=size, sha256=checksum,
                 index_sha256=hashlib.sha256(index).hexdigest())
