"""Stage `extract`: files -> records -> text without markup, repaired.

    listing -> files -> read, extract, clean
                          |-> documents -> parts by shard -> documents/
                          |-> dropped ---------------------> dropped/
                          |-> dead letters ----------------> dead_letters/
                          `-> files and documents read, by source

Paths, ids and counts are shuffled, texts are not: workers write clean documents to part files by
shard, and only the names of the parts are shuffled. Then each shard is read from its parts, sorted
by id and written.
"""

import dataclasses
import io
import json
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet
from apache_beam.io.filesystems import FileSystems
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindows

from data_beam.base import files, json_files
from data_beam.base.records import Document, Dropped, Record
from data_beam.base.stage_context import Context, Report, StagePaths, WriteReport, named
from data_beam.config import RecipeConfig
from data_beam.extract.document import process
from data_beam.readers.listing import File
from data_beam.readers.read_file import read_file
from data_beam.runners.progress import WorkerProgress
from data_beam.sinks import documents
from data_beam.sinks.shards import Counts, Samples, rejected_row, write_documents, write_rejected
from data_beam.stages import stage_manifest
from maxlm.config.schema import ConfigError

_PART_CHARACTERS = 32 * 2**20


def write_listing(path: str, listing: list[File]) -> None:
    """Writes the files to read, a JSON array a line, so that the size of the pipeline's graph does
    not depend on their number."""
    with FileSystems.create(path) as handle:
        for file in listing:
            handle.write((json.dumps(dataclasses.astuple(file)) + "\n").encode("utf-8"))


class ReadAndProcess(beam.DoFn):
    """A line of the listing -> the file's documents, with the outputs `dropped`, `dead_letters` and
    `read` beside. Each worker keeps a small file with its counts in the local folder `progress`, if
    it is not ""."""

    def __init__(self, recipe: RecipeConfig, progress: str):
        self._recipe, self._folder = recipe, progress
        self._sources = {source.name: source for source in recipe.sources}

    def setup(self) -> None:
        self._progress = WorkerProgress(self._folder)

    def process(self, element: str) -> Iterator[Any]:
        file = File(*json.loads(element))
        count = bytes_read = 0

        def at(position: float) -> None:
            nonlocal bytes_read
            self._progress.add(bytes=max(0, int(position) - bytes_read))
            bytes_read = max(bytes_read, int(position))

        for item in read_file(file, self._sources[file.source],
                              self._recipe.limits.max_record_bytes, at):
            count += 1
            self._progress.add(documents=1)
            outcome = process(item, self._recipe) if isinstance(item, Record) else item
            if isinstance(outcome, Document):
                yield outcome
            else:
                yield TaggedOutput(
                    "dropped" if isinstance(outcome, Dropped) else "dead_letters", outcome)
        at(file.size)
        self._progress.add(files=1)
        yield TaggedOutput("read", (file.source, (1, count)))

    def finish_bundle(self) -> None:
        self._progress.flush()


class StageParts(beam.DoFn):
    """Documents -> (shard, part file). A bundle that is retried writes new parts; the parts of the
    failed attempt are not used."""

    def __init__(self, paths: StagePaths):
        self._folder = FileSystems.join(paths.temporary, "parts")
        self._shards = paths.shards

    def setup(self) -> None:
        files.make_folder(self._folder)

    def start_bundle(self) -> None:
        self._rows: dict[int, list[dict[str, Any]]] = {}
        self._size = 0

    def process(self, document: Document) -> Iterator[tuple[int, str]]:
        shard = files.shard_of(document.origin.id, self._shards)
        self._rows.setdefault(shard, []).append(documents.stage_row(document))
        self._size += len(document.text)
        if self._size > _PART_CHARACTERS:
            yield from self._flush()

    def finish_bundle(self) -> Iterator[Any]:
        return map(GlobalWindows.windowed_value_at_end_of_window, self._flush())

    def _flush(self) -> Iterator[tuple[int, str]]:
        for shard, rows in sorted(self._rows.items()):
            path = FileSystems.join(self._folder, f"{shard:05d}-{uuid.uuid4().hex}.parquet")
            with files.create_raw(path) as handle:
                documents.write_table(handle, pa.Table.from_pylist(rows, documents.STAGE_SCHEMA))
            yield shard, path
        self._rows, self._size = {}, 0


