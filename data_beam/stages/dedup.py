"""Stage `dedup`: copies, whole or in part.

    exact      of documents with equal text one survives
    repeated   lines and paragraphs that stand in many documents stay in the first; of documents
               with equal text without them one survives
    near       of documents that are similar one survives
    split      documents that are still similar get one key for their split
    apply      the shards are written without what was dropped

Steps that are switched off are not run; when the first is the only one it is done together with the
last. Hashes, ids and numbers are shuffled, texts are not: each step reads them from the shards, as
the steps before it left them.
"""

import dataclasses
import functools
import json
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems

from data_beam.base import files
from data_beam.base.records import Document, Dropped, Origin, text_sha256
from data_beam.base.stage_context import Context, Report, StagePaths, WriteReport, named
from data_beam.config import RecipeConfig, SimHashConfig
from data_beam.dedup import clusters, exact, join, minhash, near_copies, repeated_text, steps
from data_beam.dedup.near_copies import Search
from data_beam.dedup.repeated import CountOccurrences, FindRepeated
from data_beam.dedup.steps import Step, shard_numbers
from data_beam.dedup.texts import Texts, read_decisions, shard_offsets
from data_beam.runners.progress import WorkerProgress
from data_beam.sinks import documents
from data_beam.sinks.shards import rewrite

_SMALL = 200_000
"""Up to so many documents all steps are one pipeline: its start-up counts more than memory."""


class Claims(beam.DoFn):
    """Shard number -> (hash of the text, claim) of its documents."""

    def __init__(self, recipe: RecipeConfig, paths: StagePaths):
        self._paths = paths
        self._indices = {source.name: i for i, source in enumerate(recipe.sources)}

    def process(self, shard: int) -> Iterator[tuple[str, exact.Claim]]:
        path = self._paths.shard_path(self._paths.inputs, "documents", shard)
        for row in documents.read_rows(path, documents.STAGE_SCHEMA,
                                       ["source", "path", "record", "sha256"]):
            origin = Origin(row["source"], row["path"], row["record"])
            yield row["sha256"], exact.claim(origin, self._indices[origin.source])


class ClaimsAgain(beam.DoFn):
    """Shard number -> (hash of the text, claim) of its documents without what is repeated."""

    def __init__(self, texts: Texts):
        self._texts = texts

    def process(self, shard: int) -> Iterator[tuple[str, exact.Claim]]:
        sources = self._texts.sources
        for _, row in self._texts.read(shard):
            origin = Origin(row["source"], row["path"], row["record"])
            yield text_sha256(row["text"]), exact.claim(origin, sources.index(origin.source))


class ApplyDecisions(beam.DoFn):
    """(shard, {"exact": [(id, decision)]}) -> reports, once the shard is written.

    Decisions that are not in the element are read from the files that the steps left.
    """

    def __init__(self, texts: Texts):
        self._texts = texts

    def setup(self) -> None:
        self._progress = WorkerProgress(self._texts.paths.progress)

    def process(self, element: tuple[int, dict[str, Iterable[Any]]]) -> Iterator[Report]:
        shard, groups = element
        paths = self._texts.paths
        same, again, near, splits = (read_decisions(paths, step, shard)
                                     for step in ("exact", "exact_again", "near", "split"))
        same.update(again)
        same.update(groups["exact"])
        remove = self._texts.remover()  # not in setup: a runner may call that early

        def judge(document: Document) -> Document | Dropped:
            id = document.origin.id
            if id in same:
                return Dropped(document.origin, "dedup", "exact duplicate", same[id]["detail"])
            if not document.is_code:
                text, done = remove(document.text, document.origin.source, id)
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

        yield from rewrite(paths, shard, judge, self._progress)
        self._progress.flush()


def _with_numbers(start: Any, shards: int, **grouped: Any) -> Any:
    """(shard, {name: values}) for every shard, one with no values too."""
    return ({**grouped, "shard": start | "All shards" >> beam.FlatMap(
                lambda _: ((shard, None) for shard in range(shards)))}
            | "Group with numbers" >> beam.CoGroupByKey())


def _exact(start: Any, paths: StagePaths, claims: beam.DoFn) -> Any:
    """(shard, (id, decision)) of the documents that have the text of another."""
    return (shard_numbers(start, paths.order)
            | "Claim texts" >> beam.ParDo(claims)
            | "Group by text hash" >> beam.GroupByKey()
            | "Keep first" >> beam.ParDo(exact.DropOthers())
            | "Dropped by shard" >> beam.Map(lambda dropped: (
                files.shard_of(dropped.origin.id, paths.shards),
                (dropped.origin.id, {"detail": dropped.detail}))))


def _write_decisions(decided: Any, paths: StagePaths, step: str) -> Any:
    return (decided | "Group by shard" >> beam.GroupByKey()
            | "Write decisions" >> beam.ParDo(clusters.WriteDecisions(paths, step)))


def _report(reports: Any, paths: StagePaths) -> Any:
    return (reports | "Name report" >> beam.Map(named)
            | "Write report" >> beam.ParDo(WriteReport(paths.reports)))


def _repeated(start: Any, texts: Texts, unit: str) -> Any:
    return (shard_numbers(start, texts.paths.order)
            | "Occurrences" >> beam.ParDo(CountOccurrences(texts, unit))
            | "Group by part" >> beam.GroupByKey()
            | "Find repeated" >> beam.ParDo(FindRepeated(texts, unit)))


