"""The Beam pipeline of `tokenize`.

    document files -> row groups | encode, check, stage parts by shard -> group -> shards

Only keys and the names of part files are shuffled, neither texts nor tokens. One worker reads a
shard from its parts, sorts it in memory and writes it.
"""

import dataclasses
import hashlib
import io
import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import xxhash
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.transforms.window import GlobalWindows

from data_beam.base import files
from data_beam.base.trained_spans import read_spans, token_mask
from data_beam.readers.corpus_files import DAMAGED, DocumentFile, damaged
from data_beam.runners.progress import WorkerProgress
from data_beam.sinks import array_record
from maxlm.data.corpus import ID_BYTES, TokenRecord, token_dtype
from maxlm.data.tokenizer import Tokenizer

COLUMNS = ["id", "text", "source", "domain", "licence", "split", "sha256"]
_OPTIONAL_COLUMNS = ["trained_spans", "group"]
"""Corpora of older versions do not have them."""
_PART_SCHEMA = pa.schema([
    ("hash", pa.uint64()), ("id", pa.binary(ID_BYTES)), ("bytes", pa.int64()),
    ("tokens", pa.large_binary()), ("mask", pa.large_binary()), ("group", pa.string())])
LOSSY = "decoding its tokens gives another text"
_PART_BYTES = 32 * 2**20
_ROW_GROUPS = 4
_BLOCK = 2**20
Key = tuple[str, str, int]
"""Split, source, number of the shard."""


@dataclasses.dataclass(frozen=True)
class Job:
    """Paths and settings for the workers."""

    output: str
    temporary: str
    tokenizer: tuple[str, ...]
    """Names of the tokenizer's files below `output`."""
    shards: dict[tuple[str, str], int]
    """Number of shards by split and source."""
    progress: bool
    """Workers are on this machine and write their counts to the temporary folder."""

    def folder(self, name: str) -> str:
        return FileSystems.join(self.temporary, name)


def _write_json(job: Job, folder: str, name: str, value: Any) -> None:
    data = json.dumps(value, sort_keys=True).encode()
    files.write_atomically(FileSystems.join(job.folder(folder), name), job.temporary, data)


def _report_damage(job: Job, path: str, error: BaseException) -> None:
    """Writes a report of a damaged file. The command turns it into one line; the runner would wrap
    an exception."""
    _write_json(job, "reports", f"damaged-{xxhash.xxh3_128_hexdigest(path.encode())}.json",
                {"damaged": damaged(path, error)})


class RowGroups(beam.DoFn):
    """A file -> path, first and end row group of each piece of work. Compares its checksum."""

    def __init__(self, job: Job):
        self._job = job

    def process(self, file: DocumentFile) -> Iterator[tuple[str, int, int]]:
        try:
            with FileSystems.open(
                    file.path, compression_type=CompressionTypes.UNCOMPRESSED) as handle:
                digest = hashlib.sha256()
                while block := handle.read(_BLOCK):
                    digest.update(block)
                if digest.hexdigest() != file.sha256:
                    raise pyarrow.ArrowInvalid("it does not have the checksum of the manifest")
                parquet = pyarrow.parquet.ParquetFile(handle)
                groups, names = parquet.num_row_groups, parquet.schema_arrow.names
                if not set(COLUMNS) <= set(names):
                    raise pyarrow.ArrowInvalid(f"its columns are {', '.join(names)}")
        except DAMAGED as error:
            _report_damage(self._job, file.path, error)
            return
        for first in range(0, groups, _ROW_GROUPS):
            yield file.path, first, min(first + _ROW_GROUPS, groups)