def _write_shard(element: tuple[int, dict[str, Iterable[Any]]], paths: StagePaths
                 ) -> Iterator[Report]:
    """(shard, {"parts": paths, "dropped": rows, "dead_letters": rows}) -> reports on the files of
    the shard, which it writes."""
    shard, groups = element
    schema = documents.STAGE_SCHEMA
    table = pa.concat_tables([schema.empty_table(), *(
        pyarrow.parquet.read_table(io.BytesIO(files.read_bytes(path)), schema=schema)
        for path in groups["parts"])]).sort_by("id")
    counts = Counts()

    def rows() -> Iterator[dict[str, Any]]:
        for batch in table.to_batches(documents.ROW_GROUP_ROWS):
            for row in batch.to_pylist():
                counts.add(row["source"], row["text"], row["language"])
                yield row

    yield {**write_documents(paths, shard, rows(), schema), "sources": counts.by_source}
    for kind in ("dropped", "dead_letters"):
        yield write_rejected(paths, kind, shard, groups[kind])
    yield Samples().write(paths, shard)


def run(context: Context) -> None:
    """Runs the stage; `paths.inputs` is the listing."""
    context.pipeline(lambda root: _build(root, context.recipe, context.paths))


def _build(root: beam.Pipeline, recipe: RecipeConfig, paths: StagePaths) -> None:
    shards = paths.shards
    # Every shard is written, an empty one too: the set of files depends on the recipe alone.
    numbers = (root | "Shard numbers" >> beam.Create(range(shards), reshuffle=False)
               | "Number as key" >> beam.Map(lambda shard: (shard, None)))
    # Lines of the listing are ASCII: Beam cannot encode file names that are not valid UTF-8.
    read = (root
            | "Listing path" >> beam.Create([paths.inputs], reshuffle=False)
            | "Read listing" >> beam.FlatMap(
                lambda path: files.read_bytes(path).decode("ascii").splitlines())
            | "Spread files" >> beam.Reshuffle()
            | "Read and process" >> beam.ParDo(
                ReadAndProcess(recipe, paths.progress)).with_outputs(
                    "dropped", "dead_letters", "read", main="documents"))
    parts = read["documents"] | "Stage parts" >> beam.ParDo(StageParts(paths))

    def by_shard(kind: str) -> Any:
        return read[kind] | f"Row by shard: {kind}" >> beam.Map(
            lambda each: (files.shard_of(each.origin.id, shards), rejected_row(each)))

    written = ({"parts": parts, "dropped": by_shard("dropped"),
                "dead_letters": by_shard("dead_letters"), "shard": numbers}
               | "Group by shard" >> beam.CoGroupByKey()
               | "Write shard" >> beam.FlatMap(_write_shard, paths)
               | "Name report" >> beam.Map(named))
    counted = (read["read"]
               | "Count read" >> beam.CombinePerKey(beam.combiners.TupleCombineFn(sum, sum))
               | "Report read" >> beam.Map(lambda entry: (
                   f"read.{entry[0]}",
                   {"source": entry[0], "files": entry[1][0], "read": entry[1][1]})))
    _ = ((written, counted)
         | "All reports" >> beam.Flatten()
         | "Write reports" >> beam.ParDo(WriteReport(paths.reports)))


def check_sources(recipe: RecipeConfig, paths: StagePaths, reports: Iterable[Report]) -> None:
    """Raises ConfigError for a source of which every record is a dead letter, or an empty file, and
    whose `allow_unreadable` is off."""
    read, letters, empty = Counter(), Counter(), Counter()
    for report in reports:
        if "file" not in report:
            read[report["source"]] += report["read"]
            continue
        kind = report["file"].partition("/")[0]
        for name, counts in report.get("sources", {}).items():
            if kind == "dead_letters":
                letters[name] += stage_manifest.total(counts)
            elif kind == "dropped":
                empty[name] += counts.get("read", {}).get("empty file", 0)
    for index, source in enumerate(recipe.sources):
        name = source.name
        if source.allow_unreadable or not letters[name] or (
                letters[name] + empty[name] < read[name]):
            continue
        letters_of = (letter for shard in range(paths.shards) for letter in json_files.read_lines(
            paths.shard_path(paths.output, "dead_letters", shard)) if letter["source"] == name)
        first = min(letters_of, key=lambda letter: (letter["path"], letter["record"] or 0))
        record = "" if first["record"] is None else f", record {first['record']}"
        raise ConfigError(
            f"sources[{index}] {name!r}: none of its {read[name]:,} records can be read, for "
            f"example {first['path']}{record}: {first['reason']} ({first['detail']}); correct its "
            "inputs, or set its allow_unreadable to go on without it")
