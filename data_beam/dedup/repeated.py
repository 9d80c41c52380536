"""Finding repeated lines and paragraphs in a corpus, as transforms of Beam.

    shards -> (part, packed occurrences) -> group -> a table of those that are repeated

A worker needs about 18 bytes for each long line of a part, and 100 for each repeated one of the
whole corpus when it takes them out.
"""

from collections.abc import Iterable, Iterator

import apache_beam as beam
import numpy as np

from data_beam.dedup import buckets, repeated_text
from data_beam.dedup.texts import Texts, work, write_file
from data_beam.runners.progress import WorkerProgress

_PARTS = 64
_FLUSH = 2**20


class CountOccurrences(beam.DoFn):
    """Shard number -> (part, packed `OCCURRENCE`) of long lines (paragraphs) of its documents."""

    def __init__(self, texts: Texts, unit: str):
        self._texts, self._unit = texts, unit

    def setup(self) -> None:
        self._progress = WorkerProgress(self._texts.paths.progress)

    def process(self, shard: int) -> Iterator[tuple[int, bytes]]:
        texts = self._texts
        indices = {source: number for number, source in enumerate(texts.sources)}
        settings = getattr(texts.settings, self._unit)
        found: list[tuple[int, int, int]] = []
        for _, row in texts.read(shard, repeated=False, progress=self._progress):
            if not row["is_code"]:
                me = indices[row["source"]], int(row["id"][:16], 16)
                found += [(value, *me) for value in set(
                    repeated_text.hashes(row["text"], self._unit, settings))]
            if len(found) > _FLUSH:
                yield from _pack(found)
                found = []
        yield from _pack(found)
        self._progress.flush()


def _pack(found: list[tuple[int, int, int]]) -> Iterator[tuple[int, bytes]]:
    entries = np.array(found, repeated_text.OCCURRENCE)
    parts = (entries["hash"] % np.uint64(_PARTS)).astype(np.int64)
    for part, values in buckets.by_part(parts, entries):
        yield part, values.tobytes()


class FindRepeated(beam.DoFn):
    """(part, packed occurrences) -> the part, once a file has the first of each repeated one."""

    def __init__(self, texts: Texts, unit: str):
        self._texts, self._unit = texts, unit

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[int]:
        part, blobs = element
        table = repeated_text.repeated(
            buckets.unpack(blobs, repeated_text.OCCURRENCE),
            getattr(self._texts.settings, self._unit).max_documents)
        paths = self._texts.paths
        write_file(paths, work(paths, "repeated", self._unit, f"{part:02d}"), table.tobytes())
        yield part
