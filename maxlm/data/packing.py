"""How documents become rows: layouts computed from document lengths alone.

A layout of one source knows its number of rows, and for each row its pieces: token ranges of
documents, laid one after the other from the start of the row. Both layouts use every token of
every document exactly once.
"""

from collections.abc import Sequence

import numpy as np

BEST_FIT_WINDOW = 4096


class ConcatLayout:
    """Documents end to end, cut every `row_length` tokens. Only the last row is not full."""

    def __init__(self, lengths: np.ndarray, row_length: int):
        self._row_length = row_length
        self._lengths = lengths
        self._ends = np.cumsum(lengths, dtype=np.int64)
        self._total = int(self._ends[-1]) if len(lengths) else 0
        self.rows = -(-self._total // row_length)

    def pieces(self, row: int) -> list[tuple[int, int, int]]:
        """(document, start, stop) of each piece of a row, in order."""
        begin = row * self._row_length
        end = min(begin + self._row_length, self._total)
        document = int(self._ends.searchsorted(begin, "right"))
        pieces = []
        while begin < end:
            document_end = int(self._ends[document])
            length = int(self._lengths[document])
            if length:
                start = begin - (document_end - length)
                stop = min(document_end, end) - (document_end - length)
                pieces.append((document, start, stop))
                begin += stop - start
            document += 1
        return pieces


class BestFitLayout:
    """No document is cut unless it is longer than a row (arXiv:2404.10830).

    A longer document gives full rows and a rest. Whole documents and rests go, longest first, each
    into the fullest row that has room (best-fit decreasing), within windows of consecutive
    documents of a shard, so that a row's documents lie near each other.
    """

    def __init__(self, lengths: np.ndarray, row_length: int, shard_sizes: Sequence[int],
                 window: int = BEST_FIT_WINDOW):
        """
        Args:
          lengths: [documents] tokens of each document.
          row_length: tokens in a row.
          shard_sizes: documents of each shard; they sum to len(lengths).
          window: documents that are packed together.
        """
        index_type = np.int32 if len(lengths) < 2**31 else np.int64
        documents: list[np.ndarray] = []
        starts: list[np.ndarray] = []
        counts: list[np.ndarray] = []
        begin = 0
        for size in shard_sizes:
            for first in range(begin, begin + size, window):
                part = lengths[first:min(first + window, begin + size)].astype(np.int64)
                document, start, row = _pack_window(part, row_length)
                order = np.lexsort((start, document, row))
                documents.append((document[order] + first).astype(index_type))
                starts.append(start[order].astype(np.int32))
                if len(row):
                    counts.append(np.bincount(row))
            begin += size
        empty = [np.zeros(0, np.int64)]
        self._documents = np.concatenate(documents or empty)
        self._starts = np.concatenate(starts or empty)
        self._first = np.concatenate([[0], np.cumsum(np.concatenate(counts or empty))])
        self._lengths = lengths
        self._row_length = row_length
        self.rows = len(self._first) - 1

    def pieces(self, row: int) -> list[tuple[int, int, int]]:
        """(document, start, stop) of each piece of a row, in order of documents."""
        pieces = []
        for i in range(int(self._first[row]), int(self._first[row + 1])):
            document, start = int(self._documents[i]), int(self._starts[i])
            stop = min(int(self._lengths[document]), start + self._row_length)
            pieces.append((document, start, stop))
        return pieces


def _pack_window(lengths: np.ndarray, row_length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fragments of the documents of a window: document, start and row of each, [fragments]."""
    full = lengths // row_length
    rest = lengths - full * row_length
    # Full rows first: fragment k of document d is its tokens from k * row_length.
    document = np.repeat(np.arange(len(lengths)), full)
    number = np.arange(len(document)) - np.repeat(np.cumsum(full) - full, full)
    rests = np.flatnonzero(rest)
    rests = rests[np.argsort(-rest[rests], kind="stable")]
    rows = _best_fit(rest[rests].tolist(), row_length)
    return (np.concatenate([document, rests]),
            np.concatenate([number * row_length, full[rests] * row_length]),
            np.concatenate([np.arange(len(document)), np.asarray(rows, np.int64) + len(document)]))


def _best_fit(lengths: list[int], row_length: int) -> list[int]:
    """Row of each length: the fullest with room, the newest of equals; a new one when none has.

    The rooms that occur are bits of one integer, so the smallest room that is enough is found
    without a search.
    """
    rows_by_room: list[list[int]] = [[] for _ in range(row_length + 1)]
    rooms = 0
    opened = 0
    assigned = []
    for length in lengths:
        enough = rooms >> length
        if enough:
            room = length + (enough & -enough).bit_length() - 1
            rows = rows_by_room[room]
            row = rows.pop()
            if not rows:
                rooms ^= 1 << room
        else:
            room, row = row_length, opened
            opened += 1
        left = room - length
        if left:
            if not rows_by_room[left]:
                rooms |= 1 << left
            rows_by_room[left].append(row)
        assigned.append(row)
    return assigned
