"""Near copies of held-out documents in another split.

The documents of validation and test, a few per cent of a corpus, are held in memory: their shingles
(8 bytes each) and the keys of their bands. All documents then pass by one at a time, so that memory
does not grow with the training data. Pairs that share a key are compared exactly.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from data_beam.dedup import minhash
from data_beam.dedup.shingles import distinct, jaccard, shingles

COLUMNS = ["id", "split", "source", "path", "record", "sha256", "text"]
_FINDING = 0.999


@dataclasses.dataclass(frozen=True)
class Leak:
    """Two documents of different splits that are copies.

    Attributes:
      similarity: exact Jaccard similarity of their shingles; 1 for equal texts.
      first, second: id, split, source, path and record number, in order of ids.
    """

    similarity: float
    first: dict[str, Any]
    second: dict[str, Any]


def _about(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("id", "split", "source", "path", "record")}


class LeakFinder:
    """Compares documents with those held out.

    Args:
      held_out: rows with `COLUMNS` of all documents that are not for training.
      threshold: smallest similarity of a copy.
      permutations: of the signatures.
      word_ngram, character_ngram: sizes of shingles.

    Attributes:
      bands, rows: chosen so that a pair at the threshold is found with probability 0.999 or more.
    """

    def __init__(self, held_out: Iterable[dict[str, Any]], threshold: float, permutations: int,
                 word_ngram: int = 5, character_ngram: int = 5):
        self._threshold = threshold
        self._sizes = word_ngram, character_ngram
        self.bands, self.rows = minhash.choose_bands(threshold, permutations, _FINDING)
        self._held: list[dict[str, Any]] = []
        self._shingles: list[np.ndarray] = []
        self._by_sha256: dict[str, list[int]] = {}
        keys: list[list[int]] = []
        for row in held_out:
            values = distinct(shingles(row["text"], *self._sizes))
            self._by_sha256.setdefault(row["sha256"], []).append(len(self._held))
            self._held.append(_about(row))
            self._shingles.append(values)
            keys.append(self._keys(values))
        flat = np.array([key for these in keys for key in these], np.uint64)
        owners = np.repeat(np.arange(len(keys)), [len(these) for these in keys])
        order = np.argsort(flat, kind="stable")
        self._table, self._owners = flat[order], owners[order]

    def _keys(self, values: np.ndarray) -> list[int]:
        if not len(values):
            return []
        return minhash.band_keys(minhash.signature(values, self.bands * self.rows), self.bands,
                                 self.rows)

    @property
    def probability(self) -> float:
        """That a pair at the threshold is found."""
        return minhash.candidate_probability(self._threshold, self.bands, self.rows)

    def check(self, row: dict[str, Any]) -> Iterator[Leak]:
        """The leaks between a document and those held out; of two that are both held out, from
        that with the larger id."""
        values = shingles(row["text"], *self._sizes)
        same = set(self._by_sha256.get(row["sha256"], ()))
        keys = np.array(self._keys(values), np.uint64)
        first = np.searchsorted(self._table, keys, side="left")
        last = np.searchsorted(self._table, keys, side="right")
        candidates = same.union(*(self._owners[a:b].tolist() for a, b in zip(
            first[first < last].tolist(), last[first < last].tolist(), strict=True)))
        wanted = sorted(c for c in candidates if self._another(self._held[c], row))
        if not wanted:
            return
        values = distinct(values)
        for candidate in wanted:
            similarity = 1.0 if candidate in same else jaccard(values, self._shingles[candidate])
            if similarity >= self._threshold:
                pair = sorted((_about(row), self._held[candidate]), key=lambda about: about["id"])
                yield Leak(similarity, *pair)

    @staticmethod
    def _another(held: dict[str, Any], row: dict[str, Any]) -> bool:
        if held["split"] == row["split"]:
            return False
        return row["split"] == "train" or held["id"] < row["id"]


def find_leaks(rows: Callable[[], Iterator[dict[str, Any]]], threshold: float, permutations: int,
               word_ngram: int, character_ngram: int) -> tuple[list[Leak], LeakFinder]:
    """All leaks of a corpus, the most similar first.

    Args:
      rows: reads the corpus from the start, with `COLUMNS`; called twice.
      threshold, permutations, word_ngram, character_ngram: as for `LeakFinder`.
    """
    finder = LeakFinder((row for row in rows() if row["split"] != "train"), threshold, permutations,
                        word_ngram, character_ngram)
    leaks = [leak for row in rows() for leak in finder.check(row)]
    leaks.sort(key=lambda leak: (-leak.similarity, leak.first["id"], leak.second["id"]))
    return leaks, finder
