"""Edges to clusters, by one worker or by all of them in rounds.

Edges lie in files of packed pairs of int64. Clusters come out as files of packed (smallest node,
node), each cluster whole in one file and together, each file of some hundred thousand documents.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.io.filesystems import FileSystems

from data_beam.base import files
from data_beam.base.stage_context import StagePaths
from data_beam.dedup import buckets, components
from data_beam.dedup.texts import write_file

RunPipeline = Callable[[Callable[[beam.Pipeline], None]], None]

_NODES_A_FILE = 200_000
_EDGES_A_PART = 2**22
_LEAST_PARTS = 4
_PAIR = np.dtype("<i8")
_MOST_ROUNDS = 64
"""log2 squared of 10^9 nodes would be 900; what is seen is under 20."""


def _pairs(blobs: Iterable[bytes]) -> np.ndarray:
    return buckets.unpack(blobs, _PAIR).reshape(-1, 2)


def _read(paths: Iterable[str]) -> np.ndarray:
    return _pairs([files.read_bytes(path) for path in paths])


def _swapped(path: str) -> bytes:
    return np.ascontiguousarray(_read([path])[:, ::-1]).tobytes()


def _list(folder: str) -> list[str]:
    return sorted(entry.path for entry in files.match(folder, "*"))


class OneWorker(beam.DoFn):
    """Anything -> files of clusters, once."""

    def __init__(self, paths: StagePaths, edges: str, clusters: str):
        self._paths, self._edges, self._clusters = paths, edges, clusters

    def process(self, _: Any) -> None:
        edges = _read(_list(self._edges))
        if not len(edges):
            return
        nodes, labels = components.connected(edges)
        order = np.argsort(labels, kind="stable")
        pairs = np.stack([labels[order], nodes[order]], axis=1)
        starts = np.flatnonzero(np.concatenate([[True], pairs[1:, 0] != pairs[:-1, 0]]))
        wanted = np.arange(0, len(pairs), _NODES_A_FILE)
        cuts = np.unique(starts[np.searchsorted(starts, wanted, side="right") - 1])
        for number, chunk in enumerate(np.split(pairs, cuts[1:])):
            write_file(self._paths, FileSystems.join(self._clusters, f"{number:05d}"),
                       chunk.astype(_PAIR).tobytes())


class _ByFirst(beam.DoFn):
    """Path or packed edges -> (part, packed edges), those with the same first node in one part."""

    def __init__(self, parts: int, both: bool):
        self._parts, self._both = parts, both

    def process(self, element: str | bytes) -> Iterator[tuple[int, bytes]]:
        edges = _read([element]) if isinstance(element, str) else _pairs([element])
        if self._both:
            edges = components.both_directions(edges)
        for part, those in buckets.by_part(edges[:, 0] % self._parts, edges):
            yield part, those.tobytes()


class _LargeStar(beam.DoFn):
    """(part, packed edges) -> packed edges; how many moved goes to a file."""

    def __init__(self, paths: StagePaths, moved: str):
        self._paths, self._moved = paths, moved

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[bytes]:
        part, blobs = element
        edges, moved = components.large_star(_pairs(blobs))
        write_file(self._paths, FileSystems.join(self._moved, f"large-{part}"),
                   str(moved).encode("ascii"))
        yield edges.astype(_PAIR).tobytes()


class _SmallStar(beam.DoFn):
    """(part, packed edges) -> a file of edges; how many moved goes to another."""

    def __init__(self, paths: StagePaths, moved: str, edges: str):
        self._paths, self._moved, self._edges = paths, moved, edges

    def process(self, element: tuple[int, Iterable[bytes]]) -> None:
        part, blobs = element
        edges, moved = components.small_star(_pairs(blobs))
        write_file(self._paths, FileSystems.join(self._moved, f"small-{part}"),
                   str(moved).encode("ascii"))
        write_file(self._paths, FileSystems.join(self._edges, f"{part:05d}"),
                   edges.astype(_PAIR).tobytes())


class _WriteClusters(beam.DoFn):
    """(part, packed (smallest node, node)) -> a file of clusters."""

    def __init__(self, paths: StagePaths, clusters: str):
        self._paths, self._clusters = paths, clusters

    def process(self, element: tuple[int, Iterable[bytes]]) -> None:
        part, blobs = element
        pairs = _pairs(blobs)
        centres = np.unique(pairs[:, 0])
        pairs = np.unique(np.concatenate([pairs, np.stack([centres, centres], axis=1)]), axis=0)
        write_file(self._paths, FileSystems.join(self._clusters, f"{part:05d}"),
                   pairs.astype(_PAIR).tobytes())


def in_rounds(run: RunPipeline, paths: StagePaths, edges: str, clusters: str, number: int) -> int:
    """Joins edges by alternating large and small stars, a pipeline a round.

    Args:
      run: runs one pipeline.
      paths: of the stage.
      edges: folder of the edges.
      clusters: folder for the clusters; those of rounds lie beside it.
      number: how many edges there are.

    Returns:
      The number of rounds, of which the last one found nothing to move.
    """
    parts = max(_LEAST_PARTS, -(-2 * number // _EDGES_A_PART))
    for count in range(1, _MOST_ROUNDS + 1):
        after, moved = f"{clusters}-round-{count}", f"{clusters}-moved-{count}"
        files.make_folder(after)

        def round(root: beam.Pipeline, before: str = edges, after: str = after,
                  moved: str = moved) -> None:
            _ = (root | "Paths of edges" >> beam.Create(_list(before))
                 | "Both directions" >> beam.ParDo(_ByFirst(parts, both=True))
                 | "Neighbours" >> beam.GroupByKey()
                 | "Large star" >> beam.ParDo(_LargeStar(paths, moved))
                 | "One direction" >> beam.ParDo(_ByFirst(parts, both=False))
                 | "Smaller neighbours" >> beam.GroupByKey()
                 | "Small star" >> beam.ParDo(_SmallStar(paths, moved, after)))

        run(round)
        edges = after
        if not sum(int(files.read_bytes(path)) for path in _list(moved)):
            break
    else:
        raise RuntimeError(f"the clusters of near copies did not settle in {_MOST_ROUNDS} rounds")

    run(lambda root: root
        | "Paths of stars" >> beam.Create(_list(edges))
        | "From the centre" >> beam.Map(_swapped)
        | "By centre" >> beam.ParDo(_ByFirst(parts, both=False))
        | "Centres" >> beam.GroupByKey()
        | "Write clusters" >> beam.ParDo(_WriteClusters(paths, clusters)))
    return count


def cluster_files(start: Any, clusters: str) -> Any:
    """PCollection of the files of clusters, spread over the workers."""
    return (start | "Files of clusters" >> beam.FlatMap(lambda _: _list(clusters))
            | "Spread files" >> beam.Reshuffle())


def read_clusters(path: str) -> Iterator[list[int]]:
    """The nodes, ascending, of each cluster of a file."""
    pairs = _read([path])
    for _, nodes in buckets.by_part(pairs[:, 0], pairs[:, 1]):
        yield np.sort(nodes).tolist()
