"""Stage `filter`: the filters that judge one document at a time."""

import dataclasses
from collections.abc import Iterator

import apache_beam as beam

from data_beam.base.records import DeadLetter, Document, Dropped
from data_beam.base.stage_context import (
    Context,
    Report,
    StagePaths,
    WriteReport,
    named,
    shard_numbers,
)
from data_beam.config import RecipeConfig
from data_beam.filters.chain import judge, make_filters
from data_beam.privacy.filter import PrivacyFilter
from data_beam.runners.progress import WorkerProgress
from data_beam.sinks.shards import rewrite


class FilterShard(beam.DoFn):
    """Shard number -> reports on its files, once they are written."""

    def __init__(self, recipe: RecipeConfig, paths: StagePaths):
        self._recipe, self._paths = recipe, paths

    def setup(self) -> None:
        self._filters = make_filters(self._recipe)
        privacy = self._recipe.privacy
        # A document may be dropped before the filter that would have replaced its personal data.
        self._privacy = PrivacyFilter(privacy) if privacy.enabled else None
        self._progress = WorkerProgress(self._paths.progress)

    def process(self, shard: int) -> Iterator[Report]:
        yield from rewrite(self._paths, shard, self._judge, self._progress,
                           self._privacy.masked if self._privacy else str)
        self._progress.flush()

    def _judge(self, document: Document) -> Document | Dropped | DeadLetter:
        *_, (_, outcome) = judge(document, self._filters)
        if isinstance(outcome, Document) or self._privacy is None:
            return outcome
        return dataclasses.replace(
            outcome, detail=self._privacy.masked_quote(outcome.detail, document.text))


def run(context: Context) -> None:
    """Runs the stage."""
    def build(root: beam.Pipeline) -> None:
        _ = (shard_numbers(root, context.paths.order)
             | "Filter shard" >> beam.ParDo(FilterShard(context.recipe, context.paths))
             | "Name report" >> beam.Map(named)
             | "Write report" >> beam.ParDo(WriteReport(context.paths.reports)))

    context.pipeline(build)
