import itertools

import pytest

from data_beam.stages.run import balanced_order


def loads(sizes, workers):
    order = balanced_order(sizes, workers)
    assert sorted(order) == list(range(len(sizes)))
    return [sum(sizes[piece] for piece in order[worker::workers]) for worker in range(workers)]


def test_pieces_of_a_hand_computed_case():
    # 9 | 8, then 6 to the second, 5 and 4 in turn: 9 + 5 + 4 = 18, 8 + 6 + 3 = 17.
    assert loads([3, 9, 5, 6, 8, 4], 2) == [18, 17]


@pytest.mark.parametrize("sizes", list(itertools.product([1, 2, 5], repeat=5))[::7])
def test_two_workers_are_near_the_best_division(sizes):
    best = min(max(sum(sizes[i] for i in half), sum(sizes) - sum(sizes[i] for i in half))
               for half in itertools.combinations(range(5), 3))
    # Graham's bound for the unrestricted rule is 7/6; equal numbers of pieces cost a little more.
    assert max(loads(sizes, 2)) <= 4 / 3 * best


def test_no_pieces_and_more_workers_than_pieces():
    assert balanced_order([], 3) == []
    assert loads([4, 7], 5) == [7, 4, 0, 0, 0]
