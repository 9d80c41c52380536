"""What augmentation adds in stage `finish`: first how much could be made of each source is summed
up, then each shard makes what fits under the cap."""

import hashlib
import heapq
import json
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems

from data_beam.augment import share
from data_beam.augment.augmenter import Augmenter, TemplateDocuments
from data_beam.config import RecipeConfig
from data_beam.records import DeadLetter, Document
from data_beam.sinks import documents, files
from data_beam.split.content_hash import split_of
from data_beam.stages.context import Context, Place, shard_numbers
from maxlm.config.schema import ConfigError

_OWN = -1
"""In place of a bucket: the characters of a source's own training documents."""
_FOLDER = ("work", "augment")


def split(document: Document, recipe: RecipeConfig) -> str:
    """The split of a document."""
    return split_of(document.split_key or document.sha256, recipe.split.validation,
                    recipe.split.test)


def files_read(recipe: RecipeConfig) -> dict[str, str]:
    """SHA-256 of the dictionary and the templates by path.

    Raises:
      ConfigError: one does not exist.
    """
    hashes = {}
    for name in ("synonyms", "templates"):
        path = getattr(recipe.augment, name)
        if path and not FileSystems.exists(path):
            raise ConfigError(f"config.augment.{name}: {path} does not exist")
        if path:
            hashes[path] = hashlib.sha256(files.read_bytes(path)).hexdigest()
    return hashes


def check(recipe: RecipeConfig) -> None:
    """Loads what augmentation needs, so that a mistake ends a run before it reads anything.

    Raises:
      ConfigError: a dictionary, table or function that cannot be used.
    """
    Augmenter(recipe.augment)
    TemplateDocuments(recipe.augment, recipe.sources)


class Making:
    """Makes the documents of a shard; one a worker.

    Args:
      recipe: the whole recipe.
      place: of the stage.

    Attributes:
      failed: what the last call of `rows` could not make.
    """

    failed: list[DeadLetter]

    def __init__(self, recipe: RecipeConfig, place: Place):
        self._recipe, self._place = recipe, place
        self._augmenter = Augmenter(recipe.augment)
        self._templates = TemplateDocuments(recipe.augment, recipe.sources)

    def _template_rows(self, shard: int) -> Iterator[dict[str, Any]]:
        for row in self._templates.rows():
            if files.shard_of(row["id"], self._place.shards) == shard:
                yield row

    def sizes(self, shard: int) -> dict[tuple[str, int], int]:
        """Characters by source and bucket of what could be made of a shard, and by source of its
        training documents."""
        found: dict[tuple[str, int], int] = {}

        def add(source: str, bucket: int, characters: int) -> None:
            found[source, bucket] = found.get((source, bucket), 0) + characters

        for document in documents.read_documents(
                self._place.shard_path(self._place.inputs, "documents", shard)):
            if split(document, self._recipe) == "train":
                add(document.origin.source, _OWN, len(document.text))
                for planned in self._augmenter.planned(document):
                    add(document.origin.source, share.bucket(planned.id), planned.characters)
        for row in self._template_rows(shard):
            add(row["source"], share.bucket(row["id"]), len(row["text"]))
        return found

    def rows(self, shard: int, own: Iterable[tuple[Document, dict[str, Any]]],
             buckets: dict[str, frozenset[int]]) -> Iterator[dict[str, Any]]:
        """Rows of the shard in the order of ids: its documents, and what is made. What could not
        be made is in `failed` then.

        Args:
          shard: number.
          own: its documents and their rows, in the order of ids.
          buckets: those admitted, by source.
        """
        def with_made() -> Iterator[dict[str, Any]]:
            for document, row in own:
                group = [row]
                if row["split"] == "train":
                    for made in self._augmenter.made(document, row, buckets[row["source"]]):
                        if isinstance(made, DeadLetter):
                            self.failed.append(made)
                        else:
                            group.append(made)
                yield from sorted(group, key=_id)

        self.failed: list[DeadLetter] = []
        templates = (row for row in self._template_rows(shard)
                     if share.bucket(row["id"]) in buckets[row["source"]])
        yield from heapq.merge(with_made(), templates, key=_id)


def _id(row: dict[str, Any]) -> str:
    return row["id"]


def is_made(row: dict[str, Any]) -> bool:
    """Whether a row of the corpus was made by augmentation."""
    return any(transform.startswith("augment:") for transform in row["transforms"])


class _Sizes(beam.DoFn):
    """Shard number -> ((source, bucket), characters)."""

    def __init__(self, recipe: RecipeConfig, place: Place):
        self._recipe, self._place = recipe, place

    def setup(self) -> None:
        self._making = Making(self._recipe, self._place)

    def process(self, shard: int) -> Iterator[tuple[tuple[str, int], int]]:
        yield from self._making.sizes(shard).items()


class _WriteSizes(beam.DoFn):
    """(source, [bucket, characters]) -> a file for the command to read."""

    def __init__(self, place: Place):
        self._temporary = place.temporary
        self._folder = FileSystems.join(place.temporary, *_FOLDER)

    def process(self, element: tuple[str, Iterable[tuple[int, int]]]) -> None:
        source, sizes = element
        data = json.dumps({"source": source, "sizes": sorted(sizes)}).encode()
        files.write_atomically(FileSystems.join(self._folder, f"{source}.json"), self._temporary,
                               lambda handle: handle.write(data))


def admitted(context: Context) -> dict[str, frozenset[int]]:
    """The buckets of each source that fit under the cap: one pass over the shards."""
    recipe, place = context.recipe, context.place
    folder = FileSystems.join(place.temporary, *_FOLDER)
    files.make_folder(folder)

    def build(root: beam.Pipeline) -> None:
        _ = (shard_numbers(root, place.shards)
             | "Sizes of what can be made" >> beam.ParDo(_Sizes(recipe, place))
             | "Sum sizes" >> beam.CombinePerKey(sum)
             | "By source" >> beam.Map(lambda entry: (entry[0][0], (entry[0][1], entry[1])))
             | "Group by source" >> beam.GroupByKey()
             | "Write sizes" >> beam.ParDo(_WriteSizes(place)))

    context.pipeline(build)
    result: dict[str, frozenset[int]] = {source.name: frozenset() for source in recipe.sources}
    for entry in files.match(folder, "*.json"):
        found = json.loads(files.read_bytes(entry.path))
        sizes = dict(map(tuple, found["sizes"]))
        result[found["source"]] = share.admitted(
            sizes.pop(_OWN, 0), sizes, recipe.augment.max_share)
    return result