def _keep_one(start: Any, search: Search) -> Any:
    paths = search.texts.paths
    kept = (join.cluster_files(start, search.folder("clusters"))
            | "Keep one" >> beam.ParDo(clusters.KeepOne(search)).with_outputs(
                "rows", main="decisions"))
    written = (_with_numbers(start, paths.shards, rows=kept["rows"])
               | "Write clusters" >> beam.ParDo(clusters.WriteClusters(paths)))
    return ((_report(written, paths), _write_decisions(kept["decisions"], paths, "near"))
            | "Clusters and decisions" >> beam.Flatten())


def _share_split(start: Any, search: Search) -> Any:
    return _write_decisions(
        join.cluster_files(start, search.folder("clusters"))
        | "Share split" >> beam.ParDo(clusters.ShareSplit(search)), search.texts.paths, "split")


def _units(recipe: RecipeConfig) -> list[str]:
    return [unit for unit in repeated_text.UNITS if getattr(recipe.dedup, unit).enabled]


def passes(recipe: RecipeConfig) -> int:
    """How many times the documents are read from first to last."""
    near = recipe.dedup.minhash
    searches = (1 + (near.split_similarity < 1)) if near.enabled else 0
    return 1 + len(_units(recipe)) + searches


def run(context: Context) -> None:
    """Runs the stage."""
    settings, paths = context.recipe.dedup, context.paths
    texts = Texts(paths, settings, tuple(source.name for source in context.recipe.sources))
    units = _units(context.recipe)
    alone = not units and not settings.minhash.enabled
    searches = _searches(context, texts) if settings.minhash.enabled else []
    documents = searches[0].offsets[-1] if searches else 0
    # A search leaves at most an edge for each document and band.
    bound = documents * max((search.keys for search in searches), default=0)
    together = documents <= _SMALL and bound <= settings.max_edges_one_worker

    claims = Claims(context.recipe, paths)

    def exact_alone(start: Any) -> Any:
        return _write_decisions(_exact(start, paths, claims), paths, "exact")

    def exact_again(start: Any) -> Any:
        return _write_decisions(_exact(start, paths, ClaimsAgain(texts)), paths, "exact_again")

    def apply(start: Any) -> Any:
        decided = _exact(start, paths, claims) if alone else (
            start | "No decisions" >> beam.FlatMap(lambda _: []))
        return _report(_with_numbers(start, paths.shards, exact=decided)
                       | "Apply decisions" >> beam.ParDo(ApplyDecisions(texts)), paths)

    before: dict[str, Step] = {} if alone else {"Exact": exact_alone}
    for unit in units:
        before[f"Repeated {unit}"] = functools.partial(_repeated, texts=texts, unit=unit)
    if units:
        before["Exact again"] = exact_again
    rounds: dict[str, int] = {}
    last = {"copies": _keep_one, "split_groups": _share_split}
    for search in searches:
        before[f"Find {search.name}"] = functools.partial(near_copies.find, search=search)
        if not together:
            steps.run(context, before, together=False)
            before = {}
        edges = near_copies.counts(search)["edges"]  # none yet when together
        where = (paths, search.folder("edges"), search.folder("clusters"))
        if edges > settings.max_edges_one_worker:
            rounds[search.name] = join.in_rounds(context.pipeline, *where, edges)
        else:
            before[f"Join {search.name}"] = functools.partial(_join, where=where)
        before[f"Decide {search.name}"] = functools.partial(last[search.name], search=search)
    steps.run(context, {**before, "Apply": apply}, together or alone)
    if searches:
        _summary(paths, searches, rounds)


def _join(start: Any, where: tuple[StagePaths, str, str]) -> Any:
    return start | "Connect" >> beam.ParDo(join.OneWorker(*where))


def _searches(context: Context, texts: Texts) -> list[Search]:
    """The search for near copies, and that for documents that are to share a split."""
    settings, near = context.recipe.dedup, context.recipe.dedup.minhash
    offsets = shard_offsets(context.paths)
    bands, rows = (near.bands, near.rows) if near.bands else minhash.choose_bands(
        near.threshold, near.permutations)
    result = [Search("copies", near.threshold, bands, rows, near, settings.simhash,
                     settings.hot_bucket, texts, offsets)]
    if near.split_similarity < 1:
        bands, rows = minhash.choose_bands(near.split_similarity, near.permutations)
        with_code = dataclasses.replace(near, code=True)  # it may keep its copies, in one split
        result.append(Search("split_groups", near.split_similarity, bands, rows, with_code,
                             SimHashConfig(), settings.hot_bucket, texts, offsets))
    return result


def _summary(paths: StagePaths, searches: list[Search], rounds: dict[str, int]) -> None:
    """Writes how near copies were found, and how many, beside the clusters.

    Args:
      paths: of the stage.
      searches: all of them.
      rounds: by search, of those that were joined in rounds.
    """
    def how(search: Search) -> dict[str, Any]:
        found = near_copies.counts(search)
        del found["edges"]  # which of the pairs of a cluster are found depends on the parts
        return {**found, "similarity": search.threshold, "bands": search.bands,
                "rows": search.rows, "candidate_probability": minhash.candidate_probability(
                    search.threshold, search.bands, search.rows),
                **({"rounds": rounds[search.name]} if search.name in rounds else {})}

    reports = [json.loads(files.read_bytes(entry.path))
               for entry in files.match(paths.reports, "clusters.*.json")]
    report = clusters.write_summary(paths, reports, {s.name: how(s) for s in searches})
    files.write_atomically(
        FileSystems.join(paths.reports, "clusters._summary.json"), paths.temporary,
        lambda handle: handle.write(json.dumps(report).encode("utf-8")))
