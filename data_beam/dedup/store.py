"""Shingles of the documents to be compared, in files that are read a document at a time.

A file of a shard holds their shingles one after the other, 8 bytes each; a table beside it says
where each begins, and has what decides which copy is kept. The files hold only documents that share
a bucket with another, and a worker holds no more than a cache of them.
"""

import bisect
import collections
import dataclasses
import io
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from apache_beam.io.filesystems import FileSystems

from data_beam.base import files
from data_beam.sinks.documents import string_schema

_CACHE_BYTES = 256 * 2**20
_NUMBERS = ("row", "start", "size", "characters", "record")
_SCHEMA = string_schema((*_NUMBERS, "quality", "id", "sha256", "source", "path"),
                        **dict.fromkeys(_NUMBERS, pa.int64()), quality=pa.float64())


def rank(row: dict[str, Any]) -> tuple[int, float, str]:
    """Sorts rows of the store: of copies the first is kept. It is the longest; of equally long ones
    that of the highest quality; of those the smallest id."""
    return -row["characters"], -row["quality"], row["id"]


def write(folder: str, temporary: str, shard: int,
          rows: Iterable[tuple[int, dict[str, Any], np.ndarray]]) -> None:
    """Writes the store of a shard from (row, columns of the document, shingles in ascending order),
    in order of rows. The folders of the stores and for unfinished files exist, on one file
    system."""
    table: list[dict[str, Any]] = []

    def shingles(handle: Any) -> None:
        start = 0
        for number, row, values in rows:
            handle.write(values.astype("<u8").tobytes())
            table.append({
                "row": number, "start": start, "size": len(values),
                "characters": len(row["text"]),
                "quality": float(dict(row["scores"]).get("quality", 0.0)),
                **{name: row[name] for name in ("id", "sha256", "source", "path", "record")}})
            start += len(values)

    files.write_atomically(FileSystems.join(folder, f"{shard:05d}.shingles"), temporary, shingles)
    files.write_atomically(
        FileSystems.join(folder, f"{shard:05d}.parquet"), temporary,
        lambda handle: pyarrow.parquet.write_table(pa.Table.from_pylist(table, _SCHEMA), handle))


@dataclasses.dataclass
class _Shard:
    handle: Any
    table: pa.Table
    rows: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray


class Store:
    """Reads the stores of all shards in a folder; `offsets` are those of `texts.shard_offsets`."""

    def __init__(self, folder: str, offsets: tuple[int, ...]):
        self._folder, self._offsets = folder, offsets
        self._shards: dict[int, _Shard] = {}
        self._cache: collections.OrderedDict[int, np.ndarray] = collections.OrderedDict()
        self._cached = 0

    def _find(self, node: int) -> tuple[_Shard, int]:
        number = bisect.bisect_right(self._offsets, node) - 1
        shard = self._shards.get(number)
        if shard is None:
            base = FileSystems.join(self._folder, f"{number:05d}")
            table = pyarrow.parquet.read_table(io.BytesIO(files.read_bytes(f"{base}.parquet")))
            columns = [table[name].to_numpy() for name in ("row", "start", "size")]
            handle = files.open_raw(f"{base}.shingles")
            shard = self._shards[number] = _Shard(handle, table, *columns)
        return shard, int(shard.rows.searchsorted(node - self._offsets[number]))

    def size(self, node: int) -> int:
        """Number of shingles of a document."""
        shard, place = self._find(node)
        return int(shard.sizes[place])

    def shingles(self, node: int) -> np.ndarray:
        """[shingles] uint64 of a document, ascending."""
        values = self._cache.get(node)
        if values is None:
            shard, place = self._find(node)
            shard.handle.seek(8 * int(shard.starts[place]))
            values = np.frombuffer(shard.handle.read(8 * int(shard.sizes[place])), "<u8")
            self._cache[node] = values
            self._cached += values.nbytes
            while self._cached > _CACHE_BYTES and len(self._cache) > 1:
                self._cached -= self._cache.popitem(last=False)[1].nbytes
        else:
            self._cache.move_to_end(node)
        return values

    def row(self, node: int) -> dict[str, Any]:
        """The table's columns of a document, and its `node`."""
        shard, place = self._find(node)
        return {**shard.table.slice(place, 1).to_pylist()[0], "node": node}

    def close(self) -> None:
        for shard in self._shards.values():
            shard.handle.close()
        self._shards.clear()
