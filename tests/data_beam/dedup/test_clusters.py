"""Clusters: components by both ways against scipy and networks known by construction, verification
against all pairs, and which documents of a component are kept."""

import itertools
import random
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from data_beam.base.hashing import mix64
from data_beam.config import MinHashConfig
from data_beam.dedup import buckets, components
from data_beam.dedup.buckets import Verifier
from data_beam.dedup.clusters import stars
from data_beam.dedup.signatures import compare, jaccard
from data_beam.dedup.store import rank


def by_stars(edges: np.ndarray, parts: int = 3) -> tuple[dict[int, int], int]:
    """Components by rounds of stars, each part of the edges apart as on several workers."""
    def spread(of, edges):
        outcomes = [of(edges[edges[:, 0] % parts == part]) for part in range(parts)]
        return np.concatenate([e for e, _ in outcomes]), sum(m for _, m in outcomes)

    rounds, moved = 0, 1
    while moved:
        edges, large = spread(components.large_star, components.both_directions(edges))
        edges, small = spread(components.small_star, edges)
        moved, rounds = large + small, rounds + 1
    labels = dict(edges.tolist())
    return labels | {label: label for label in labels.values()}, rounds


def by_scipy(edges: np.ndarray) -> dict[int, int]:
    """The same, by the definition of scipy on a dense graph."""
    size = int(edges.max()) + 1
    _, labels = connected_components(
        coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), (size, size)), directed=False)
    smallest: dict[int, int] = {}
    for node in range(size):
        smallest.setdefault(int(labels[node]), node)
    return {int(node): smallest[int(labels[node])] for node in np.unique(edges)}


def check(edges: np.ndarray, parts: int = 3) -> int:
    truth = by_scipy(edges)
    nodes, labels = components.connected(edges)
    assert dict(zip(nodes.tolist(), labels.tolist(), strict=True)) == truth
    found, rounds = by_stars(edges, parts)
    assert found == truth
    return rounds


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).filter(lambda e: e[0] != e[1]),
                min_size=1, max_size=60), st.integers(1, 5))
def test_any_graph(pairs, parts):
    check(np.array(pairs, np.int64), parts)


def test_long_paths_and_hubs_converge_in_few_rounds():
    line = np.stack([np.arange(4095), np.arange(1, 4096)], axis=1)
    # 4,096 nodes in a row: log2 is 12.
    assert check(line) <= 13
    shuffled = np.random.default_rng(0).permutation(4096)
    assert check(shuffled[line]) <= 13
    assert check(np.stack([np.full(999, 500), np.r_[0:500, 501:1000]], axis=1)) <= 3


def test_nodes_of_64_bits():
    edges = np.array([[2**40, 2**62], [2**62, 5], [7, 2**50]])
    nodes, labels = components.connected(edges)
    assert nodes.tolist() == [5, 7, 2**40, 2**50, 2**62] and labels.tolist() == [5, 7, 5, 7, 5]
    assert by_stars(edges)[0] == dict(zip(nodes.tolist(), labels.tolist(), strict=True))


def verified(sets: dict[int, np.ndarray], found: list[list[int]], threshold: float,
             containment: float = 0.0):
    verifier = Verifier(threshold, containment, lambda node: len(sets[node]), sets.__getitem__)
    for bucket in found:
        verifier.add(bucket)
    return verifier


def clusters(edges) -> set[frozenset[int]]:
    if not edges:
        return set()
    nodes, labels = components.connected(np.array(edges))
    return {frozenset(nodes[labels == label].tolist()) for label in np.unique(labels)}


def test_a_bucket_yields_the_components_of_all_its_similar_pairs():
    # The hub is no copy of the others: a star of the smallest node alone would lose them.
    for seed in range(30):
        generator = random.Random(seed)
        centres = [[generator.randrange(10**9) for _ in range(40)] for _ in range(4)]
        sets = {}
        for node in range(24):
            values = list(generator.choice(centres))
            for _ in range(generator.randrange(12)):
                values[generator.randrange(40)] = generator.randrange(10**9)
            sets[node] = np.unique(np.array(values, np.uint64))
        truth = [(a, b) for a, b in itertools.combinations(sets, 2)
                 if jaccard(sets[a], sets[b]) >= 0.6]
        verifier = verified(sets, [list(sets)], 0.6)
        assert set(verifier.edges) <= set(truth)
        assert clusters(verifier.edges) == clusters(truth)
        assert verifier.comparisons <= 24 * 23 // 2


