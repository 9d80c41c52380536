import bisect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxlm.data.packing import BestFitLayout, ConcatLayout

LENGTHS = st.lists(st.integers(0, 40), max_size=60)


def used_tokens(layout, row_length):
    """Every (document, position) of all rows, in order, and the rows' sizes."""
    used, sizes = [], []
    for row in range(layout.rows):
        pieces = layout.pieces(row)
        assert all(stop > start for _, start, stop in pieces)
        sizes.append(sum(stop - start for _, start, stop in pieces))
        used += [(document, i) for document, start, stop in pieces for i in range(start, stop)]
    assert all(0 < size <= row_length for size in sizes)
    return used, sizes


def all_tokens(lengths):
    return [(document, i) for document, length in enumerate(lengths) for i in range(length)]


@given(LENGTHS, st.integers(1, 17))
def test_concat_is_the_stream_cut_into_rows(lengths, row_length):
    layout = ConcatLayout(np.array(lengths, np.int32), row_length)
    used, sizes = used_tokens(layout, row_length)
    assert used == all_tokens(lengths)  # the same tokens in the same order
    assert all(size == row_length for size in sizes[:-1])


@given(LENGTHS, st.integers(1, 17), st.integers(1, 20), st.integers(0, 60))
def test_best_fit_uses_every_token_once_and_cuts_only_long_documents(
        lengths, row_length, window, cut):
    cut = min(cut, len(lengths))
    shards = [cut, 0, len(lengths) - cut]  # an empty shard among them
    layout = BestFitLayout(np.array(lengths, np.int32), row_length, shards, window)
    used, _ = used_tokens(layout, row_length)
    assert sorted(used) == all_tokens(lengths)
    for row in range(layout.rows):
        pieces = layout.pieces(row)
        documents = [document for document, _, _ in pieces]
        assert documents == sorted(set(documents))
        assert len({document < cut for document in documents}) == 1, "a row spans two shards"
        for document, start, stop in pieces:
            if lengths[document] <= row_length:
                assert (start, stop) == (0, lengths[document])
            else:
                assert start % row_length == 0
                assert stop == min(lengths[document], start + row_length)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=80))
@settings(max_examples=200)
def test_best_fit_needs_as_many_rows_as_a_plain_search(lengths):
    row_length = 30
    rooms: list[int] = []  # ascending free space, the textbook algorithm
    for length in sorted(lengths, reverse=True):
        where = bisect.bisect_left(rooms, length)
        room = rooms.pop(where) if where < len(rooms) else row_length
        if room > length:
            bisect.insort(rooms, room - length)
    layout = BestFitLayout(np.array(lengths, np.int32), row_length, [len(lengths)])
    free = sorted(row_length - sum(stop - start for _, start, stop in layout.pieces(row))
                  for row in range(layout.rows))
    assert [room for room in free if room] == rooms


def test_best_fit_by_hand():
    # 6+4, 5+3+2, 23 = 10 + 10 + 3, and that rest of 3 goes with 7.
    layout = BestFitLayout(np.array([6, 23, 5, 3, 4, 7, 2], np.int32), 10, [7])
    rows = sorted(layout.pieces(row) for row in range(layout.rows))
    assert rows == [
        [(0, 0, 6), (4, 0, 4)],
        [(1, 0, 10)],
        [(1, 10, 20)],
        [(1, 20, 23), (5, 0, 7)],
        [(2, 0, 5), (3, 0, 3), (6, 0, 2)],
    ]


def test_nothing_gives_no_rows():
    empty = np.zeros(0, np.int32)
    assert ConcatLayout(empty, 8).rows == 0
    assert BestFitLayout(empty, 8, [0, 0]).rows == 0


def test_counts_beyond_32_bits():
    lengths = np.full(5, 2**30, np.int32)
    layout = ConcatLayout(lengths, 2**20)
    assert layout.rows == 5 * 2**10
    assert layout.pieces(layout.rows - 1) == [(4, 2**30 - 2**20, 2**30)]


@pytest.mark.parametrize("kind", [ConcatLayout, lambda *a: BestFitLayout(*a, [3])])
def test_document_longer_than_many_rows(kind):
    layout = kind(np.array([3, 1000, 3], np.int32), 8)
    used, _ = used_tokens(layout, 8)
    assert sorted(used) == all_tokens([3, 1000, 3])
