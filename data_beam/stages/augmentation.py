"""Augmentation in stage `finish`.

A first pass sums the characters that could be added to each source. Then each shard creates the
documents that fit under the cap. Augmented documents pass the filters for safety, decontamination
and privacy before they are counted or written.
"""

import dataclasses
import hashlib
import heapq
import json
import operator
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems

from data_beam.augment import augmenter
from data_beam.augment.augmenter import Augmenter, TemplateDocuments, bucket_of
from data_beam.augment.back_translation import MAX_RATIO
from data_beam.base import files, user_function
from data_beam.base.hashing import split_of
from data_beam.base.records import DeadLetter, Document, Dropped, Origin, text_sha256
from data_beam.base.stage_context import Context, StagePaths, shard_numbers
from data_beam.config import RecipeConfig
from data_beam.filters.chain import judge, make_filters
from data_beam.privacy.filter import PrivacyFilter
from data_beam.sinks import documents
from data_beam.sinks.shards import rejected_row
from maxlm.config.schema import ConfigError

_OWN = -1  # key in place of a bucket: the characters of a source's original training documents


def split(document: Document, recipe: RecipeConfig) -> str:
    """The split of a document. A group is never divided, so it also decides for near copies."""
    group = document.group and text_sha256(f"{document.origin.source}\0{document.group}")
    return split_of(group or document.split_key or document.sha256, recipe.split.validation,
                    recipe.split.test)


def files_read(recipe: RecipeConfig) -> dict[str, str]:
    """SHA-256 of the dictionary and the templates by path, and of the translator's module by the
    function's name. Raises ConfigError if a file does not exist."""
    hashes = {}
    for name in ("synonyms", "templates"):
        path = getattr(recipe.augment, name)
        if path:
            if not FileSystems.exists(path):
                raise ConfigError(f"config.augment.{name}: {path} does not exist")
            hashes[path] = hashlib.sha256(files.read_bytes(path)).hexdigest()
    if recipe.augment.back_translation:
        name = recipe.augment.back_translation
        hashes[name] = user_function.module_sha256(name)
    return hashes


def check(recipe: RecipeConfig) -> None:
    """Loads the files and functions of augmentation, so that a mistake stops a run before it
    starts: raises ConfigError if a dictionary, table or function cannot be used."""
    Augmenter(recipe.augment)
    TemplateDocuments(recipe.augment, recipe.sources)


class ShardAugmenter:
    """Creates the augmented documents of a shard. Create one per worker.

    The last call of `rows` leaves its dead letters in `failed`, and in `dropped` rows for that
    output, of the augmented documents that a filter dropped, with the ids of these.
    """

    def __init__(self, recipe: RecipeConfig, paths: StagePaths):
        self._recipe, self._paths = recipe, paths
        self._augmenter = Augmenter(recipe.augment)
        self._templates = TemplateDocuments(recipe.augment, recipe.sources)
        self._filters = make_filters(recipe, True) if recipe.augment.enabled else []
        self._privacy = next(
            (each for each in self._filters if isinstance(each, PrivacyFilter)), None)

    def _filtered(self, origin: Origin, row: dict[str, Any]
                ) -> dict[str, Any] | Dropped | DeadLetter:
        """The row of an augmented document (of `origin`) after the filters, or why it is not
        kept."""
        document = Document(
            origin, row["text"], row["domain"], row["licence"], "", row["language"],
            row["language_score"], row["sha256"], row["bytes_sha256"], tuple(row["transforms"]),
            scores=dict(row["scores"]))
        outcomes = [outcome for _, outcome in judge(document, self._filters)]
        outcome = outcomes[-1] if outcomes else document  # all filters may be off
        if not isinstance(outcome, Document):
            if self._privacy is None:
                return outcome
            return dataclasses.replace(
                outcome, detail=self._privacy.masked_quote(outcome.detail, row["text"]))
        return {**row, "text": outcome.text, "sha256": outcome.sha256,
                "transforms": list(outcome.transforms), "scores": sorted(outcome.scores.items())}

    def _kept(self, origin: Origin, row: dict[str, Any]) -> dict[str, Any] | None:
        """Like `_filtered`; adds a rejected document to `dropped` or `failed` and returns None."""
        outcome = self._filtered(origin, row)
        if isinstance(outcome, dict):
            return outcome
        if isinstance(outcome, Dropped):
            self.dropped.append({**rejected_row(outcome), "id": row["id"]})
        else:
            self.failed.append(outcome)
        return None

    def _characters(self, origin: Origin, row: dict[str, Any]) -> int:
        """Of an augmented document after the filters; 0 if a filter drops it."""
        outcome = self._filtered(origin, row)
        return len(outcome["text"]) if isinstance(outcome, dict) else 0

    def _template_rows(self, shard: int) -> Iterator[dict[str, Any]]:
        for row in self._templates.rows():
            if files.shard_of(row["id"], self._paths.shards) == shard:
                yield row

    def sizes(self, shard: int) -> dict[tuple[str, int], int]:
        """Characters of the augmented documents that a shard could add, by source and bucket, and
        of its original training documents, by source."""
        found: Counter[tuple[str, int]] = Counter()
        for document in documents.read_documents(
                self._paths.shard_path(self._paths.inputs, "documents", shard)):
            if split(document, self._recipe) == "train":
                source = document.origin.source
                found[source, _OWN] += len(document.text)
                for planned in self._augmenter.planned(document):
                    found[source, bucket_of(planned.id)] += (
                        planned.characters if planned.row is None else
                        self._characters(document.origin, planned.row))
        for row in self._template_rows(shard):
            found[row["source"], bucket_of(row["id"])] += self._characters(
                _template_origin(row), row)
        return found

    def rows(self, shard: int, own: Iterable[tuple[Document, dict[str, Any]]],
             buckets: dict[str, frozenset[int]]) -> Iterator[dict[str, Any]]:
        """Rows of the shard in the order of ids: original and augmented documents, these in the
        admitted buckets of their source. Sets `failed` and `dropped`. `own` are the original
        documents and their rows, in the order of ids."""
        def with_augmented() -> Iterator[dict[str, Any]]:
            for document, row in own:
                group = [row]
                if row["split"] == "train":
                    for augmented in self._augmenter.augment(document, row, buckets[row["source"]]):
                        if isinstance(augmented, DeadLetter):
                            self.failed.append(augmented)
                            continue
                        kept = self._kept(document.origin, augmented)
                        if kept is not None and _adds(kept, document):
                            group.append(kept)
                yield from sorted(group, key=_id)

        self.failed, self.dropped = [], []
        templates = (kept for row in self._template_rows(shard)
                     if bucket_of(row["id"]) in buckets[row["source"]]
                     and (kept := self._kept(_template_origin(row), row)) is not None)
        yield from heapq.merge(with_augmented(), templates, key=_id)


