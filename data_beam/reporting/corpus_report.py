"""The report of a corpus: each shard is read once by a Beam worker, and the summaries are merged.

    shard numbers -> read, count -> a small file each -> merged in order -> facts -> page
"""

import dataclasses
import functools
import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet
from apache_beam.io.filesystems import FileSystems
from pyarrow.compute import call_function

from data_beam.base import files, json_files
from data_beam.base.records import Origin
from data_beam.base.stage_context import KINDS, shard_numbers
from data_beam.dedup import clusters
from data_beam.readers.corpus_files import DAMAGED, damaged
from data_beam.reporting import comparison, facts, page
from data_beam.reporting import summary as summaries
from data_beam.reporting.summary import KEYS, LANGUAGE_SCORE, LENGTH, Summary
from data_beam.reporting.topics import sampled_shares, topics_of
from data_beam.runners.progress import WorkerProgress
from data_beam.sinks import documents
from data_beam.sinks.shards import DROPPED_SCHEMA
from maxlm.config.schema import ConfigError
from maxlm.data.tokenizer import Tokenizer

HTML, JSON = "report.html", "report.json"
TOPIC_CHARACTERS = 4000  # how much of the text of a document topics are made from
BY_LANGUAGE = "perplexity"  # its scale differs by language, as each has its own model
_COLUMNS = ["id", "text", *KEYS, "path", "record", "url", "language_score", "transforms", "scores"]


@dataclasses.dataclass(frozen=True)
class Job:
    """What workers need to know."""

    corpus: str  # its folder
    shards: int  # files of each kind in it
    scratch: str  # existing folder for the workers' results
    topic_shares: Mapping[str, float]  # of documents with texts collected for topics, by language
    tokenizer: tuple[str, ...]  # the tokenizer's files in `scratch`; none to count no tokens
    progress: str  # existing local folder for workers' progress, or ""

    def path(self, kind: str, shard: int) -> str:
        return FileSystems.join(self.corpus, kind,
                                files.shard_name(kind, shard, self.shards, KINDS[kind]))

    def result(self, shard: int) -> str:
        return FileSystems.join(self.scratch, f"summary-{shard:05d}.json")


