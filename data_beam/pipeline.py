"""The Beam pipeline of `prepare`.

    listing -> files -> read, extract, clean, judge
                          |-> documents -> parts by shard -------------.
                          |       `-> (hash, claim) -> dedup -> ids ---+-> documents/
                          |                              `-> dropped --.
                          |-> dropped ---------------------------------+-> dropped/
                          |-> dead letters ------------------------------> dead_letters/
                          `-> files and documents read, by source -------> manifest.json

Paths, ids, hashes and counts are shuffled, texts are not.
"""

import dataclasses
import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.pvalue import TaggedOutput

from data_beam.config import RecipeConfig
from data_beam.dedup import exact
from data_beam.process import process
from data_beam.readers.listing import File
from data_beam.readers.records import read_file
from data_beam.records import DeadLetter, Document, Dropped, Record
from data_beam.rules import judge, make_rules
from data_beam.sinks import documents, files, leftovers

_PROGRESS_SECONDS = 0.5


def write_listing(path: str, listing: list[File]) -> None:
    """The files to read, one JSON array a line: a graph stays small however many there are."""
    with FileSystems.create(path) as handle:
        for file in listing:
            handle.write((json.dumps(dataclasses.astuple(file)) + "\n").encode("utf-8"))


def _read_listing(path: str) -> Iterator[list[Any]]:
    for line in files.read_bytes(path).splitlines():
        yield json.loads(line)


class ReadAndProcess(beam.DoFn):
    """A file -> its documents; outputs `dropped`, `dead_letters`, `claims` and `read` beside it.

    Args:
      recipe: the whole recipe.
      progress: local folder where each worker keeps a small file with what it has done, or "".
    """

    def __init__(self, recipe: RecipeConfig, progress: str):
        self._recipe, self._progress = recipe, progress
        self._indices = {source.name: i for i, source in enumerate(recipe.sources)}

    def setup(self) -> None:
        self._rules = make_rules(self._recipe)
        self._name = f"{uuid.uuid4().hex}.json"
        self._done = {"files": 0, "bytes": 0, "documents": 0}
        self._reported = 0.0

    def process(self, element: list[Any]) -> Iterator[Any]:
        file = File(*element)
        index = self._indices[file.source]
        count = 0
        before = self._done["bytes"]

        def at(position: float) -> None:
            self._done["bytes"] = before + int(position)
            self._report()

        for item in read_file(file, self._recipe.sources[index],
                              self._recipe.limits.max_record_bytes, at):
            count += 1
            self._done["documents"] += 1
            outcome = process(item, self._recipe) if isinstance(item, Record) else item
            if isinstance(outcome, Document):
                for _, judged in judge(outcome, self._rules):
                    outcome = judged
            if isinstance(outcome, Document):
                yield TaggedOutput("claims", exact.claim(outcome, index))
                yield outcome
            elif isinstance(outcome, Dropped):
                yield TaggedOutput("dropped", outcome)
            else:
                assert isinstance(outcome, DeadLetter)
                yield TaggedOutput("dead_letters", outcome)
            self._report()
        self._done["files"] += 1
        at(file.size)
        yield TaggedOutput("read", (file.source, (1, count)))

    def finish_bundle(self) -> None:
        self._reported = 0.0
        self._report()

    def _report(self) -> None:
        now = time.monotonic()
        if self._progress and now - self._reported > _PROGRESS_SECONDS:
            self._reported = now
            data = json.dumps(self._done).encode("ascii")
            files.write_atomically(FileSystems.join(self._progress, self._name), self._progress,
                                   lambda handle: handle.write(data))


class _WriteReport(beam.DoFn):
    """(name, report) -> a JSON file in the temporary folder, for the command to read at the end."""

    def __init__(self, folder: str):
        self._folder = folder

    def process(self, element: tuple[str, Any]) -> None:
        name, report = element
        data = json.dumps(report, sort_keys=True).encode("utf-8")
        files.write_atomically(FileSystems.join(self._folder, f"{name}.json"), self._folder,
                               lambda handle: handle.write(data))


def build(root: beam.Pipeline, recipe: RecipeConfig, listing: str, output: str, temporary: str,
          progress: str) -> None:
    """Adds the transforms of `prepare`.

    Args:
      root: an empty pipeline.
      recipe: what to do.
      listing: file written by `write_listing`.
      output: the corpus folder; shards appear in its sub-folders.
      temporary: existing folder on the same file system; reports land in its `reports`.
      progress: existing local folder for workers' progress, or "" when they are elsewhere.
    """
    shards = recipe.shards
    reports = FileSystems.join(temporary, "reports")
    # Every shard is written, an empty one too: the set of files depends on the recipe alone.
    numbers = (root | "Shard numbers" >> beam.Create(range(shards), reshuffle=False)
               | "Number as key" >> beam.Map(lambda shard: (shard, None)))

    read = (root
            | "Listing path" >> beam.Create([listing], reshuffle=False)
            | "Read listing" >> beam.FlatMap(_read_listing)
            | "Spread files" >> beam.Reshuffle()
            | "Read and process" >> beam.ParDo(ReadAndProcess(recipe, progress)).with_outputs(
                "claims", "dropped", "dead_letters", "read", main="documents"))

    parts = read["documents"] | "Stage parts" >> beam.ParDo(
        documents.StageParts(temporary, recipe.split, shards))

    decided = (read["claims"]
               | "Group by text hash" >> beam.GroupByKey()
               | "Keep first" >> beam.ParDo(exact.KeepFirst()).with_outputs("dropped", main="kept"))
    kept = decided["kept"] | "Kept id by shard" >> beam.Map(
        lambda document_id: (files.shard_of(document_id, shards), document_id))

    written = ({"parts": parts, "kept": kept, "shard": numbers}
               | "Group documents" >> beam.CoGroupByKey()
               | "Write documents" >> beam.ParDo(
                   documents.WriteDocuments(output, temporary, shards))
               | "Report documents" >> beam.Map(
                   lambda report: (report["file"].replace("/", "."), report)))

    def leftover_shards(kind: str, rows: Any) -> Any:
        return ({"rows": rows | f"Row by shard: {kind}" >> beam.Map(
                    lambda leftover: (files.shard_of(leftover.origin.id, shards),
                                      leftovers.row(leftover))),
                 "shard": numbers}
                | f"Group {kind}" >> beam.CoGroupByKey()
                | f"Write {kind}" >> beam.ParDo(
                    leftovers.WriteLeftovers(kind, output, temporary, shards))
                | f"Report {kind}" >> beam.Map(
                    lambda report: (report["file"].replace("/", "."), report)))

    dropped = leftover_shards("dropped", (read["dropped"], decided["dropped"])
                              | "All dropped" >> beam.Flatten())
    dead_letters = leftover_shards("dead_letters", read["dead_letters"])
    counted = (read["read"]
               | "Count read" >> beam.CombinePerKey(beam.combiners.TupleCombineFn(sum, sum))
               | "Report read" >> beam.Map(lambda entry: (
                   f"read.{entry[0]}",
                   {"source": entry[0], "files": entry[1][0], "read": entry[1][1]})))
    _ = ((written, dropped, dead_letters, counted)
         | "All reports" >> beam.Flatten()
         | "Write reports" >> beam.ParDo(_WriteReport(reports)))
