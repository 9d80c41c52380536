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
from data_beam.base.records import Origin, text_sha256
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


def _claims(shard: int, texts: Texts, cleaned: bool) -> Iterator[tuple[str, Claim]]:
    """(hash of the text, claim) of the documents of a shard; with `cleaned` of the remaining ones,
    without repeated lines and paragraphs."""
    indices = {source: number for number, source in enumerate(texts.sources)}
    if cleaned:
        rows = ({**row, "sha256": text_sha256(row["text"])} for _, row in texts.read(shard))
    else:
        rows = documents.read_rows(
            texts.paths.shard_path(texts.paths.inputs, "documents", shard),
            documents.STAGE_SCHEMA, ["source", "path", "record", "sha256"])
    for row in rows:
        origin = Origin(row["source"], row["path"], row["record"])
        yield row["sha256"], claim(origin, indices[origin.source])


def drop_others(element: tuple[str, Iterable[Claim]]) -> Iterator[tuple[str, dict[str, str]]]:
    """(hash, claims) -> (id, decision) of every document but the one that is kept."""
    _, claims = element
    claims = list(claims)
    winner = min(claims)
    for other in claims:
        if other != winner:
            yield origin_of(other).id, {"detail": f"same text as {origin_of(winner).id}"}


def find_equal(start: Any, texts: Texts, cleaned: bool = False) -> Any:
    """(shard, (id, decision)) of the documents that have the text of another."""
    shards = texts.paths.shards
    return (texts.shard_numbers(start)
            | "Claim texts" >> beam.FlatMap(_claims, texts, cleaned)
            | "Group by text hash" >> beam.GroupByKey()
            | "Keep first" >> beam.FlatMap(drop_others)
            | "Dropped by shard" >> beam.Map(
                lambda decided: (files.shard_of(decided[0], shards), decided)))


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
                found += [(value, *me) for value in set(hashes(row["text"], self._unit, settings))]
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


def _write_repeated(element: tuple[int, Iterable[bytes]], texts: Texts, unit: str) -> int:
    """(part, packed occurrences) -> the part, once a file has the first of each repeated one."""
    part, blobs = element
    table = repeated(buckets.unpack(blobs, OCCURRENCE), getattr(texts.settings, unit).max_documents)
    write_file(texts.paths, work(texts.paths, "repeated", unit, f"{part:02d}"), table.tobytes())
    return part


def find_repeated(start: Any, texts: Texts, unit: str) -> Any:
    """The step: tables of the repeated lines (paragraphs) appear in the working folder."""
    return (texts.shard_numbers(start)
            | "Occurrences" >> beam.ParDo(CountOccurrences(texts, unit))
            | "Group by part" >> beam.GroupByKey()
            | "Find repeated" >> beam.Map(_write_repeated, texts, unit))
