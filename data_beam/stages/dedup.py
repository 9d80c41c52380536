"""Stage `dedup`: copies, whole or in part.

    exact      of documents with equal text one is kept
    repeated   lines and paragraphs in many documents are kept only in the first; of documents with
               equal text without them one is kept
    near       documents that are similar to one that is kept are dropped
    split      documents that are still similar get one key for their split
    apply      the shards are written without the dropped documents

Steps that are switched off are skipped; when the first is the only one it is combined with the
last. Hashes, ids and numbers are shuffled, texts are not: each step reads them from the shards, as
the earlier steps left them.

A step reads the files of the steps before it and leaves its own. In one pipeline it starts when a
grouping under a single key has seen all output of the step before, which saves the start-up of
workers (seconds for each pipeline). In a pipeline of its own, the memory of a step is free again
before the next one, and the launching process can read its counts.
"""

import dataclasses
import functools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems

from data_beam.base import files
from data_beam.base.records import Document, Dropped
from data_beam.base.stage_context import Context, Report, StagePaths, WriteReport, named
from data_beam.config import RecipeConfig, SimHashConfig
from data_beam.dedup import clusters, components, near_copies
from data_beam.dedup.exact import find_equal, find_repeated
from data_beam.dedup.near_copies import Search
from data_beam.dedup.signatures import candidate_probability, choose_bands
from data_beam.dedup.texts import UNITS, Texts, read_decisions, shard_offsets, write_decisions
from data_beam.runners.progress import WorkerProgress
from data_beam.sinks.shards import rewrite

_SMALL = 200_000  # up to so many documents all steps are one pipeline, to save its start-up

Step = Callable[[Any], Any]  # from one element, when the step may start, to its last outputs


class _Then(beam.PTransform):
    """One element, once a step has done all of its work."""

    def __init__(self, step: Step):
        super().__init__()
        self._step = step

    def expand(self, start: Any) -> Any:  # type: ignore[override]
        done = self._step(start)
        return ((start, done)  # `done` alone may be empty
                | "Start and done" >> beam.Flatten()
                | "One key" >> beam.Map(lambda _: (None, None))
                | "All done" >> beam.GroupByKey()
                | "Once" >> beam.Map(lambda _: None))


def _run_steps(context: Context, steps: dict[str, Step], together: bool) -> None:
    """Runs steps by their names, one after the other, in one pipeline or in one each."""
    def build(root: beam.Pipeline, names: list[str]) -> None:
        start = root | "Start" >> beam.Create([None], reshuffle=False)
        for name in names:
            start = start | name >> _Then(steps[name])

    for names in [list(steps)] if together else [[name] for name in steps]:
        context.pipeline(lambda root, names=names: build(root, names))