class Encode(beam.DoFn):
    """A range of row groups -> (shard key, part file). Failures and counts go to files.

    A bundle that is retried writes new parts; the parts of the failed attempt are not used.
    """

    def __init__(self, job: Job):
        self._job = job

    def setup(self) -> None:
        self._tokenizer = Tokenizer.from_files({
            name: files.read_bytes(FileSystems.join(self._job.output, name))
            for name in self._job.tokenizer})
        self._dtype = token_dtype(self._tokenizer.vocab_size)
        self._piece_bytes = self._tokenizer.piece_bytes()
        self._prefix_bytes = self._tokenizer.prefix_bytes
        self._progress = WorkerProgress(self._job.folder("progress") if self._job.progress else "")

    def start_bundle(self) -> None:
        self._parts: dict[Key, list[tuple[Any, ...]]] = {}
        self._size = 0

    def process(self, element: tuple[str, int, int]) -> Iterator[tuple[Key, str]]:
        path, first, end = element
        counts: dict[tuple[str, str], dict[str, Any]] = {}
        failures = []
        with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as handle:
            parquet = pyarrow.parquet.ParquetFile(handle)
            columns = COLUMNS + [name for name in _OPTIONAL_COLUMNS
                                 if name in parquet.schema_arrow.names]
            for group in range(first, end):
                try:
                    rows = parquet.read_row_group(group, columns=columns).to_pylist()
                except DAMAGED as error:
                    _report_damage(self._job, path, error)
                    return
                for row in rows:
                    failure = self._encode(row, counts)
                    if failure:
                        failures.append({"id": row["id"], "source": row["source"],
                                         "file": path, "reason": failure})
                    self._progress.add(documents=1)
                    if self._size > _PART_BYTES:
                        yield from self._flush()
            self._progress.add(files=int(end == parquet.num_row_groups))
        report = {"counts": [[*key, value] for key, value in sorted(counts.items())],
                  "failures": failures}
        name = f"read-{xxhash.xxh3_128_hexdigest(path.encode())}-{first}.json"
        _write_json(self._job, "reports", name, report)
        self._progress.flush()

    def _encode(self, row: dict[str, Any], counts: dict[tuple[str, str], dict[str, Any]]
                ) -> str | None:
        """Encodes one document into its part; returns what is wrong with it, if anything."""
        tokenizer, text = self._tokenizer, row["text"]
        shards = self._job.shards.get((row["split"], row["source"]))
        if not shards:
            return f"the manifest has no documents of its source in split {row['split']!r}"
        try:
            doc_id = bytes.fromhex(row["id"])
        except ValueError:
            doc_id = b""
        if len(doc_id) != ID_BYTES:
            return "its id is not 32 hexadecimal digits"
        encoded = text.encode()
        if hashlib.sha256(encoded).hexdigest() != row["sha256"]:
            # Flipped bytes that still decode. Parquet's pages need not have checksums.
            return "its text does not have the sha256 of its row"
        ids = tokenizer.encode(text)
        if tokenizer.decode(ids) != text:
            return LOSSY
        tokens = np.array([tokenizer.bos_id, *ids, tokenizer.eos_id], self._dtype)
        mask, spans, group = None, row.get("trained_spans"), row.get("group")
        if spans is not None:
            try:
                mask = token_mask(text, read_spans(spans, len(text)), self._piece_bytes[ids],
                                  self._prefix_bytes).tobytes()
            except ValueError as error:
                return f"trained_spans: {error}"
        size = len(encoded)
        # Documents of a group lie side by side.
        order = xxhash.xxh3_64_intdigest(group.encode() if group else doc_id)
        self._parts.setdefault((row["split"], row["source"], order % shards), []).append(
            (order, doc_id, size, tokens.tobytes(), mask, group))
        self._size += tokens.nbytes
        entry = counts.setdefault((row["split"], row["source"]), {
            "documents": 0, "tokens": 0, "bytes": 0, "marked": 0, "domains": {}, "licences": {}})
        for name, value in (("documents", 1), ("tokens", len(tokens)), ("bytes", size),
                            ("marked", int(mask is not None or bool(group)))):
            entry[name] += value
        for name in ("domain", "licence"):
            seen = entry[f"{name}s"]
            seen[row[name]] = seen.get(row[name], 0) + 1
        return None

    def finish_bundle(self) -> Iterator[Any]:
        return map(GlobalWindows.windowed_value_at_end_of_window, self._flush())

    def _flush(self) -> Iterator[tuple[Key, str]]:
        for key, rows in sorted(self._parts.items()):
            path = FileSystems.join(self._job.folder("parts"), f"{uuid.uuid4().hex}.parquet")
            table = pa.table([pa.array(column, field.type) for column, field in zip(
                zip(*rows, strict=True), _PART_SCHEMA, strict=True)], schema=_PART_SCHEMA)
            with FileSystems.create(
                    path, compression_type=CompressionTypes.UNCOMPRESSED) as handle:
                pyarrow.parquet.write_table(table, handle, compression="none")
            yield key, path
        self._parts, self._size = {}, 0


