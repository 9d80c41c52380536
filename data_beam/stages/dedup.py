"""Stage `dedup`: of documents with equal text one survives.

    shards -> (hash, claim) -> group -> documents to drop, by shard -> shards without them

Hashes and ids are shuffled, texts are not.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam

from data_beam.config import RecipeConfig
from data_beam.dedup import exact
from data_beam.progress import WorkerProgress
from data_beam.records import Document, Dropped, Origin
from data_beam.sinks import documents, files
from data_beam.stages.context import Context, Place, Report, WriteReport, named, shard_numbers
from data_beam.stages.shards import rewrite


class Claims(beam.DoFn):
    """Shard number -> (hash of the text, claim) of its documents."""

    def __init__(self, recipe: RecipeConfig, place: Place):
        self._place = place
        self._indices = {source.name: i for i, source in enumerate(recipe.sources)}

    def process(self, shard: int) -> Iterator[tuple[str, exact.Claim]]:
        path = self._place.shard_path(self._place.inputs, "documents", shard)
        for row in documents.read_rows(path, documents.STAGE_SCHEMA,
                                       ["source", "path", "record", "sha256"]):
            origin = Origin(row["source"], row["path"], row["record"])
            yield row["sha256"], exact.claim(origin, self._indices[origin.source])


class ApplyDecisions(beam.DoFn):
    """(shard, {"dropped": [(id, stage, reason, detail)]}) -> reports, once the shard is written."""

    def __init__(self, place: Place):
        self._place = place

    def setup(self) -> None:
        self._progress = WorkerProgress(self._place.progress)

    def process(self, element: tuple[int, dict[str, Iterable[Any]]]) -> Iterator[Report]:
        shard, groups = element
        dropped = {id: end for id, *end in groups["dropped"]}

        def judge(document: Document) -> Document | Dropped:
            end = dropped.get(document.origin.id)
            return document if end is None else Dropped(document.origin, *end)

        yield from rewrite(self._place, shard, judge, self._progress)
        self._progress.flush()


def run(context: Context) -> None:
    """Runs the stage."""
    place = context.place

    def build(root: beam.Pipeline) -> None:
        numbers = shard_numbers(root, place.shards)
        dropped = (numbers
                   | "Claim texts" >> beam.ParDo(Claims(context.recipe, place))
                   | "Group by text hash" >> beam.GroupByKey()
                   | "Keep first" >> beam.ParDo(exact.DropOthers())
                   | "Dropped by shard" >> beam.Map(lambda dropped: (
                       files.shard_of(dropped.origin.id, place.shards),
                       (dropped.origin.id, dropped.stage, dropped.reason, dropped.detail))))
        _ = ({"dropped": dropped,
              "shard": numbers | "Number as key" >> beam.Map(lambda shard: (shard, None))}
             | "Group by shard" >> beam.CoGroupByKey()
             | "Apply decisions" >> beam.ParDo(ApplyDecisions(place))
             | "Name report" >> beam.Map(named)
             | "Write report" >> beam.ParDo(WriteReport(place.reports)))

    context.pipeline(build)
