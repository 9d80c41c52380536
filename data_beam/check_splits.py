"""Are near copies of documents in different splits of a corpus?

    python -m data_beam.check_splits --corpus=CORPUS

reads CORPUS/documents, computes the shingles and signatures of every text again (it uses nothing
that stage `dedup` computed) and looks for documents of validation and test that have a near copy in
another split. It prints a JSON object with the pairs to standard output and one line to
standard error; the exit status is 0 without a leak, 1 with one and 2 for a mistake.

Copies are documents of which the sets of shingles (5 words, or 5 characters in Chinese and other
scripts without spaces) have at least the Jaccard similarity --threshold, or the very same text. A
pair at the threshold is found with probability 0.999 or more, more similar ones nearly always;
the similarity that is reported is exact. The shingles (8 bytes each) and band keys of validation
and test are held in memory; all documents are then read one at a time, so that memory does not grow
with the training data.

How to get rid of leaks: set dedup.minhash.enabled in the recipe. Then near copies are dropped, and
documents over dedup.minhash.split_similarity share a split.
"""

import collections
import dataclasses
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from data_beam.dedup.signatures import (
    band_keys,
    candidate_probability,
    choose_bands,
    distinct,
    jaccard,
    shingles,
    signature,
)
from data_beam.readers.corpus_files import find_documents, read_rows
from maxlm.config import command_line
from maxlm.config.schema import ConfigError

COLUMNS = ["id", "split", "source", "path", "record", "sha256", "text"]
_PROGRESS_SECONDS = 5.0
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
        self.bands, self.rows = choose_bands(threshold, permutations, _FINDING)
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
        return band_keys(signature(values, self.bands * self.rows), self.bands, self.rows)

    @property
    def probability(self) -> float:
        """That a pair at the threshold is found."""
        return candidate_probability(self._threshold, self.bands, self.rows)

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


class _Reader:
    """Reads the documents of a corpus, and prints its progress every few seconds."""

    def __init__(self, corpus: str):
        self._files = find_documents(corpus)
        self.by_split: collections.Counter[str] = collections.Counter()
        self._passes = 0

    def __call__(self) -> Iterator[dict[str, Any]]:
        self._passes += 1
        self.by_split.clear()
        last = time.monotonic()
        for file in self._files.files:
            for row in read_rows(file.path, COLUMNS):
                self.by_split[row["split"]] += 1
                if time.monotonic() - last > _PROGRESS_SECONDS:
                    last = time.monotonic()
                    print(f"pass {self._passes} of 2: {self.by_split.total():,} of "
                          f"{self._files.rows:,} documents", file=sys.stderr, flush=True)
                yield row


def check(corpus: str, threshold: float, permutations: int, word_ngram: int, character_ngram: int,
          show: int) -> dict[str, Any]:
    """The report on a corpus.

    Args:
      corpus: its folder.
      threshold: smallest similarity of a copy.
      permutations: of the signatures.
      word_ngram, character_ngram: sizes of shingles.
      show: pairs listed at most.

    Raises:
      ConfigError: there is no complete corpus.
    """
    reader = _Reader(corpus)
    leaks, finder = find_leaks(reader, threshold, permutations, word_ngram, character_ngram)
    return {
        "corpus": corpus, "threshold": threshold, "bands": finder.bands, "rows": finder.rows,
        "probability_at_threshold": finder.probability, "documents": dict(sorted(
            reader.by_split.items())),
        "leaks": len(leaks), "pairs": [dataclasses.asdict(leak) for leak in leaks[:show]]}


def main(argv: Sequence[str]) -> int:
    """The command; see the module's docstring."""
    parser = command_line.Parser(prog="python -m data_beam.check_splits", description=__doc__)
    parser.add_argument("--corpus", required=True, help="folder that data_beam.prepare wrote")
    parser.add_argument("--threshold", type=float, default=0.7,
                        help="similarity from which documents are copies (default: %(default)s)")
    parser.add_argument("--permutations", type=int, default=128,
                        help="length of the signatures (default: %(default)s)")
    parser.add_argument("--word_ngram", type=int, default=5, help="words of a shingle "
                        "(default: %(default)s)")
    parser.add_argument("--character_ngram", type=int, default=5, help="characters of a shingle "
                        "(default: %(default)s)")
    parser.add_argument("--show", type=int, default=100, help="pairs listed at most "
                        "(default: %(default)s)")
    arguments = parser.parse_args(argv)
    if not 0 < arguments.threshold <= 1:
        raise ConfigError(f"--threshold: must be above 0 and at most 1, not {arguments.threshold}")
    for name in ("permutations", "word_ngram", "character_ngram"):
        if getattr(arguments, name) < 1:
            raise ConfigError(f"--{name}: must be at least 1")
    if arguments.show < 0:
        raise ConfigError("--show: must not be negative")
    report = check(arguments.corpus, arguments.threshold, arguments.permutations,
                   arguments.word_ngram, arguments.character_ngram, arguments.show)
    print(json.dumps(report, indent=1, ensure_ascii=False), flush=True)
    counts = ", ".join(f"{count:,} {split}" for split, count in report["documents"].items())
    found = f"{report['leaks']:,} near copies" if report["leaks"] else "no near copies"
    print(f"{arguments.corpus}: {found} across splits at similarity {arguments.threshold:g} "
          f"({counts or 'no documents'})", file=sys.stderr)
    return 1 if report["leaks"] else 0


if __name__ == "__main__":
    command_line.run_command(main)
