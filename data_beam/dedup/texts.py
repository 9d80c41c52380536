"""The texts of a shard as they stand at some point of stage `dedup`, by the worker that needs them.

What earlier steps decided lies in small files of a working folder, a JSON object by document id for
each shard; a step reads the shard of the stage before and leaves out or changes what they say.
"""

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow.parquet
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from data_beam.base import files
from data_beam.base.stage_context import StagePaths
from data_beam.config import DedupConfig
from data_beam.dedup import repeated_text
from data_beam.runners.progress import WorkerProgress
from data_beam.sinks import documents

_COLUMNS = ["id", "source", "path", "record", "text", "sha256", "is_code", "scores"]


def work(paths: StagePaths, *parts: str) -> str:
    """A path in the folder of what the stage needs only while it runs."""
    return FileSystems.join(paths.temporary, "work", *parts)


def write_file(paths: StagePaths, path: str, data: bytes) -> None:
    """A whole file in the working folder."""
    files.make_folder(path.rpartition("/")[0])
    files.write_atomically(path, paths.temporary, lambda handle: handle.write(data))


def write_decisions(paths: StagePaths, step: str, shard: int, decisions: dict[str, Any]) -> None:
    """What a step decided on the documents of a shard, by id."""
    write_file(paths, work(paths, step, f"{shard:05d}.json"),
               json.dumps(dict(sorted(decisions.items()))).encode("utf-8"))


def read_decisions(paths: StagePaths, step: str, shard: int) -> dict[str, Any]:
    """The same read back; none when the step did not run or had nothing to say."""
    path = work(paths, step, f"{shard:05d}.json")
    return json.loads(files.read_bytes(path)) if FileSystems.exists(path) else {}


def shard_offsets(paths: StagePaths) -> tuple[int, ...]:
    """Rows before each shard of the stage before, and of all at the end: the node of a document is
    its row added to the offset of its shard."""
    offsets = [0]
    for shard in range(paths.shards):
        with FileSystems.open(paths.shard_path(paths.inputs, "documents", shard),
                              compression_type=CompressionTypes.UNCOMPRESSED) as handle:
            offsets.append(offsets[-1] + pyarrow.parquet.ParquetFile(handle).metadata.num_rows)
    return tuple(offsets)


def shards_of(nodes: np.ndarray, offsets: tuple[int, ...]) -> np.ndarray:
    """Shard of each node."""
    return np.searchsorted(np.asarray(offsets), nodes, side="right") - 1


@dataclasses.dataclass(frozen=True)
class Texts:
    """Reads the documents that are left.

    Attributes:
      paths: of the stage.
      settings: of the stage.
      sources: names of the sources, in the order of the recipe.
    """

    paths: StagePaths
    settings: DedupConfig
    sources: tuple[str, ...]

    def remover(self) -> Callable[[str, str, str], tuple[str, tuple[str, ...]]]:
        """(text, source, id) -> the text without what is repeated elsewhere, and what was done."""
        units = {unit: getattr(self.settings, unit) for unit in repeated_text.UNITS
                 if getattr(self.settings, unit).enabled}
        tables = {unit: repeated_text.load([
            files.read_bytes(entry.path)
            for entry in files.match(work(self.paths, "repeated", unit), "*")]) for unit in units}
        remove = repeated_text.Remover(units, tables)
        indices = {source: number for number, source in enumerate(self.sources)}
        return lambda text, source, id: remove(text, indices[source], id)

    def read(self, shard: int, rows: Iterable[int] | None = None, repeated: bool = True,
             progress: WorkerProgress | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
        """(row, columns) of the documents of a shard that no step so far has dropped.

        Args:
          shard: its number.
          rows: the rows that are wanted, None for all.
          repeated: take out repeated lines and paragraphs.
          progress: told of each row.
        """
        gone = {id for step in ("exact", "exact_again", "near")
                for id, decision in read_decisions(self.paths, step, shard).items()
                if not decision.get("kept", False)}
        wanted = None if rows is None else set(rows)
        remove = self.remover() if repeated else None
        path = self.paths.shard_path(self.paths.inputs, "documents", shard)
        for number, row in enumerate(
                documents.read_rows(path, documents.STAGE_SCHEMA, _COLUMNS)):
            if progress is not None:
                progress.add(documents=1)
            if row["id"] in gone or (wanted is not None and number not in wanted):
                continue
            if remove is not None and not row["is_code"]:
                row["text"], done = remove(row["text"], row["source"], row["id"])
                if done and not row["text"].strip():
                    continue
            yield number, row
