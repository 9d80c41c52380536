"""What a stage gets: the recipe, the paths of its input and output, and a way to run Beam."""

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems

from data_beam.base import files
from data_beam.config import RecipeConfig

KINDS = {"documents": "parquet", "dropped": "parquet", "dead_letters": "jsonl", "samples": "jsonl"}
"""What every stage writes, a file a shard: `samples` are texts of some dropped documents."""

Report = dict[str, Any]  # what a writer says of a file, or of a source, for the stage's manifest


@dataclasses.dataclass(frozen=True)
class StagePaths:
    """Folders and numbers of a stage, for workers too."""

    inputs: str  # folder of the stage before; for the first, the file that lists the inputs
    earlier: tuple[str, ...]  # folders of all stages before, in order
    output: str  # this stage's folder
    temporary: str  # existing folder on the same file system, emptied when the stage is whole
    progress: str  # existing local folder for workers' progress, or "" when they are elsewhere
    order: Sequence[int]  # numbers of all shards, in the order in which they are handed to workers

    @property
    def shards(self) -> int:
        """Number of files of each kind."""
        return len(self.order)

    @property
    def reports(self) -> str:
        return FileSystems.join(self.temporary, "reports")

    def shard_path(self, folder: str, kind: str, shard: int) -> str:
        """Path of a shard in the folder of a stage (or of the corpus)."""
        return FileSystems.join(folder, kind,
                                files.shard_name(kind, shard, self.shards, KINDS[kind]))


@dataclasses.dataclass(frozen=True)
class Context:
    """What a stage's `run` gets. `pipeline` runs one Beam pipeline: it calls its argument with an
    empty one to be filled, and comes back when the pipeline is done. `corpus` is the manifest of
    the corpus as far as it is known, for the stage `report`."""

    recipe: RecipeConfig
    paths: StagePaths
    pipeline: Callable[[Callable[[beam.Pipeline], None]], None]
    corpus: dict[str, Any] = dataclasses.field(default_factory=dict)


class WriteReport(beam.DoFn):
    """(name, report) -> a JSON file in the folder of reports, for the command to read."""

    def __init__(self, folder: str):
        self._folder = folder

    def process(self, element: tuple[str, Report]) -> None:
        name, report = element
        data = json.dumps(report, sort_keys=True).encode("utf-8")
        files.write_atomically(FileSystems.join(self._folder, f"{name}.json"), self._folder, data)


def named(report: Report) -> tuple[str, Report]:
    """The report of a file with its name."""
    return report["file"].replace("/", "."), report


def shard_numbers(root: beam.Pipeline, order: Sequence[int]) -> Any:
    """PCollection of the shard numbers, spread over the workers in this order.

    Every shard is written, an empty one too: the set of files depends on the recipe alone.
    """
    return (root | "Shard numbers" >> beam.Create(order, reshuffle=False)
            | "Spread shards" >> beam.Reshuffle())
