"""The shards that a stage writes: documents kept, dropped documents, dead letters and samples.

`rewrite` judges the documents of a shard; each is kept, dropped or a dead letter, and is counted.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from apache_beam.io.filesystems import FileSystems

from data_beam.base import files
from data_beam.base.records import DeadLetter, Document, Dropped
from data_beam.base.stage_context import KINDS, Report, StagePaths
from data_beam.runners.progress import WorkerProgress
from data_beam.sinks import documents
from maxlm.data import corpus

DROPPED_SCHEMA = documents.string_schema(corpus.DROPPED_COLUMNS)

SAMPLES = 5  # dropped documents whose text is kept for the report: by shard, stage and reason
_SAMPLE_CHARACTERS = 4000

Judge = Callable[[Document], Document | Dropped | DeadLetter]


def rewrite(paths: StagePaths, shard: int, judge: Judge, progress: WorkerProgress,
            shown: Callable[[str], str] = str) -> Iterator[Report]:
    """Judges the documents of a shard of the stage before, and writes that shard of this stage.
    Yields a report on each file written.

    `judge` makes of a document the one to keep, changed or not, or why it is not kept; it is called
    in the order of ids. `shown` makes of a text the form in which a sample shows it.
    """
    not_kept: dict[type, list[dict[str, Any]]] = {Dropped: [], DeadLetter: []}
    samples = Samples(shown)
    read: Counter[str] = Counter()
    counts = Counts()

    def kept() -> Iterator[dict[str, Any]]:
        for document in documents.read_documents(
                paths.shard_path(paths.inputs, "documents", shard)):
            read[document.origin.source] += 1
            outcome = judge(document)
            progress.add(documents=1)
            if isinstance(outcome, Document):
                counts.add(outcome.origin.source, outcome.text, outcome.language)
                yield documents.stage_row(outcome)
            else:
                not_kept[type(outcome)].append(rejected_row(outcome))
                if isinstance(outcome, Dropped):
                    samples.add(outcome, document.text)

    yield {**write_documents(paths, shard, kept(), documents.STAGE_SCHEMA),
           "sources": counts.by_source, "read": read}
    yield write_rejected(paths, "dropped", shard, not_kept[Dropped])
    yield write_rejected(paths, "dead_letters", shard, not_kept[DeadLetter])
    yield samples.write(paths, shard)


def write_documents(paths: StagePaths, shard: int, rows: Iterable[dict[str, Any]],
                    schema: pa.Schema) -> Report:
    """Writes a shard of documents from rows that come one by one, in final order."""
    path = paths.shard_path(paths.output, "documents", shard)
    files.make_folder(FileSystems.join(paths.output, "documents"))
    size, digest, number = documents.write_rows(path, paths.temporary, rows, schema)
    return file_report(paths, path, size, digest, number)


def file_report(paths: StagePaths, path: str, size: int, digest: str, rows: int) -> Report:
    """The entry of a file in a manifest."""
    return {"file": path[len(paths.output.rstrip("/")) + 1:], "bytes": size, "sha256": digest,
            "rows": rows}


def rejected_row(record: Dropped | DeadLetter) -> dict[str, Any]:
    """The columns of both outputs: counts are by `reason`, `detail` has what was measured."""
    origin = record.origin
    return {"id": origin.id, "source": origin.source, "path": origin.path, "record": origin.record,
            "stage": record.stage, "reason": record.reason, "detail": record.detail}


def write_rejected(paths: StagePaths, kind: str, shard: int, rows: Iterable[dict[str, Any]]
                   ) -> Report:
    """Writes the shard of `dropped` documents (Parquet) or of `dead_letters` (JSON lines), small
    enough for memory, from rows as `rejected_row` makes them, in any order."""
    # Dead letters may share an id: a damaged file, and the file as a whole.
    ordered = sorted(rows, key=lambda r: (r["id"], r["stage"], r["reason"], r["detail"]))
    if kind == "dropped":
        report = _write(paths, kind, shard, len(ordered), lambda handle: documents.write_table(
            handle, pa.Table.from_pylist(ordered, DROPPED_SCHEMA)))
    else:
        report = write_json_lines(paths, kind, shard, (
            {field: row[field] for field in corpus.DEAD_LETTER_FIELDS} for row in ordered))
    sources: dict[str, dict[str, Counter[str]]] = {}
    for row in ordered:
        stages = sources.setdefault(row["source"], {})
        stages.setdefault(row["stage"], Counter())[row["reason"]] += 1
    return {**report, "sources": sources}


class Counts:
    """Counts by source: documents, characters, UTF-8 bytes, documents by language and split."""

    def __init__(self) -> None:
        self.by_source: dict[str, dict[str, Any]] = {}

    def add(self, source: str, text: str, language: str, split: str = "") -> None:
        entry = self._entry(source)
        entry["documents"] += 1
        entry["characters"] += len(text)
        entry["bytes"] += len(text.encode("utf-8"))
        entry["languages"].update([language] if language else [])
        entry["splits"].update([split] if split else [])

    def add_made(self, source: str) -> None:
        """Counts one document that augmentation made, or tried to."""
        entry = self._entry(source)
        entry["augmented"] = entry.get("augmented", 0) + 1

    def _entry(self, source: str) -> dict[str, Any]:
        return self.by_source.setdefault(source, {
            "documents": 0, "characters": 0, "bytes": 0, "splits": Counter(),
            "languages": Counter()})


class Samples:
    """Texts of a few dropped documents of each stage and reason: the first in order of id."""

    def __init__(self, shown: Callable[[str], str] = str) -> None:
        self._shown = shown
        self._rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._characters: dict[str, dict[str, Counter[str]]] = {}

    def add(self, dropped: Dropped, text: str) -> None:
        """Counts the document, and takes it unless there are enough of its reason."""
        counts = self._characters.setdefault(dropped.origin.source, {}).setdefault(
            dropped.stage, Counter())
        counts[dropped.reason] += len(text)
        rows = self._rows.setdefault((dropped.stage, dropped.reason), [])
        if len(rows) < SAMPLES:
            rows.append({**rejected_row(dropped), "characters": len(text),
                         "text": self._shown(text)[:_SAMPLE_CHARACTERS]})

    def write(self, paths: StagePaths, shard: int) -> Report:
        """Writes the shard; its report has characters of all dropped texts by source, stage and
        reason."""
        rows = [row for _, rows in sorted(self._rows.items()) for row in rows]
        return {**write_json_lines(paths, "samples", shard, rows),
                "dropped_characters": self._characters}


def write_json_lines(paths: StagePaths, kind: str, shard: int, rows: Iterable[dict[str, Any]]
                     ) -> Report:
    assert KINDS[kind] == "jsonl"
    lines = [(json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8") for row in rows]
    return _write(paths, kind, shard, len(lines), lambda handle: handle.write(b"".join(lines)))


def _write(paths: StagePaths, kind: str, shard: int, rows: int, write: Callable[[Any], Any]
           ) -> Report:
    path = paths.shard_path(paths.output, kind, shard)
    files.make_folder(FileSystems.join(paths.output, kind))
    size, digest = files.write_atomically(path, paths.temporary, write)
    return file_report(paths, path, size, digest, rows)
