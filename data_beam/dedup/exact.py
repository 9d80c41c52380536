"""Equal texts: whole documents, and lines or paragraphs that are repeated in many.

Of documents with equal text one is kept: the copy whose source is listed first in the recipe;
within a source the smallest path, then the smallest record number. So the result depends neither on
workers nor on order.

    shards -> (part, packed occurrences) -> group -> a table of the repeated lines (paragraphs)

A worker needs about 18 bytes for each long line of a part, and 100 for each repeated one of the
whole corpus when it removes them.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np

from data_beam.base import files
from data_beam.base.records import Dropped, Origin, text_sha256
from data_beam.dedup import buckets
from data_beam.dedup.texts import OCCURRENCE, Texts, hashes, repeated, work, write_file
from data_beam.runners.progress import WorkerProgress
from data_beam.sinks import documents

_PARTS = 64
_FLUSH = 2**20

Claim = tuple[int, str, int, str]
"""Place of the source in the recipe, path, record number (0 for none), source: in this order the
smallest claim on a text wins."""


def claim(origin: Origin, source_index: int) -> Claim:
    """The claim of a document on its text."""
    return source_index, origin.path, origin.record or 0, origin.source


def origin_of(claim: Claim) -> Origin:
    """The document that made a claim."""
    _, path, record, source = claim
    return Origin(source, path, record or None)


class Claims(beam.DoFn):
    """Shard number -> (hash of the text, claim) of its documents.

    Args:
      texts: reads the documents.
      cleaned: of the remaining documents without repeated lines and paragraphs.
    """

    def __init__(self, texts: Texts, cleaned: bool):
        self._texts, self._cleaned = texts, cleaned

    def process(self, shard: int) -> Iterator[tuple[str, Claim]]:
        texts = self._texts
        indices = {source: number for number, source in enumerate(texts.sources)}
        if self._cleaned:
            rows = ({**row, "sha256": text_sha256(row["text"])} for _, row in texts.read(shard))
        else:
            rows = documents.read_rows(
                texts.paths.shard_path(texts.paths.inputs, "documents", shard),
                documents.STAGE_SCHEMA, ["source", "path", "record", "sha256"])
        for row in rows:
            origin = Origin(row["source"], row["path"], row["record"])
            yield row["sha256"], claim(origin, indices[origin.source])


class DropOthers(beam.DoFn):
    """(hash, claims) -> `Dropped` for every document but the one that is kept."""

    def process(self, element: tuple[str, Iterable[Claim]]) -> Iterator[Dropped]:
        _, claims = element
        claims = list(claims)
        winner = min(claims)
        representative = origin_of(winner).id
        for other in claims:
            if other != winner:
                yield Dropped(origin_of(other), "dedup", "exact duplicate",
                              f"same text as {representative}")


def find_equal(start: Any, texts: Texts, cleaned: bool = False) -> Any:
    """(shard, (id, decision)) of the documents that have the text of another."""
    shards = texts.paths.shards
    return (texts.shard_numbers(start)
            | "Claim texts" >> beam.ParDo(Claims(texts, cleaned))
            | "Group by text hash" >> beam.GroupByKey()
            | "Keep first" >> beam.ParDo(DropOthers())
            | "Dropped by shard" >> beam.Map(lambda dropped: (
                files.shard_of(dropped.origin.id, shards),
                (dropped.origin.id, {"detail": dropped.detail}))))


class CountOccurrences(beam.DoFn):
    """Shard number -> (part, packed `OCCURRENCE`) of long lines (paragraphs) of its documents."""

    def __init__(self, texts: Texts, unit: str):
        self._texts, self._unit = texts, unit

    def setup(self) -> None:
        self._progress = WorkerProgress(self._texts.paths.progress)

    def process(self, shard: int) -> Iterator[tuple[int, bytes]]:
        texts = self._texts
        indices = {source: number for number, source in enumerate(texts.sources)}
        settings = getattr(texts.settings, self._unit)
        found: list[tuple[int, int, int]] = []
        for _, row in texts.read(shard, repeated=False, progress=self._progress):
            if not row["is_code"]:
                me = indices[row["source"]], int(row["id"][:16], 16)
                found += [(value, *me) for value in set(
                    hashes(row["text"], self._unit, settings))]
            if len(found) > _FLUSH:
                yield from self._pack(found)
                found = []
        yield from self._pack(found)
        self._progress.flush()

    @staticmethod
    def _pack(found: list[tuple[int, int, int]]) -> Iterator[tuple[int, bytes]]:
        entries = np.array(found, OCCURRENCE)
        parts = (entries["hash"] % np.uint64(_PARTS)).astype(np.int64)
        for part, values in buckets.by_part(parts, entries):
            yield part, values.tobytes()


class WriteRepeated(beam.DoFn):
    """(part, packed occurrences) -> the part, once a file has the first of each repeated one."""

    def __init__(self, texts: Texts, unit: str):
        self._texts, self._unit = texts, unit

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[int]:
        part, blobs = element
        table = repeated(buckets.unpack(blobs, OCCURRENCE),
                         getattr(self._texts.settings, self._unit).max_documents)
        paths = self._texts.paths
        write_file(paths, work(paths, "repeated", self._unit, f"{part:02d}"), table.tobytes())
        yield part


def find_repeated(start: Any, texts: Texts, unit: str) -> Any:
    """The step: tables of the repeated lines (paragraphs) appear in the working folder."""
    return (texts.shard_numbers(start)
            | "Occurrences" >> beam.ParDo(CountOccurrences(texts, unit))
            | "Group by part" >> beam.GroupByKey()
            | "Find repeated" >> beam.ParDo(WriteRepeated(texts, unit)))
