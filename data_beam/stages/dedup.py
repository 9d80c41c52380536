"""Stage `dedup`: copies, whole or in part.

    exact      of documents with equal text one survives
    repeated   lines and paragraphs that stand in many documents stay in the first
    near       of documents that are similar one survives
    split      documents that are still similar get one key for their split
    apply      the shards are written without what was dropped

Each step is a Beam pipeline, or a few; the steps that are switched off are not run, and when the
first is the only one it is done together with the last. Hashes, ids and numbers are shuffled, texts
are not: each step reads them from the shards, as the steps before it left them.
"""

import dataclasses
import json
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems

from data_beam.config import RecipeConfig, SimHashConfig
from data_beam.dedup import clusters, exact, join, minhash, near_copies, repeated_text
from data_beam.dedup.near_copies import Search
from data_beam.dedup.repeated import CountOccurrences, FindRepeated
from data_beam.dedup.texts import Texts, read_decisions, shard_offsets
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
    """(shard, {"exact": [(id, decision)]}) -> reports, once the shard is written.

    Decisions that are not in the element are read from the files that the steps left.
    """

    def __init__(self, texts: Texts):
        self._texts = texts

    def setup(self) -> None:
        self._progress = WorkerProgress(self._texts.place.progress)
        self._remove = self._texts.remover()

    def process(self, element: tuple[int, dict[str, Iterable[Any]]]) -> Iterator[Report]:
        shard, groups = element
        place = self._texts.place
        same, near, splits = (read_decisions(place, step, shard)
                              for step in ("exact", "near", "split"))
        same.update(groups["exact"])

        def judge(document: Document) -> Document | Dropped:
            id = document.origin.id
            if id in same:
                return Dropped(document.origin, "dedup", "exact duplicate", same[id]["detail"])
            if not document.is_code:
                text, done = self._remove(document.text, document.origin.source, id)
                if done:
                    if not text.strip():
                        return Dropped(document.origin, "dedup", "repeated text", "; ".join(done))
                    document = document.with_text(text, *done)
            if id in near:
                if not near[id]["kept"]:
                    return Dropped(document.origin, "dedup", "near duplicate", near[id]["detail"])
                document = dataclasses.replace(document, cluster=near[id]["cluster"])
            if id in splits:
                document = dataclasses.replace(document, split_key=splits[id]["split_key"])
            return document

        yield from rewrite(place, shard, judge, self._progress)
        self._progress.flush()


def _exact(root: beam.Pipeline, recipe: RecipeConfig, place: Place, numbers: Any) -> Any:
    """(shard, (id, decision)) of the documents that have the text of another."""
    return (numbers
            | "Claim texts" >> beam.ParDo(Claims(recipe, place))
            | "Group by text hash" >> beam.GroupByKey()
            | "Keep first" >> beam.ParDo(exact.DropOthers())
            | "Dropped by shard" >> beam.Map(lambda dropped: (
                files.shard_of(dropped.origin.id, place.shards),
                (dropped.origin.id, {"detail": dropped.detail}))))


def run(context: Context) -> None:
    """Runs the stage."""
    settings, place = context.recipe.dedup, context.place
    texts = Texts(place, settings, tuple(source.name for source in context.recipe.sources))
    units = [unit for unit in repeated_text.UNITS if getattr(settings, unit).enabled]
    alone = not units and not settings.minhash.enabled

    if not alone:
        context.pipeline(lambda root: (
            _exact(root, context.recipe, place, shard_numbers(root, place.shards))
            | "Group by shard" >> beam.GroupByKey()
            | "Write decisions" >> beam.ParDo(clusters.WriteDecisions(place, "exact"))))
    for unit in units:
        context.pipeline(lambda root, unit=unit: (
            shard_numbers(root, place.shards)
            | "Occurrences" >> beam.ParDo(CountOccurrences(texts, unit))
            | "Group by part" >> beam.GroupByKey()
            | "Find repeated" >> beam.ParDo(FindRepeated(texts, unit))))
    if settings.minhash.enabled:
        _near_copies(context, texts)

    def apply(root: beam.Pipeline) -> None:
        numbers = shard_numbers(root, place.shards)
        decided = _exact(root, context.recipe, place, numbers) if alone else (
            root | "No decisions" >> beam.Create([], reshuffle=False))
        _ = ({"exact": decided,
              "shard": numbers | "Number as key" >> beam.Map(lambda shard: (shard, None))}
             | "Group by shard" >> beam.CoGroupByKey()
             | "Apply decisions" >> beam.ParDo(ApplyDecisions(texts))
             | "Name report" >> beam.Map(named)
             | "Write report" >> beam.ParDo(WriteReport(place.reports)))

    context.pipeline(apply)


