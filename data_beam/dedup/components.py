"""Connected components of the graph of copies, by one worker or by all of them in rounds.

One worker holds all edges (scipy). Rounds alternate large stars and small stars (Kiveris, Lattanzi,
Mirrokni, Rastogi, Vassilvitskii 2014), each of which needs only the neighbours of one node at a
time: O(log^2 n) rounds, a handful in practice. Both name a component by its smallest node.

Edges are in files of packed pairs of int64. Components are written to files of packed (smallest
node, node), some hundred thousand nodes a file, the nodes of a component together in one file.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.io.filesystems import FileSystems

from data_beam.base import files
from data_beam.base.stage_context import StagePaths
from data_beam.dedup import buckets
from data_beam.dedup.texts import write_file

RunPipeline = Callable[[Callable[[beam.Pipeline], None]], None]

_NODES_A_FILE = 200_000
_EDGES_A_PART = 2**22
_LEAST_PARTS = 4
_NODE = np.dtype("<i8")
_MOST_ROUNDS = 64  # log2 squared of 10^9 nodes would be 900; under 20 were ever needed


# On arrays.

def connected(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Components of [n, 2] int64 edges, by one worker: [nodes] int64 ascending, and [nodes] int64,
    the smallest node of the component of each."""
    # Imported here: it takes a second, and few workers need it.
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    nodes, places = np.unique(edges.ravel(), return_inverse=True)
    places = places.reshape(-1, 2)
    size = len(nodes)
    graph = coo_array((np.ones(len(edges), np.int8), (places[:, 0], places[:, 1])), (size, size))
    count, labels = connected_components(graph, directed=False)
    smallest = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(smallest, labels, nodes)
    return nodes, smallest[labels]