def test_forgetting_failures_changes_nothing_but_time(monkeypatch):
    sets = {node: np.sort(mix64(np.arange(node * 30, node * 30 + 100, dtype=np.uint64)))
            for node in range(9)}
    found = [[0, 1, 2, 3], [4, 5, 6], [0, 1, 2, 3], [2, 3, 4]]
    remembering = verified(sets, found, 0.6)
    monkeypatch.setattr(buckets, "REMEMBERED", 0)
    forgetful = verified(sets, found, 0.6)
    assert forgetful.edges == remembering.edges == []  # 70 / 130 = 0.54 at best
    assert remembering.comparisons == 6 + 3 + 2 and forgetful.comparisons == 2 * 6 + 3 + 3


SAME = range(100)


@pytest.mark.parametrize(("sets", "found", "containment", "edges", "comparisons"), [
    ([SAME, SAME, SAME], [[0, 1]], 0.0, [(0, 1)], 1),  # only pairs that share a bucket
    ([SAME, range(70)], [[0, 1]], 0.0, [(0, 1)], 1),
    # Sizes rule out 60 / 100 without a comparison; a pair that failed is not compared again.
    ([SAME, range(60), range(1000, 1090)], [[0, 1], [0, 2], [0, 1, 2]], 0.0, [], 1),
    ([range(940, 1040), range(1000)], [[0, 1]], 0.0, [], 0),
    ([range(940, 1040), range(1000)], [[0, 1]], 0.6, [(0, 1)], 1),
    ([range(940, 1040), range(1000)], [[0, 1]], 0.61, [], 1),
    # A hot bucket of copies costs a comparison each.
    ([SAME] * 2000, [range(2000)] * 3, 0.0, [(0, node) for node in range(1, 2000)], 1999),
])
def test_pairs_of_a_bucket(sets, found, containment, edges, comparisons):
    arrays = {node: np.array(each, np.uint64) for node, each in enumerate(sets)}
    verifier = verified(arrays, found, 0.7, containment)
    assert (verifier.edges, verifier.comparisons) == (edges, comparisons)


def row(node: int, id: str, characters: int, quality: float = 0.0) -> dict:
    return {"node": node, "id": id, "characters": characters, "quality": quality}


def test_the_longest_ranks_first_then_the_best_then_the_smallest_id():
    rows = [row(1, "c", 10, 5.0), row(2, "b", 12, 1.0), row(3, "a", 12, 1.0), row(4, "d", 12, 0.5)]
    for order in itertools.permutations(rows):
        assert [each["id"] for each in sorted(order, key=rank)] == ["a", "b", "d", "c"]


def starred(sets: list[range], **settings_) -> list[list[int]]:
    """Nodes of each cluster, the one kept first, of documents of these shingles, in rank order."""
    shingles = [np.array(each, np.uint64) for each in sets]
    store = SimpleNamespace(size=lambda node: len(shingles[node]), shingles=shingles.__getitem__)
    search = SimpleNamespace(threshold=0.7, minhash=MinHashConfig(True, **settings_))
    rows = [row(node, str(node), 1) for node in range(len(sets))]
    found = stars(rows, store, search)  # pyright: ignore[reportArgumentType]
    for star in found:
        kept = shingles[star[0][0]["node"]]
        assert all((similarity, held) == compare(kept, shingles[each["node"]])
                   for each, similarity, held in star)
    return [[each["node"] for each, *_ in star] for star in found]


# Neighbours 85 / 115 = 0.74 similar, ends 25 / 175 = 0.14.
CHAIN = [range(15 * i, 15 * i + 100) for i in range(6)]


@pytest.mark.parametrize(("sets", "settings_", "expected"), [
    (CHAIN, {}, [[0, 1], [2, 3], [4, 5]]),
    (CHAIN[1:] + CHAIN[:1], {}, [[0, 1, 5], [2, 3], [4]]),
    (CHAIN, {"clustering": "component"}, [[0, 1, 2, 3, 4, 5]]),
    ([CHAIN[1], CHAIN[0], CHAIN[2]], {}, [[0, 1, 2]]),              # a hub that ranks first
    ([CHAIN[0], CHAIN[2], CHAIN[1]], {}, [[0, 2], [1]]),            # and one that ranks last
    ([range(100), range(100), range(2, 100), range(90)], {}, [[0, 1, 2, 3]]),  # mutual copies
    ([range(1000), range(940, 1040)], {}, [[0], [1]]),
    ([range(1000), range(940, 1040)], {"containment": 0.6}, [[0, 1]]),
    ([range(1000), range(940, 1040)], {"containment": 0.61}, [[0], [1]]),
    ([range(940, 1040), range(1000)], {"containment": 0.6}, [[0], [1]]),  # only a longer one holds
])
def test_a_document_is_dropped_only_as_a_copy_of_one_that_is_kept(sets, settings_, expected):
    assert starred(sets, **settings_) == expected