def _near_copies(context: Context, texts: Texts) -> None:
    """Near copies, their clusters, and the keys of splits."""
    settings, place = context.recipe.dedup, context.place
    near = settings.minhash
    offsets = shard_offsets(place)
    bands, rows = (near.bands, near.rows) if near.bands else minhash.choose_bands(
        near.threshold, near.permutations)
    search = Search("copies", near.threshold, bands, rows, near, settings.simhash,
                    settings.hot_bucket, texts, offsets)
    found = _clusters(context, search)

    def keep(root: beam.Pipeline) -> None:
        kept = (root | "Files of clusters" >> beam.Create(found["files"])
                | "Keep one" >> beam.ParDo(clusters.KeepOne(search)).with_outputs(
                    "rows", main="decisions"))
        _ = (kept["decisions"] | "Group by shard" >> beam.GroupByKey()
             | "Write decisions" >> beam.ParDo(clusters.WriteDecisions(place, "near")))
        numbers = shard_numbers(root, place.shards)
        _ = ({"rows": kept["rows"],
              "shard": numbers | "Number as key" >> beam.Map(lambda shard: (shard, None))}
             | "Group rows" >> beam.CoGroupByKey()
             | "Write clusters" >> beam.ParDo(clusters.WriteClusters(place))
             | "Name report" >> beam.Map(named)
             | "Write report" >> beam.ParDo(WriteReport(place.reports)))

    context.pipeline(keep)
    how = {**found["counts"], "threshold": near.threshold, "bands": bands, "rows": rows,
           "candidate_probability_at_threshold": minhash.candidate_probability(
               near.threshold, bands, rows)}
    if near.split_similarity < 1:
        how["split"] = _split(context, texts, offsets)
    reports = [json.loads(files.read_bytes(entry.path))
               for entry in files.match(place.reports, "clusters.*.json")]
    report = clusters.write_summary(place, reports, how)
    files.write_atomically(
        FileSystems.join(place.reports, "clusters.summary.json"), place.temporary,
        lambda handle: handle.write(json.dumps(report).encode("utf-8")))


def _split(context: Context, texts: Texts, offsets: tuple[int, ...]) -> dict[str, Any]:
    """Groups of similar documents among those that are kept."""
    near = context.recipe.dedup.minhash
    bands, rows = minhash.choose_bands(near.split_similarity, near.permutations)
    search = Search("split_groups", near.split_similarity, bands, rows, near, SimHashConfig(),
                    context.recipe.dedup.hot_bucket, texts, offsets)
    found = _clusters(context, search)
    context.pipeline(lambda root: (
        root | "Files of groups" >> beam.Create(found["files"])
        | "Share split" >> beam.ParDo(clusters.ShareSplit(search))
        | "Group by shard" >> beam.GroupByKey()
        | "Write decisions" >> beam.ParDo(clusters.WriteDecisions(context.place, "split"))))
    return {**found["counts"], "similarity": near.split_similarity, "bands": bands, "rows": rows,
            "candidate_probability_at_similarity": minhash.candidate_probability(
                near.split_similarity, bands, rows)}


def _clusters(context: Context, search: Search) -> dict[str, Any]:
    """Runs a search and joins what it finds: files of clusters, and counts."""
    context.pipeline(lambda root: near_copies.build(root, search))
    counts = near_copies.counts(search)
    folder, edges = search.folder("clusters"), counts.pop("edges")
    if not edges:
        return {"files": [], "counts": counts}
    arguments = (context.pipeline, context.place, search.folder("edges"), folder)
    if edges <= context.recipe.dedup.max_edges_one_worker:
        join.one_worker(*arguments)
    else:
        join.in_rounds(*arguments, edges)
    return {"files": sorted(entry.path for entry in files.match(folder, "*")), "counts": counts}
