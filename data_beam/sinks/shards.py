"""Rewriting a shard of documents: each one is kept, dropped or a dead letter, and is counted."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from apache_beam.io.filesystems import FileSystems

from data_beam.base import files
from data_beam.base.records import DeadLetter, Document, Dropped
from data_beam.base.stage_context import KINDS, Report, StagePaths
from data_beam.runners.progress import WorkerProgress
from data_beam.sinks import documents, rejected

SAMPLES = 5
"""Dropped documents whose text is kept for the report: by shard, stage and reason."""
_SAMPLE_CHARACTERS = 4000

Judge = Callable[[Document], Document | Dropped | DeadLetter]


def rewrite(paths: StagePaths, shard: int, judge: Judge, progress: WorkerProgress,
            shown: Callable[[str], str] = str) -> Iterator[Report]:
    """The shard of the stage before, judged, as the shard of this one.

    Args:
      paths: of the stage.
      shard: number.
      judge: document -> the document to keep, changed or not, or why it is not kept. Called in the
        order of ids.
      progress: told of each document.
      shown: a text to what of it may be seen in a sample.

    Yields:
      A report on each file written.
    """
    ends: dict[type, list[Any]] = {Dropped: [], DeadLetter: []}
    samples = Samples(shown)
    read: dict[str, int] = {}
    counts = Counts()

    def kept() -> Iterator[dict[str, Any]]:
        for document in documents.read_documents(
                paths.shard_path(paths.inputs, "documents", shard)):
            read[document.origin.source] = read.get(document.origin.source, 0) + 1
            outcome = judge(document)
            progress.add(documents=1)
            if isinstance(outcome, Document):
                counts.add(outcome.origin.source, outcome.text, outcome.language)
                yield documents.stage_row(outcome)
            else:
                ends[type(outcome)].append(outcome)
                if isinstance(outcome, Dropped):
                    samples.add(outcome, document.text)

    path = paths.shard_path(paths.output, "documents", shard)
    files.make_folder(FileSystems.join(paths.output, "documents"))
    size, digest, rows = documents.write_rows(
        path, paths.temporary, kept(), documents.STAGE_SCHEMA)
    yield {**file_report(paths, path, size, digest, rows), "sources": counts.by_source,
           "read": read}
    yield rejected.write(paths, "dropped", shard, map(rejected.row, ends[Dropped]))
    yield rejected.write(paths, "dead_letters", shard, map(rejected.row, ends[DeadLetter]))
    yield samples.write(paths, shard)


def file_report(paths: StagePaths, path: str, size: int, digest: str, rows: int) -> Report:
    """What a manifest lists of a file."""
    return {"file": path[len(paths.output.rstrip("/")) + 1:], "bytes": size, "sha256": digest,
            "rows": rows}


class Counts:
    """Documents, characters, UTF-8 bytes, and documents by language (and split), by source."""

    def __init__(self) -> None:
        self.by_source: dict[str, dict[str, Any]] = {}

    def add(self, source: str, text: str, language: str, split: str = "") -> None:
        """Counts one document."""
        entry = self._entry(source)
        entry["documents"] += 1
        entry["characters"] += len(text)
        entry["bytes"] += len(text.encode("utf-8"))
        for kind, value in (("splits", split), ("languages", language)):
            if value:
                entry[kind][value] = entry[kind].get(value, 0) + 1

    def add_made(self, source: str) -> None:
        """Counts one document that augmentation made, or tried to."""
        entry = self._entry(source)
        entry["augmented"] = entry.get("augmented", 0) + 1

    def _entry(self, source: str) -> dict[str, Any]:
        return self.by_source.setdefault(source, {
            "documents": 0, "characters": 0, "bytes": 0, "splits": {}, "languages": {}})


class Samples:
    """Texts of a few dropped documents of each stage and reason: the first ones in order of id."""

    def __init__(self, shown: Callable[[str], str] = str) -> None:
        self._shown = shown
        self._rows: dict[tuple[str, str], list[dict[str, Any]]] = {}

    def add(self, dropped: Dropped, text: str) -> None:
        """Takes the document if there are not enough of its reason yet."""
        rows = self._rows.setdefault((dropped.stage, dropped.reason), [])
        if len(rows) < SAMPLES:
            origin = dropped.origin
            rows.append({
                "id": origin.id, "source": origin.source, "path": origin.path,
                "record": origin.record, "stage": dropped.stage, "reason": dropped.reason,
                "detail": dropped.detail, "characters": len(text),
                "text": self._shown(text)[:_SAMPLE_CHARACTERS]})

    def write(self, paths: StagePaths, shard: int) -> Report:
        """Writes the shard of samples."""
        rows = [row for _, rows in sorted(self._rows.items()) for row in rows]
        return write_json_lines(paths, "samples", shard, rows)


def write_json_lines(paths: StagePaths, kind: str, shard: int, rows: Iterable[dict[str, Any]]
                     ) -> Report:
    """A shard of JSON lines."""
    assert KINDS[kind] == "jsonl"
    lines = [(json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8") for row in rows]
    path = paths.shard_path(paths.output, kind, shard)
    files.make_folder(FileSystems.join(paths.output, kind))
    size, digest = files.write_atomically(path, paths.temporary,
                                          lambda handle: handle.write(b"".join(lines)))
    return file_report(paths, path, size, digest, len(lines))