class Summarise(beam.DoFn):
    """Shard number -> a file with its summary, or with what is damaged."""

    def __init__(self, job: Job):
        self._job = job

    def setup(self) -> None:
        self._progress = WorkerProgress(self._job.progress)
        self._tokenizer = Tokenizer.from_files({
            name: files.read_bytes(FileSystems.join(self._job.scratch, name))
            for name in self._job.tokenizer}) if self._job.tokenizer else None

    def process(self, shard: int) -> None:
        result = self._summary(shard)
        value = {"damaged": result} if isinstance(result, str) else result.to_json()
        data = json.dumps(value).encode("ascii")
        files.write_atomically(self._job.result(shard), self._job.scratch, data)
        self._progress.flush()

    def _summary(self, shard: int) -> Summary | str:
        """The summary, or a message about the file that cannot be read."""
        summary = Summary()
        try:
            near = self._clusters(shard, summary)
        except ConfigError as error:  # which names the file
            return str(error)
        for kind, add in (("documents", functools.partial(self._documents, near=near)),
                          ("samples", self._samples), ("dropped", self._dropped),
                          ("dead_letters", self._dead_letters)):
            # Lines may be invalid JSON, or lack a field. Not so for documents: there a ValueError
            # may come from the user's tokenizer, which is no damage.
            expected = DAMAGED if kind == "documents" else (*DAMAGED, ValueError, KeyError)
            try:
                add(shard, summary)
            except expected as error:
                if isinstance(error, ConfigError):  # which names the file
                    return str(error)
                return damaged(self._job.path(kind, shard), error)
        return summary

    def _documents(self, shard: int, summary: Summary, near: dict[str, dict[str, Any]]) -> None:
        with files.open_raw(self._job.path("documents", shard)) as handle:
            parquet = pyarrow.parquet.ParquetFile(handle)
            names = parquet.schema_arrow.names
            if not set(_COLUMNS) <= set(names):
                raise pa.ArrowInvalid(f"its columns are {', '.join(names)}")
            for number in range(parquet.num_row_groups):
                self._add(summary, parquet.read_row_group(number, columns=_COLUMNS), near)

    def _add(self, summary: Summary, group: pa.Table, near: dict[str, dict[str, Any]]) -> None:
        texts = group["text"]
        characters = call_function("utf8_length", [texts]).to_pylist()
        sizes = call_function("binary_length", [texts]).to_pylist()
        numbers: dict[tuple[str, str, str], list[float]] = {}
        for i, row in enumerate(group.drop_columns(["text"]).to_pylist()):
            source, language = row["source"], row["language"]
            tokens = 0
            if self._tokenizer is not None:
                # Each document is between BOS and EOS in the token shards.
                tokens = len(self._tokenizer.encode(texts[i].as_py())) + 2
            summary.count(tuple(row[key] for key in KEYS), (1, characters[i], sizes[i], tokens))
            scores = dict(row["scores"] or ())
            named = [(LENGTH, characters[i]), *scores.items()]
            if row["language_score"] is not None:
                named.append((LANGUAGE_SCORE, row["language_score"]))
            for name, value in named:
                numbers.setdefault(("source", source, name), []).append(value)
            if BY_LANGUAGE in scores:
                numbers.setdefault(("language", language, BY_LANGUAGE), []).append(
                    scores[BY_LANGUAGE])
            summary.transforms.update({name.partition("=")[0] for name in row["transforms"] or ()})
            # A random share of all, by the second half of the id.
            share = self._job.topic_shares.get(language, 0.0)
            if row["language_score"] is not None and int(row["id"][16:], 16) < share * 2**64:
                summary.topic_texts.setdefault(language, []).append(
                    (row["id"], texts[i].as_py()[:TOPIC_CHARACTERS]))
            samples = summary.kept.setdefault((source,), [])
            if len(samples) < summaries.KEPT_SAMPLES:  # rows come in the order of ids
                samples.append({**row, "scores": scores, "characters": characters[i],
                                "text": texts[i].as_py()[:summaries.SHOWN_CHARACTERS]})
            if row["id"] in near:
                near[row["id"]]["text"] = texts[i].as_py()[:summaries.SHOWN_CHARACTERS]
            self._progress.add(documents=1)
        for (kind, value, name), values in sorted(numbers.items()):
            summary.add_numbers((kind, value), name, values)

    def _clusters(self, shard: int, summary: Summary) -> dict[str, dict[str, Any]]:
        """Adds the clusters of near copies; returns the largest by the id of the kept document,
        which is in the documents of the same shard."""
        path = clusters.path_of(self._job.corpus, shard, self._job.shards)
        if not FileSystems.exists(path):
            return {}
        found: dict[str, dict[str, Any]] = {}
        for row in documents.read_rows(path, clusters.SCHEMA):
            entry = found.setdefault(row["cluster"], {
                "cluster": row["cluster"], "documents": 0, "members": []})
            entry["documents"] += 1
            if len(entry["members"]) < summaries.MEMBERS:
                entry["members"].append(
                    {key: value for key, value in row.items() if key != "cluster"})
        summary.cluster_sizes = Counter(entry["documents"] for entry in found.values())
        summary.clusters = summaries.largest(found.values())
        return {entry["cluster"]: entry for entry in summary.clusters}

    def _samples(self, shard: int, summary: Summary) -> None:
        for row in json_files.read_lines(self._job.path("samples", shard)):
            summary.dropped.setdefault((row["stage"], row["reason"]), []).append(row)
        for key, rows in summary.dropped.items():
            summary.dropped[key] = summaries.first_by_id(rows, summaries.DROPPED_SAMPLES)

    def _dropped(self, shard: int, summary: Summary) -> None:
        """Adds dropped documents without samples: they had no text, or the reader dropped them."""
        found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        for row in documents.read_rows(self._job.path("dropped", shard), DROPPED_SCHEMA):
            key = row["stage"], row["reason"]
            rows = found.setdefault(key, [])
            if key not in summary.dropped and len(rows) < summaries.DROPPED_SAMPLES:
                rows.append({**row, "text": "", "characters": None})
        summary.dropped.update({key: rows for key, rows in found.items() if rows})

    def _dead_letters(self, shard: int, summary: Summary) -> None:
        found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        for row in json_files.read_lines(self._job.path("dead_letters", shard)):
            row["id"] = Origin(row["source"], row["path"], row["record"]).id
            found.setdefault((row["stage"], row["reason"]), []).append(row)
        for key, rows in found.items():
            summary.dead_letters[key] = summaries.first_by_id(rows, summaries.DROPPED_SAMPLES)