class WriteShard(beam.DoFn):
    """(key, {"parts": paths}) -> a shard, its index, and a report of it in a file."""

    def __init__(self, job: Job, vocab_size: int):
        self._job = job
        self._dtype = token_dtype(vocab_size)

    def process(self, element: tuple[Key, dict[str, Iterable[Any]]]) -> None:
        (split, source, number), groups = element
        table = pa.concat_tables([_PART_SCHEMA.empty_table(), *(
            pyarrow.parquet.read_table(io.BytesIO(files.read_bytes(path)), schema=_PART_SCHEMA)
            for path in groups["parts"])]).sort_by([("hash", "ascending"), ("id", "ascending")])
        directory = FileSystems.join(self._job.output, split)
        of = self._job.shards[split, source]
        shard = array_record.write_shard(
            directory, self._job.temporary, source, number, of, self._documents(table))
        _write_json(self._job, "reports", f"shard-{split}-{source}-{number}.json",
                    {"split": split, "source": source, "number": number,
                     "shard": dataclasses.asdict(shard)})

    def _documents(self, table: pa.Table) -> Iterator[tuple[TokenRecord, int]]:
        previous = None
        for batch in table.to_batches(256):
            for row in batch.to_pylist():
                if row["id"] == previous:
                    raise RuntimeError(f"two documents have the id {row['id'].hex()}")
                previous = row["id"]
                mask = None if row["mask"] is None else np.frombuffer(row["mask"], bool)
                yield TokenRecord(row["id"], np.frombuffer(row["tokens"], self._dtype), mask,
                                  row["group"] or ""), row["bytes"]


def build(root: beam.Pipeline, job: Job, documents: Sequence[DocumentFile], vocab_size: int
          ) -> None:
    """Adds the transforms of `tokenize`.

    Args:
      root: an empty pipeline.
      job: where things are; the folders `reports`, `parts` and `progress` exist in its temporary.
      documents: the files to read.
      vocab_size: of the tokenizer.
    """
    listing = job.folder("listing.json")
    with FileSystems.create(listing, compression_type=CompressionTypes.UNCOMPRESSED) as handle:
        handle.write(json.dumps([dataclasses.astuple(file) for file in documents]).encode())
    # Every shard is written, an empty one too: the set of files depends on the manifest alone.
    keys: list[Key] = [(split, source, number) for (split, source), count in job.shards.items()
                       for number in range(count)]
    numbers = (root | "Shard keys" >> beam.Create(keys, reshuffle=False)
               | "Key alone" >> beam.Map(lambda key: (key, None)))
    parts = (root
             | "Listing path" >> beam.Create([listing], reshuffle=False)
             | "Read listing" >> beam.FlatMap(
                 lambda path: [DocumentFile(*entry) for entry in json.loads(
                     files.read_bytes(path))])
             | "Spread files" >> beam.Reshuffle()
             | "Row groups" >> beam.ParDo(RowGroups(job))
             | "Spread row groups" >> beam.Reshuffle()
             | "Encode" >> beam.ParDo(Encode(job)))
    _ = ({"parts": parts, "keys": numbers}
         | "Group parts" >> beam.CoGroupByKey()
         | "Write shards" >> beam.ParDo(WriteShard(job, vocab_size)))
