"""The stages that work shard by shard: `filter`, `finish` and `report`.

`filter` applies the filters that judge one document at a time. `finish` gives each document its
split and the columns of the corpus, adds what augmentation makes, and merges what earlier stages
dropped, their dead letters and their samples. `report` writes CORPUS/report.html and report.json.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems

from data_beam.base import files, json_files, stage_context
from data_beam.base.records import DeadLetter, Document, Dropped
from data_beam.base.stage_context import Context, Report, StagePaths, WriteReport, named
from data_beam.config import RecipeConfig
from data_beam.dedup import clusters
from data_beam.filters.chain import judge, make_filters
from data_beam.privacy.filter import PrivacyFilter
from data_beam.reporting.corpus_report import make_report
from data_beam.runners.progress import WorkerProgress
from data_beam.sinks import documents, shards
from data_beam.stages import augmentation


def _each_shard(context: Context, write_shard: beam.DoFn) -> None:
    """Runs a DoFn on all shard numbers and collects its reports."""
    def build(root: beam.Pipeline) -> None:
        _ = (stage_context.shard_numbers(root, context.paths.order)
             | "Write shard" >> beam.ParDo(write_shard)
             | "Name report" >> beam.Map(named)
             | "Write report" >> beam.ParDo(WriteReport(context.paths.reports)))

    context.pipeline(build)


class FilterShard(beam.DoFn):
    """Shard number -> reports on the files of the shard, which it writes."""

    def __init__(self, recipe: RecipeConfig, paths: StagePaths):
        self._recipe, self._paths = recipe, paths

    def setup(self) -> None:
        self._filters = make_filters(self._recipe)
        privacy = self._recipe.privacy
        # A document may be dropped before the filter that would have replaced its personal data.
        self._privacy = PrivacyFilter(privacy) if privacy.enabled else None
        self._progress = WorkerProgress(self._paths.progress)

    def process(self, shard: int) -> Iterator[Report]:
        yield from shards.rewrite(self._paths, shard, self._judge, self._progress,
                                  self._privacy.masked if self._privacy else str)
        self._progress.flush()

    def _judge(self, document: Document) -> Document | Dropped | DeadLetter:
        *_, (_, outcome) = judge(document, self._filters)
        if isinstance(outcome, Document) or self._privacy is None:
            return outcome
        return dataclasses.replace(
            outcome, detail=self._privacy.masked_quote(outcome.detail, document.text))


def run_filter(context: Context) -> None:
    _each_shard(context, FilterShard(context.recipe, context.paths))


class FinishShard(beam.DoFn):
    """Shard number -> reports on the files of the shard, which it writes."""

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
            paths.shard_path(folder, "dropped", shard), shards.DROPPED_SCHEMA)]
        made = self._shard_augmenter
        yield shards.write_rejected(paths, "dropped", shard, [*dropped, *made.dropped])
        yield shards.write_rejected(paths, "dead_letters", shard, (
            *({"id": "", **row} for row in self._earlier_lines("dead_letters", shard)),
            *({**shards.rejected_row(failed), "id": ""} for failed in made.failed)))
        yield shards.write_json_lines(paths, "samples", shard,
                                      self._earlier_lines("samples", shard))
        yield from clusters.hand_on(paths, shard)
        self._progress.flush()

    def _earlier_lines(self, kind: str, shard: int) -> Iterator[dict[str, Any]]:
        for folder in self._paths.earlier:
            yield from json_files.read_lines(self._paths.shard_path(folder, kind, shard))

    def _documents(self, shard: int) -> Report:
        paths, counts = self._paths, shards.Counts()

        def own() -> Iterator[tuple[Document, dict[str, Any]]]:
            for document in documents.read_documents(
                    paths.shard_path(paths.inputs, "documents", shard)):
                self._progress.add(documents=1)
                yield document, documents.corpus_row(
                    document, augmentation.split(document, self._recipe))

        def rows() -> Iterator[dict[str, Any]]:
            for row in self._shard_augmenter.rows(shard, own(), self._admitted):
                counts.add(row["source"], row["text"], row["language"], row["split"])
                if any(step.startswith("augment:") for step in row["transforms"]):
                    counts.add_made(row["source"])
                yield row
            for failed in self._shard_augmenter.failed:
                counts.add_made(failed.origin.source)
            for dropped in self._shard_augmenter.dropped:
                counts.add_made(dropped["source"])

        report = shards.write_documents(paths, shard, rows(), documents.SCHEMA)
        return {**report, "sources": counts.by_source}


def run_finish(context: Context) -> None:
    """Runs the stage `finish`; `paths.output` is the corpus itself."""
    admitted = augmentation.admitted(context) if context.recipe.augment.enabled else (
        {source.name: frozenset() for source in context.recipe.sources})
    _each_shard(context, FinishShard(context.recipe, context.paths, admitted))


def run_report(context: Context) -> None:
    """Runs the stage `report`; `paths.output` is the corpus itself."""
    paths = context.paths
    scratch = FileSystems.join(paths.temporary, "work")
    files.make_folder(scratch)
    contents = make_report(context.corpus, paths.output, scratch, paths.progress, context.pipeline)
    write = WriteReport(paths.reports)
    for name, data in contents.items():
        path = FileSystems.join(paths.output, name)
        size, digest = files.write_atomically(path, paths.temporary, data)
        write.process(named(shards.file_report(paths, path, size, digest, 1)))
