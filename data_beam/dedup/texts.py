"""The texts of a shard as the steps of stage `dedup` so far leave them.

Each step leaves its decisions in small files of a working folder, a JSON object by document id for
each shard. A step reads the shard of the stage before and applies them.

Repeated text is a line, or a paragraph (lines between empty ones), of enough characters that occurs
in more than a number of documents. It stays only in the first of them: the one whose source is
listed first in the recipe, then the one of the smallest id. Surrounding whitespace does not count.
"""

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow.parquet
import xxhash
from apache_beam.io.filesystems import FileSystems

from data_beam.base import files
from data_beam.base.stage_context import StagePaths
from data_beam.config import DedupConfig
from data_beam.config.dedup import RepeatedTextConfig
from data_beam.dedup.buckets import unpack
from data_beam.runners.progress import WorkerProgress
from data_beam.sinks import documents

OCCURRENCE = np.dtype([("hash", "<u8"), ("source", "<u2"), ("id", "<u8")])
"""A text that occurs in a document: its hash, the place of the source, 64 bits of the id."""

_COLUMNS = ["id", "source", "path", "record", "text", "sha256", "is_code", "scores",
            "trained_spans"]
_SEPARATORS = {"paragraphs": re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+"), "lines": re.compile(r"\n")}
UNITS = tuple(_SEPARATORS)  # in the order in which they are removed


# Working files.

def work(paths: StagePaths, *parts: str) -> str:
    """A path in the folder of files that the stage needs only while it runs."""
    return FileSystems.join(paths.temporary, "work", *parts)


def write_file(paths: StagePaths, path: str, data: bytes) -> None:
    """A whole file in the working folder."""
    files.make_folder(path.rpartition("/")[0])
    files.write_atomically(path, paths.temporary, data)


def write_decisions(element: tuple[int, Iterable[tuple[str, Any]]], paths: StagePaths, step: str
                    ) -> int:
    """(shard, [(id, decision)]) -> the shard, once a file has the decisions of the step on it."""
    shard, decisions = element
    write_file(paths, work(paths, step, f"{shard:05d}.json"),
               json.dumps(dict(sorted(dict(decisions).items()))).encode("utf-8"))
    return shard


def read_decisions(paths: StagePaths, step: str, shard: int) -> dict[str, Any]:
    """Decisions by document id; empty when the step did not run or decided nothing."""
    path = work(paths, step, f"{shard:05d}.json")
    return json.loads(files.read_bytes(path)) if FileSystems.exists(path) else {}


# Documents as nodes.

def shard_offsets(paths: StagePaths) -> tuple[int, ...]:
    """Rows before each shard of the stage before, and of all at the end: the node of a document is
    its row added to the offset of its shard."""
    offsets = [0]
    for shard in range(paths.shards):
        with files.open_raw(paths.shard_path(paths.inputs, "documents", shard)) as handle:
            offsets.append(offsets[-1] + pyarrow.parquet.ParquetFile(handle).metadata.num_rows)
    return tuple(offsets)


def shards_of(nodes: np.ndarray, offsets: tuple[int, ...]) -> np.ndarray:
    return np.searchsorted(np.asarray(offsets), nodes, side="right") - 1


# Repeated text.

def _hash(unit: str, text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"), UNITS.index(unit))


def hashes(text: str, unit: str, settings: RepeatedTextConfig) -> Iterator[int]:
    """Hashes of the lines (paragraphs) of a text that are long enough."""
    for part in _SEPARATORS[unit].split(text):
        part = part.strip()
        if len(part) >= settings.min_characters:
            yield _hash(unit, part)


def repeated(occurrences: np.ndarray, max_documents: int) -> np.ndarray:
    """First occurrence of each text that is in more than `max_documents`, in order of the hash: [m]
    of [n] `OCCURRENCE`, one for each text and document."""
    ordered = np.sort(np.unique(occurrences), order=["hash", "source", "id"])
    _, starts, counts = np.unique(ordered["hash"], return_index=True, return_counts=True)
    return ordered[starts[counts > max_documents]]


def _remove(text: str, unit: str, minimum: int, first: dict[int, tuple[int, int]],
            me: tuple[int, int]) -> tuple[str, int]:
    """The text without the lines (paragraphs) of `minimum` characters and more whose first
    occurrence (source and id, by hash) is not in this document, and how many those were."""
    parts = _SEPARATORS[unit].split(text)
    kept = [part for part in parts if len(part.strip()) < minimum
            or first.get(_hash(unit, part.strip()), me) == me]
    if len(kept) == len(parts):
        return text, 0
    joined = ("\n\n" if unit == "paragraphs" else "\n").join(kept)
    return re.sub(r"\n{3,}", "\n\n", joined).strip("\n"), len(parts) - len(kept)


@dataclasses.dataclass(frozen=True)
class Texts:
    """Reads the remaining documents."""

    paths: StagePaths  # of the stage
    settings: DedupConfig  # of the stage
    sources: tuple[str, ...]  # names of the sources, in the order of the recipe

    def shard_numbers(self, start: Any) -> Any:
        """PCollection of the shard numbers, spread over the workers in the order of the stage."""
        order = self.paths.order
        return (start | "Shard numbers" >> beam.FlatMap(lambda _: order)
                | "Spread shards" >> beam.Reshuffle())

    def remover(self) -> Callable[[str, str, str], tuple[str, tuple[str, ...]]]:
        """(text, source, id) -> the text without what is repeated elsewhere, and what was done:
        `repeated lines removed: 3`."""
        firsts = {}
        for unit in UNITS:
            if getattr(self.settings, unit).enabled:
                found = files.match(work(self.paths, "repeated", unit), "*")
                table = unpack([files.read_bytes(entry.path) for entry in found], OCCURRENCE)
                firsts[unit] = {hash: (source, id) for hash, source, id in table.tolist()}
        indices = {source: number for number, source in enumerate(self.sources)}

        def remove(text: str, source: str, id: str) -> tuple[str, tuple[str, ...]]:
            me = indices[source], int(id[:16], 16)
            done = []
            for unit, first in firsts.items():
                minimum = getattr(self.settings, unit).min_characters
                text, removed = _remove(text, unit, minimum, first, me) if first else (text, 0)
                if removed:
                    done.append(f"repeated {unit} removed: {removed}")
            return text, tuple(done)

        return remove

    def read(self, shard: int, rows: Iterable[int] | None = None, repeated: bool = True,
             progress: WorkerProgress | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
        """(row, columns) of the documents of a shard that no step so far has dropped; of some rows,
        if they are given. Repeated lines and paragraphs are removed, unless `repeated` is False."""
        dropped = {id for step in ("exact", "exact_again", "near")
                   for id, decision in read_decisions(self.paths, step, shard).items()
                   if not decision.get("kept", False)}
        wanted = None if rows is None else set(rows)
        remove = self.remover() if repeated else None
        path = self.paths.shard_path(self.paths.inputs, "documents", shard)
        for number, row in enumerate(documents.read_rows(path, documents.STAGE_SCHEMA, _COLUMNS)):
            if progress is not None:
                progress.add(documents=1)
            if row["id"] in dropped or (wanted is not None and number not in wanted):
                continue
            if remove is not None and not row["is_code"] and row["trained_spans"] is None:
                row["text"], done = remove(row["text"], row["source"], row["id"])
                if done and not row["text"].strip():
                    continue
            yield number, row