class ApplyDecisions(beam.DoFn):
    """(shard, {"exact": [(id, decision)]}) -> reports, once the shard is written.

    Other decisions are read from the files that the steps left.
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
            if not document.is_fixed:
                text, done = remove(document.text, document.origin.source, id)
                if done:
                    if not text.strip():
                        return Dropped(document.origin, "dedup", "repeated text", "; ".join(done))
                    document = document.with_text(text, *done)
            if id in near:
                if not near[id]["kept"]:
                    return Dropped(document.origin, "dedup", "near duplicate", near[id]["detail"])
                document = dataclasses.replace(document, cluster=near[id]["cluster"])
            # A key of the second search covers what the first one linked.
            key = splits.get(id, near.get(id, {})).get("split_key")
            if key:
                document = dataclasses.replace(document, split_key=key)
            return document

        yield from rewrite(paths, shard, judge, self._progress)
        self._progress.flush()


def _with_numbers(start: Any, shards: int, **grouped: Any) -> Any:
    """(shard, {name: values}) for every shard, one with no values too."""
    return ({**grouped, "shard": start | "All shards" >> beam.FlatMap(
                lambda _: ((shard, None) for shard in range(shards)))}
            | "Group with numbers" >> beam.CoGroupByKey())


def _write_decisions(decided: Any, paths: StagePaths, step: str) -> Any:
    return (decided | "Group by shard" >> beam.GroupByKey()
            | "Write decisions" >> beam.Map(write_decisions, paths, step))


def _report(reports: Any, paths: StagePaths) -> Any:
    return (reports | "Name report" >> beam.Map(named)
            | "Write report" >> beam.ParDo(WriteReport(paths.reports)))


def _keep_one(start: Any, search: Search, after: Search | None) -> Any:
    paths = search.texts.paths
    kept = (components.component_files(start, search.folder("components"))
            | "Keep one" >> beam.FlatMap(clusters.keep_one, search, after).with_outputs(
                "rows", main="decisions"))
    written = (_with_numbers(start, paths.shards, rows=kept["rows"])
               | "Write clusters" >> beam.Map(clusters.write_clusters, paths))
    return ((_report(written, paths), _write_decisions(kept["decisions"], paths, "near"))
            | "Clusters and decisions" >> beam.Flatten())


def _share_split(start: Any, search: Search) -> Any:
    return _write_decisions(
        components.component_files(start, search.folder("components"))
        | "Share split" >> beam.FlatMap(clusters.share_split, search), search.texts.paths, "split")


def _units(recipe: RecipeConfig) -> list[str]:
    return [unit for unit in UNITS if getattr(recipe.dedup, unit).enabled]


def passes(recipe: RecipeConfig) -> int:
    """How many times the documents are read from first to last."""
    near = recipe.dedup.minhash
    searches = (1 + (near.split_similarity < 1)) if near.enabled else 0
    return 1 + len(_units(recipe)) + searches


def run(context: Context) -> None:
    settings, paths = context.recipe.dedup, context.paths
    texts = Texts(paths, settings, tuple(source.name for source in context.recipe.sources))
    units = _units(context.recipe)
    alone = not units and not settings.minhash.enabled
    searches = _searches(context, texts) if settings.minhash.enabled else []
    documents = searches[0].offsets[-1] if searches else 0
    # A search leaves at most an edge for each document and key.
    bound = documents * max((search.keys for search in searches), default=0)
    together = documents <= _SMALL and bound <= settings.max_edges_one_worker

    def exact(start: Any, step: str, cleaned: bool = False) -> Any:
        return _write_decisions(find_equal(start, texts, cleaned=cleaned), paths, step)

    def apply(start: Any) -> Any:
        decided = find_equal(start, texts) if alone else (
            start | "No decisions" >> beam.FlatMap(lambda _: []))
        return _report(_with_numbers(start, paths.shards, exact=decided)
                       | "Apply decisions" >> beam.ParDo(ApplyDecisions(texts)), paths)

    before: dict[str, Step] = {} if alone else {"Exact": functools.partial(exact, step="exact")}
    for unit in units:
        before[f"Repeated {unit}"] = functools.partial(find_repeated, texts=texts, unit=unit)
    if units:
        before["Exact again"] = functools.partial(exact, step="exact_again", cleaned=True)
    rounds: dict[str, int] = {}
    for search in searches:
        before[f"Find {search.name}"] = functools.partial(near_copies.find, search=search)
        if not together:
            _run_steps(context, before, together=False)
            before = {}
        edges = near_copies.counts(search)["edges"]  # none yet when together
        where = (paths, search.folder("edges"), search.folder("components"))
        if edges > settings.max_edges_one_worker:
            rounds[search.name] = components.in_rounds(context.pipeline, *where, edges)
        else:
            before[f"Join {search.name}"] = lambda start, where=where: (
                start | "Connect" >> beam.Map(components.by_one_worker, *where))
        before[f"Decide {search.name}"] = (
            functools.partial(_keep_one, search=search, after=searches[1] if searches[1:] else None)
            if search is searches[0] else functools.partial(_share_split, search=search))
    _run_steps(context, {**before, "Apply": apply}, together or alone)
    if searches:
        _summary(paths, searches, rounds)


def _searches(context: Context, texts: Texts) -> list[Search]:
    """The search for near copies, and that for documents that must share a split."""
    settings, near = context.recipe.dedup, context.recipe.dedup.minhash
    offsets = shard_offsets(context.paths)
    bands, rows = (near.bands, near.rows) if near.bands else choose_bands(
        near.threshold, near.permutations)
    result = [Search("copies", near.threshold, bands, rows, near, settings.simhash,
                     settings.hot_bucket, texts, offsets)]
    if near.split_similarity < 1:
        bands, rows = choose_bands(near.split_similarity, near.permutations)
        # Code may keep its copies, but in one split.
        with_code = dataclasses.replace(near, code=True, containment=0.0)
        result.append(Search("split_groups", near.split_similarity, bands, rows, with_code,
                             SimHashConfig(), settings.hot_bucket, texts, offsets))
    return result


def _summary(paths: StagePaths, searches: list[Search], rounds: dict[str, int]) -> None:
    """Writes how near copies were found (with rounds, if any), and how many, beside the
    clusters."""
    def how(search: Search) -> dict[str, Any]:
        found = near_copies.counts(search)
        del found["edges"]  # which pairs of a component are found depends on the parts
        return {**found, "similarity": search.threshold, "bands": search.bands,
                "rows": search.rows, "candidate_probability": candidate_probability(
                    search.threshold, search.bands, search.rows),
                **({"rounds": rounds[search.name]} if search.name in rounds else {})}

    reports = [json.loads(files.read_bytes(entry.path))
               for entry in files.match(paths.reports, "clusters.*.json")]
    report = clusters.write_summary(paths, reports, {s.name: how(s) for s in searches})
    files.write_atomically(FileSystems.join(paths.reports, "clusters._summary.json"),
                           paths.temporary, json.dumps(report).encode("utf-8"))
