"""Stage `finish`: documents get their split and take the form of the corpus.

What earlier stages dropped, their dead letters and their samples of dropped texts are merged, with
what was made and may not be in a corpus.
"""

import json
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems

from data_beam.config import RecipeConfig
from data_beam.dedup import clusters
from data_beam.progress import WorkerProgress
from data_beam.records import Document
from data_beam.sinks import documents, files, leftovers
from data_beam.stages import augmentation
from data_beam.stages.context import Context, Place, Report, WriteReport, named, shard_numbers
from data_beam.stages.shards import Counts, file_report, write_json_lines


class FinishShard(beam.DoFn):
    """Shard number -> reports on its files, once they are written."""

    def __init__(self, recipe: RecipeConfig, place: Place, admitted: dict[str, frozenset[int]]):
        self._recipe, self._place, self._admitted = recipe, place, admitted

    def setup(self) -> None:
        self._progress = WorkerProgress(self._place.progress)
        self._making = augmentation.Making(self._recipe, self._place)

    def process(self, shard: int) -> Iterator[Report]:
        place = self._place
        yield self._documents(shard)
        dropped = [row for folder in place.earlier for row in documents.read_rows(
            place.shard_path(folder, "dropped", shard), leftovers.DROPPED_SCHEMA)]
        yield leftovers.write(place, "dropped", shard, [*dropped, *self._making.dropped])
        yield leftovers.write(place, "dead_letters", shard, (
            *({"id": "", **row} for row in self._earlier_lines("dead_letters", shard)),
            *({**leftovers.row(failed), "id": ""} for failed in self._making.failed)))
        yield write_json_lines(place, "samples", shard, self._earlier_lines("samples", shard))
        yield from clusters.hand_on(place, shard)
        self._progress.flush()

    def _earlier_lines(self, kind: str, shard: int) -> Iterator[dict[str, Any]]:
        for folder in self._place.earlier:
            for line in files.read_bytes(
                    self._place.shard_path(folder, kind, shard)).splitlines():
                yield json.loads(line)

    def _documents(self, shard: int) -> Report:
        place, counts = self._place, Counts()

        def own() -> Iterator[tuple[Document, dict[str, Any]]]:
            for document in documents.read_documents(
                    place.shard_path(place.inputs, "documents", shard)):
                self._progress.add(documents=1)
                yield document, documents.corpus_row(
                    document, augmentation.split(document, self._recipe))

        def rows() -> Iterator[dict[str, Any]]:
            for row in self._making.rows(shard, own(), self._admitted):
                counts.add(row["source"], row["text"], row["language"], row["split"])
                if augmentation.is_made(row):
                    counts.add_made(row["source"])
                yield row
            for failed in self._making.failed:
                counts.add_made(failed.origin.source)
            for dropped in self._making.dropped:
                counts.add_made(dropped["source"])

        path = place.shard_path(place.output, "documents", shard)
        files.make_folder(FileSystems.join(place.output, "documents"))
        size, digest, number = documents.write_rows(
            path, place.temporary, rows(), documents.SCHEMA)
        return {**file_report(place, path, size, digest, number), "sources": counts.by_source}


def run(context: Context) -> None:
    """Runs the stage; `place.output` is the corpus itself."""
    admitted = augmentation.admitted(context) if context.recipe.augment.enabled else (
        {source.name: frozenset() for source in context.recipe.sources})

    def build(root: beam.Pipeline) -> None:
        _ = (shard_numbers(root, context.place.order)
             | "Finish shard" >> beam.ParDo(
                 FinishShard(context.recipe, context.place, admitted))
             | "Name report" >> beam.Map(named)
             | "Write report" >> beam.ParDo(WriteReport(context.place.reports)))

    context.pipeline(build)