def _template_origin(row: dict[str, Any]) -> Origin:
    return Origin(row["source"], row["path"], row["record"])


def _adds(row: dict[str, Any], original: Document) -> bool:
    """Whether an augmented document differs from its original after the filters and, for a
    back-translation, is still within the length counted for the cap (placeholders may lengthen
    it)."""
    return row["text"] != original.text and (
        "augment:back_translation" not in row["transforms"]
        or len(row["text"]) <= int(MAX_RATIO * len(original.text)))


_id = operator.itemgetter("id")


class _Sizes(beam.DoFn):
    """Shard number -> ((source, bucket), characters)."""

    def __init__(self, recipe: RecipeConfig, paths: StagePaths):
        self._recipe, self._paths = recipe, paths

    def setup(self) -> None:
        self._shard_augmenter = ShardAugmenter(self._recipe, self._paths)

    def process(self, shard: int) -> Iterator[tuple[tuple[str, int], int]]:
        yield from self._shard_augmenter.sizes(shard).items()


def _write_sizes(element: tuple[str, Iterable[tuple[int, int]]], folder: str) -> None:
    """(source, [(bucket, characters)]) -> a file that the launching process reads."""
    source, sizes = element
    data = json.dumps({"source": source, "sizes": sorted(sizes)}).encode()
    files.write_atomically(FileSystems.join(folder, f"{source}.json"), folder, data)


def admitted(context: Context) -> dict[str, frozenset[int]]:
    """The admitted buckets of each source, from one pass over the shards."""
    recipe, paths = context.recipe, context.paths
    folder = FileSystems.join(paths.temporary, "work", "augment")
    files.make_folder(folder)

    def build(root: beam.Pipeline) -> None:
        _ = (shard_numbers(root, paths.order)
             | "Sizes of possible documents" >> beam.ParDo(_Sizes(recipe, paths))
             | "Sum sizes" >> beam.CombinePerKey(sum)
             | "By source" >> beam.Map(lambda entry: (entry[0][0], (entry[0][1], entry[1])))
             | "Group by source" >> beam.GroupByKey()
             | "Write sizes" >> beam.Map(_write_sizes, folder))

    context.pipeline(build)
    result: dict[str, frozenset[int]] = {source.name: frozenset() for source in recipe.sources}
    for entry in files.match(folder, "*.json"):
        found = json.loads(files.read_bytes(entry.path))
        sizes = dict(map(tuple, found["sizes"]))
        result[found["source"]] = augmenter.admitted_buckets(
            sizes.pop(_OWN, 0), sizes, recipe.augment.max_share)
    return result