def build(root: beam.Pipeline, job: Job) -> None:
    """Adds the transforms of the report to an empty pipeline."""
    _ = (shard_numbers(root, range(job.shards)) | "Summarise shard" >> beam.ParDo(Summarise(job)))


def make_report(manifest: Mapping[str, Any], corpus: str, scratch: str, progress: str,
                pipeline: Callable[[Callable[[beam.Pipeline], None]], None],
                tokenizer: Tokenizer | None = None, compare: str = "") -> dict[str, bytes]:
    """The files of the report on the corpus of a manifest: content by name.

    `scratch` is an existing folder for temporary files, which workers can reach too, `progress` an
    existing local folder for workers' progress, or "". `pipeline` runs a Beam pipeline that its
    argument fills. `compare` is another corpus, with a report, to compare with; or "".

    Raises ConfigError if the documents are damaged, or not those of the manifest, and if there is
    nothing to compare with.
    """
    other = comparison.read_facts(compare) if compare else None
    for name, data in (tokenizer.files if tokenizer else {}).items():
        files.write_atomically(FileSystems.join(scratch, name), scratch, data)
    shards = sum(entry["file"].startswith("documents/") for entry in manifest["outputs"])
    job = Job(corpus, shards, scratch, sampled_shares(manifest),
              tuple(tokenizer.files) if tokenizer else (), progress)
    pipeline(lambda root: build(root, job))
    summary = Summary()
    for shard in range(job.shards):
        value = json.loads(files.read_bytes(job.result(shard)))
        if "damaged" in value:
            raise ConfigError(value["damaged"])
        summary.merge(Summary.from_json(value))
    _check(manifest, summary, corpus)
    named = None if tokenizer is None else {
        "sha256": tokenizer.sha256, "vocabulary": tokenizer.vocab_size}
    path = FileSystems.join(corpus, "clusters", clusters.SUMMARY)
    near_copies = json.loads(files.read_bytes(path)) if FileSystems.exists(path) else None
    found = facts.make(manifest, summary, topics_of(summary), near_copies, named)
    found["comparison"] = other and comparison.compare(found, other, compare)
    text = json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return {JSON: text.encode("utf-8"), HTML: page.render(found).encode("utf-8")}


def _check(manifest: Mapping[str, Any], summary: Summary, corpus: str) -> None:
    """Checks that the documents read are those that the manifest counts."""
    read: dict[str, list[int]] = {name: [0, 0, 0] for name in manifest["sources"]}
    for (source, *_), (count, characters, size, _) in summary.documents.items():
        old = read.get(source, [0, 0, 0])
        read[source] = [old[0] + count, old[1] + characters, old[2] + size]
    for source, counts in read.items():
        entry = manifest["sources"].get(source)
        if entry is None or counts != [entry["kept"], entry["characters"], entry["bytes"]]:
            raise ConfigError(
                f"--corpus: {corpus}: the documents of source {source!r} are not those of its "
                "manifest; make the corpus again with python -m data_beam.prepare")
