"""Connected components of a graph given by its edges.

Either by one worker that holds them all (scipy), or by alternating large stars and small stars
(Kiveris, Lattanzi, Mirrokni, Rastogi, Vassilvitskii 2014), each of which needs only the neighbours
of one node at a time: O(log^2 n) rounds, a handful in practice. Both name a component by its
smallest node.
"""

import numpy as np


def connected(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Components by one worker.

    Args:
      edges: [n, 2] int64.

    Returns:
      [nodes] int64 ascending, and [nodes] int64: the smallest node of the component of each.
    """
    # Here, because importing takes a moment and few workers come to it.
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
    """Hangs the larger neighbours of each node on the smallest node of its star.

    Args:
      edges: [n, 2] int64, both directions of every edge; all those that begin in the same node.

    Returns:
      [m, 2] int64 edges from a node to a smaller one, and the number of edges that moved.
    """
    if not len(edges):
        return edges, 0
    edges, _, smallest = _stars(edges)
    larger = edges[:, 1] > edges[:, 0]
    result = np.stack([edges[larger, 1], smallest[larger]], axis=1)
    return result, int(np.count_nonzero(smallest[larger] != edges[larger, 0]))


def small_star(edges: np.ndarray) -> tuple[np.ndarray, int]:
    """Hangs each node and its smaller neighbours on the smallest of them.

    Args:
      edges: [n, 2] int64, from a node to a smaller one; all those that begin in the same node.

    Returns:
      [m, 2] int64 edges from a node to a smaller one, and the number of edges that moved.
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
