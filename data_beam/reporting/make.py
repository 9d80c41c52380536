"""The report of a corpus: summary by Beam, facts, page."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems

from data_beam.base import files
from data_beam.dedup import clusters
from data_beam.reporting import facts, page
from data_beam.reporting.summarise import Job, summarise
from data_beam.reporting.summary import Summary
from data_beam.reporting.topics import MIN_DOCUMENTS, Topic, find_topics
from data_beam.reporting.words import UNSPACED
from maxlm.config.schema import ConfigError
from maxlm.data.tokenizer import Tokenizer

HTML, JSON = "report.html", "report.json"
_TOPIC_DOCUMENTS = 500
_TOPIC_LANGUAGES = 3
_MOST_LANGUAGES = 8
"""Texts for topics are kept of so many; some of them may be programming languages, without any."""


def make(manifest: Mapping[str, Any], corpus: str, scratch: str, progress: str,
         pipeline: Callable[[Callable[[beam.Pipeline], None]], None],
         tokenizer: Tokenizer | None = None) -> dict[str, bytes]:
    """The files of the report.

    Args:
      manifest: of the corpus.
      corpus: its folder.
      scratch: existing folder, for workers too, for what is needed only here.
      progress: existing local folder for workers' progress, or "".
      pipeline: runs a Beam pipeline that its argument fills.
      tokenizer: to count tokens with.

    Returns:
      Content by name.

    Raises:
      ConfigError: the documents are damaged, or not those of the manifest.
    """
    for name, data in (tokenizer.files if tokenizer else {}).items():
        files.write_atomically(FileSystems.join(scratch, name), scratch,
                               lambda handle, data=data: handle.write(data))
    shards = sum(entry["file"].startswith("documents/") for entry in manifest["outputs"])
    job = Job(corpus, shards, scratch, topic_shares(manifest),
              tuple(tokenizer.files) if tokenizer else (), progress)
    summary = summarise(job, pipeline)
    _check(manifest, summary, corpus)
    named = None if tokenizer is None else {
        "sha256": tokenizer.sha256, "vocabulary": tokenizer.vocab_size}
    found = facts.make(manifest, summary, _topics(summary), _near_copies(corpus), named)
    text = json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return {JSON: text.encode("utf-8"), HTML: page.render(found).encode("utf-8")}


def topic_shares(manifest: Mapping[str, Any]) -> dict[str, float]:
    """Share of the documents of a language whose texts topics are made from: about 500 of each of
    the most frequent ones."""
    counts: dict[str, int] = {}
    for entry in manifest["sources"].values():
        for language, count in entry["languages"].items():
            if language not in UNSPACED and language != "und":
                counts[language] = counts.get(language, 0) + count
    frequent = sorted((item for item in counts.items() if item[1] >= MIN_DOCUMENTS),
                      key=lambda item: (-item[1], item[0]))[:_MOST_LANGUAGES]
    return {language: min(1.0, _TOPIC_DOCUMENTS / count) for language, count in frequent}


def _topics(summary: Summary) -> dict[str, list[Topic]]:
    found = sorted(summary.topic_texts.items(), key=lambda item: (-len(item[1]), item[0]))
    return {language: find_topics([text for _, text in texts], language)
            for language, texts in found[:_TOPIC_LANGUAGES]}


def _near_copies(corpus: str) -> dict[str, Any] | None:
    path = FileSystems.join(corpus, "clusters", clusters.SUMMARY)
    return json.loads(files.read_bytes(path)) if FileSystems.exists(path) else None


def _check(manifest: Mapping[str, Any], summary: Summary, corpus: str) -> None:
    """Compares what was read with the books."""
    read: dict[str, list[int]] = {name: [0, 0, 0] for name in manifest["sources"]}
    for (source, *_), (documents, characters, size, _) in summary.documents.items():
        old = read.get(source, [0, 0, 0])
        read[source] = [old[0] + documents, old[1] + characters, old[2] + size]
    for source, counts in read.items():
        entry = manifest["sources"].get(source)
        if entry is None or counts != [entry["kept"], entry["characters"], entry["bytes"]]:
            raise ConfigError(
                f"--corpus: {corpus}: the documents of source {source!r} are not those of its "
                "manifest; make the corpus again with python -m data_beam.prepare")