def _stars(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges without repeats, ordered by their first node; places where a first node begins; and
    for each edge the smallest of its first node and all the neighbours of that."""
    edges = np.unique(edges, axis=0)
    starts = np.flatnonzero(np.concatenate([[True], edges[1:, 0] != edges[:-1, 0]]))
    sizes = np.diff(starts, append=len(edges))
    smallest = np.minimum(np.minimum.reduceat(edges[:, 1], starts), edges[starts, 0])
    return edges, starts, np.repeat(smallest, sizes)


def large_star(edges: np.ndarray) -> tuple[np.ndarray, int]:
    """Links the larger neighbours of each node to the smallest node of its star.

    Takes [n, 2] int64, both directions of every edge; all those that begin in the same node.
    Returns [m, 2] int64 edges from a node to a smaller one, and the number of edges that changed.
    """
    if not len(edges):
        return edges, 0
    edges, _, smallest = _stars(edges)
    larger = edges[:, 1] > edges[:, 0]
    result = np.stack([edges[larger, 1], smallest[larger]], axis=1)
    return result, int(np.count_nonzero(smallest[larger] != edges[larger, 0]))


def small_star(edges: np.ndarray) -> tuple[np.ndarray, int]:
    """Links each node and its smaller neighbours to the smallest of them.

    Takes [n, 2] int64, from a node to a smaller one; all those that begin in the same node. Returns
    [m, 2] int64 edges from a node to a smaller one, and the number of edges that changed.
    """
    if not len(edges):
        return edges, 0
    edges, starts, smallest = _stars(edges)
    moved = edges[:, 1] != smallest
    result = np.concatenate([
        np.stack([edges[starts, 0], smallest[starts]], axis=1),
        np.stack([edges[moved, 1], smallest[moved]], axis=1)])
    return result, int(np.count_nonzero(moved))


def both_directions(edges: np.ndarray) -> np.ndarray:
    """[2 n, 2]: each edge as (a, b) and as (b, a)."""
    return np.concatenate([edges, edges[:, ::-1]])


# On files.

def _pairs(blobs: Iterable[bytes]) -> np.ndarray:
    return buckets.unpack(blobs, _NODE).reshape(-1, 2)


def _list(folder: str) -> list[str]:
    return sorted(entry.path for entry in files.match(folder, "*"))


def read_edges(paths: Iterable[str]) -> np.ndarray:
    """[n, 2] int64 from files of edges."""
    return _pairs([files.read_bytes(path) for path in paths])


def write_edges(paths: StagePaths, path: str, edges: Any) -> None:
    """A file of edges, or of a component's pairs."""
    write_file(paths, path, np.asarray(edges, _NODE).reshape(-1, 2).tobytes())


def component_files(start: Any, folder: str) -> Any:
    """PCollection of the files of components, spread over the workers."""
    return (start | "Files of components" >> beam.FlatMap(lambda _: _list(folder))
            | "Spread files" >> beam.Reshuffle())


def read_components(path: str) -> Iterator[list[int]]:
    """The nodes, ascending, of each component of a file."""
    pairs = read_edges([path])
    for _, nodes in buckets.by_part(pairs[:, 0], pairs[:, 1]):
        yield np.sort(nodes).tolist()


def by_one_worker(_: Any, paths: StagePaths, edges: str, output: str) -> None:
    """Anything -> files of components in the folder `output`, once."""
    found = read_edges(_list(edges))
    if not len(found):
        return
    nodes, labels = connected(found)
    order = np.argsort(labels, kind="stable")
    pairs = np.stack([labels[order], nodes[order]], axis=1)
    starts = np.flatnonzero(np.concatenate([[True], pairs[1:, 0] != pairs[:-1, 0]]))
    wanted = np.arange(0, len(pairs), _NODES_A_FILE)
    cuts = np.unique(starts[np.searchsorted(starts, wanted, side="right") - 1])
    for number, chunk in enumerate(np.split(pairs, cuts[1:])):
        write_edges(paths, FileSystems.join(output, f"{number:05d}"), chunk)


def _by_first(edges: np.ndarray, parts: int) -> Iterator[tuple[int, bytes]]:
    """(part, packed edges): those with the same first node are in one part."""
    for part, those in buckets.by_part(edges[:, 0] % parts, edges):
        yield part, those.tobytes()


def _star(element: tuple[int, Iterable[bytes]], paths: StagePaths, star: Any, moved: str
          ) -> tuple[int, np.ndarray]:
    """(part, packed edges) -> (part, edges); the number that changed is written to a file."""
    part, blobs = element
    edges, count = star(_pairs(blobs))
    write_file(paths, FileSystems.join(moved, f"{star.__name__}-{part}"),
               str(count).encode("ascii"))
    return part, edges


def _write_components(element: tuple[int, Iterable[bytes]], paths: StagePaths, output: str) -> None:
    """(part, packed (smallest node, node)) -> a file of components."""
    part, blobs = element
    pairs = _pairs(blobs)
    centres = np.unique(pairs[:, 0])
    pairs = np.unique(np.concatenate([pairs, np.stack([centres, centres], axis=1)]), axis=0)
    write_edges(paths, FileSystems.join(output, f"{part:05d}"), pairs)


def in_rounds(run: RunPipeline, paths: StagePaths, edges: str, output: str, number: int) -> int:
    """Finds components by alternating large and small stars, a pipeline a round; returns the number
    of rounds, of which the last one changed nothing.

    `edges` is the folder of the edges, of which there are `number`; `output` is the folder for the
    components, and those of rounds are beside it.
    """
    parts = max(_LEAST_PARTS, -(-2 * number // _EDGES_A_PART))
    for count in range(1, _MOST_ROUNDS + 1):
        after, moved = f"{output}-round-{count}", f"{output}-moved-{count}"
        files.make_folder(after)

        def round(root: beam.Pipeline, before: str = edges, after: str = after,
                  moved: str = moved) -> None:
            _ = (root | "Paths of edges" >> beam.Create(_list(before))
                 | "Both directions" >> beam.FlatMap(
                     lambda file: _by_first(both_directions(read_edges([file])), parts))
                 | "Neighbours" >> beam.GroupByKey()
                 | "Large star" >> beam.Map(_star, paths, large_star, moved)
                 | "One direction" >> beam.FlatMap(lambda found: _by_first(found[1], parts))
                 | "Smaller neighbours" >> beam.GroupByKey()
                 | "Small star" >> beam.Map(_star, paths, small_star, moved)
                 | "Write edges" >> beam.Map(lambda found: write_edges(
                     paths, FileSystems.join(after, f"{found[0]:05d}"), found[1])))

        run(round)
        edges = after
        if not sum(int(files.read_bytes(path)) for path in _list(moved)):
            break
    else:
        raise RuntimeError(f"the components of near copies did not settle in {_MOST_ROUNDS} rounds")

    run(lambda root: root
        | "Paths of stars" >> beam.Create(_list(edges))
        | "By centre" >> beam.FlatMap(
            lambda file: _by_first(read_edges([file])[:, ::-1], parts))
        | "Centres" >> beam.GroupByKey()
        | "Write components" >> beam.Map(_write_components, paths, output))
    return count
