"""Stage `finish`: documents get their split and take the form of the corpus.

What earlier stages dropped, their dead letters and their samples of dropped texts are merged, with
what was made and may not be in a corpus.
"""

import json
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems

from data_beam.base import files
from data_beam.base.records import Document
from data_beam.base.stage_context import (
    Context,
    Report,
    StagePaths,
    WriteReport,
    named,
    shard_numbers,
)
from data_beam.config import RecipeConfig
from data_beam.dedup import clusters
from data_beam.runners.progress import WorkerProgress
from data_beam.sinks import documents
from data_beam.sinks.shards import (
    DROPPED_SCHEMA,
    Counts,
    file_report,
    rejected_row,
    write_json_lines,
    write_rejected,
)
from data_beam.stages import augmentation


class FinishShard(beam.DoFn):
    """Shard number -> reports on its files, once they are written."""

    def __init__(self, recipe: RecipeConfig, paths: StagePaths,
                 admitted: dict[str, frozenset[int]]):
        self._recipe, self._paths, self._admitted = recipe, paths, admitted

    def setup(self) -> None:
        self._progress = WorkerProgress(self._paths.progress)
        self._shard_augmenter = augmentation.ShardAugmenter(self._recipe, self._paths)

    def process(self, shard: int) -> Iterator[Report]:
        paths = self._paths
        yield self._documents(shard)
        dropped = [row for folder in paths.earlier for row in documents.read_rows(
            paths.shard_path(folder, "dropped", shard), DROPPED_SCHEMA)]
        yield write_rejected(paths, "dropped", shard, [*dropped, *self._shard_augmenter.dropped])
        yield write_rejected(paths, "dead_letters", shard, (
            *({"id": "", **row} for row in self._earlier_lines("dead_letters", shard)),
            *({**rejected_row(failed), "id": ""} for failed in self._shard_augmenter.failed)))
        yield write_json_lines(paths, "samples", shard, self._earlier_lines("samples", shard))
        yield from clusters.hand_on(paths, shard)
        self._progress.flush()

    def _earlier_lines(self, kind: str, shard: int) -> Iterator[dict[str, Any]]:
        for folder in self._paths.earlier:
            for line in files.read_bytes(
                    self._paths.shard_path(folder, kind, shard)).splitlines():
                yield json.loads(line)

    def _documents(self, shard: int) -> Report:
        paths, counts = self._paths, Counts()

        def own() -> Iterator[tuple[Document, dict[str, Any]]]:
            for document in documents.read_documents(
                    paths.shard_path(paths.inputs, "documents", shard)):
                self._progress.add(documents=1)
                yield document, documents.corpus_row(
                    document, augmentation.split(document, self._recipe))

        def rows() -> Iterator[dict[str, Any]]:
            for row in self._shard_augmenter.rows(shard, own(), self._admitted):
                counts.add(row["source"], row["text"], row["language"], row["split"])
                if augmentation.is_augmented(row):
                    counts.add_made(row["source"])
                yield row
            for failed in self._shard_augmenter.failed:
                counts.add_made(failed.origin.source)
            for dropped in self._shard_augmenter.dropped:
                counts.add_made(dropped["source"])

        path = paths.shard_path(paths.output, "documents", shard)
        files.make_folder(FileSystems.join(paths.output, "documents"))
        size, digest, number = documents.write_rows(
            path, paths.temporary, rows(), documents.SCHEMA)
        return {**file_report(paths, path, size, digest, number), "sources": counts.by_source}


def run(context: Context) -> None:
    """Runs the stage; `place.output` is the corpus itself."""
    admitted = augmentation.admitted(context) if context.recipe.augment.enabled else (
        {source.name: frozenset() for source in context.recipe.sources})

    def build(root: beam.Pipeline) -> None:
        _ = (shard_numbers(root, context.paths.order)
             | "Finish shard" >> beam.ParDo(
                 FinishShard(context.recipe, context.paths, admitted))
             | "Name report" >> beam.Map(named)
             | "Write report" >> beam.ParDo(WriteReport(context.paths.reports)))

    context.pipeline(build)
