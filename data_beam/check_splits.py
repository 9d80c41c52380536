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
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from data_beam.dedup import signatures
from data_beam.readers.corpus_files import find_documents, read_rows
from data_beam.runners.progress import StatusLine
from maxlm.cli import command_line
from maxlm.config.schema import ConfigError

COLUMNS = ["id", "split", "source", "path", "record", "sha256", "text"]
_FINDING = 0.999
_ABOUT = ("id", "split", "source", "path", "record")


@dataclasses.dataclass(frozen=True)
class Leak:
    """Two documents of different splits that are copies."""

    similarity: float  # exact Jaccard similarity of their shingles; 1 for equal texts
    first: dict[str, Any]  # id, split, source, path and record number; the smaller id first
    second: dict[str, Any]


def _about(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in _ABOUT}


class LeakFinder:
    """Compares documents with those held out: `held_out` has rows with `COLUMNS` of all documents
    that are not for training. `bands` and `rows` are chosen so that a pair at the threshold (the
    smallest similarity of a copy) is found with `probability` 0.999 or more."""

    def __init__(self, held_out: Iterable[dict[str, Any]], threshold: float, permutations: int,
                 word_ngram: int = 5, character_ngram: int = 5):
        self._threshold = threshold
        self._sizes = word_ngram, character_ngram
        self.bands, self.rows = signatures.choose_bands(threshold, permutations, _FINDING)
        self.probability = signatures.candidate_probability(threshold, self.bands, self.rows)
        self._held: list[dict[str, Any]] = []
        self._shingles: list[np.ndarray] = []
        self._by_sha256: dict[str, list[int]] = {}
        keys: list[list[int]] = []
        for row in held_out:
            values = np.unique(signatures.shingles(row["text"], *self._sizes))
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
        signature = signatures.signature(values, self.bands * self.rows)
        return signatures.band_keys(signature, self.bands, self.rows)

    def check(self, row: dict[str, Any]) -> Iterator[Leak]:
        """The leaks between a document and those held out; of two held out, from the larger id."""
        values = signatures.shingles(row["text"], *self._sizes)
        same = set(self._by_sha256.get(row["sha256"], ()))
        keys = np.array(self._keys(values), np.uint64)
        first = np.searchsorted(self._table, keys, side="left")
        last = np.searchsorted(self._table, keys, side="right")
        candidates = same.union(*(self._owners[a:b].tolist() for a, b in zip(
            first[first < last].tolist(), last[first < last].tolist(), strict=True)))
        values = np.unique(values) if candidates else values
        for candidate in sorted(candidates):
            held = self._held[candidate]
            if held["split"] == row["split"] or (
                    row["split"] != "train" and held["id"] > row["id"]):
                continue
            similarity = 1.0 if candidate in same else signatures.jaccard(
                values, self._shingles[candidate])
            if similarity >= self._threshold:
                yield Leak(similarity, *sorted((_about(row), held), key=lambda pair: pair["id"]))


def find_leaks(rows: Callable[[], Iterator[dict[str, Any]]], threshold: float, permutations: int,
               word_ngram: int, character_ngram: int) -> tuple[list[Leak], LeakFinder]:
    """All leaks of a corpus, the most similar first. `rows` reads the corpus from the start, with
    `COLUMNS`, and is called twice; the other arguments are those of `LeakFinder`."""
    finder = LeakFinder((row for row in rows() if row["split"] != "train"), threshold, permutations,
                        word_ngram, character_ngram)
    leaks = [leak for row in rows() for leak in finder.check(row)]
    leaks.sort(key=lambda leak: (-leak.similarity, leak.first["id"], leak.second["id"]))
    return leaks, finder


def check(corpus: str, threshold: float, permutations: int, word_ngram: int, character_ngram: int,
          show: int, status: StatusLine) -> dict[str, Any]:
    """The report on a corpus, with at most `show` pairs. Raises ConfigError without a complete
    corpus."""
    found = find_documents(corpus)
    passes = itertools.count(1)
    by_split: collections.Counter[str] = collections.Counter()

    def rows() -> Iterator[dict[str, Any]]:
        number = next(passes)
        by_split.clear()
        for file in found.files:
            for row in read_rows(file.path, COLUMNS):
                by_split[row["split"]] += 1
                status(lambda: f"pass {number} of 2: {by_split.total():,} of {found.rows:,} "
                       "documents")
                yield row

    leaks, finder = find_leaks(rows, threshold, permutations, word_ngram, character_ngram)
    return {
        "corpus": corpus, "threshold": threshold, "bands": finder.bands, "rows": finder.rows,
        "probability_at_threshold": finder.probability,
        "documents": dict(sorted(by_split.items())),
        "leaks": len(leaks), "pairs": [dataclasses.asdict(leak) for leak in leaks[:show]]}


def main(argv: Sequence[str]) -> int:
    """The command; see the module's docstring."""
    parser = command_line.Parser(prog="python -m data_beam.check_splits", description=__doc__)
    parser.add_argument("--corpus", required=True, help="folder that data_beam.prepare wrote")
    parser.add_argument("--threshold", type=float, default=0.7,
                        help="similarity from which documents are copies (default: %(default)s)")
    for name, default, what in (
            ("permutations", 128, "length of the signatures"),
            ("word_ngram", 5, "words of a shingle"),
            ("character_ngram", 5, "characters of a shingle"),
            ("show", 100, "pairs listed at most")):
        parser.add_argument(f"--{name}", type=int, default=default,
                            help=f"{what} (default: %(default)s)")
    arguments = parser.parse_args(argv)
    if not 0 < arguments.threshold <= 1:
        raise ConfigError(f"--threshold: must be above 0 and at most 1, not {arguments.threshold}")
    for name in ("permutations", "word_ngram", "character_ngram"):
        if getattr(arguments, name) < 1:
            raise ConfigError(f"--{name}: must be at least 1")
    if arguments.show < 0:
        raise ConfigError("--show: must not be negative")
    status = StatusLine()
    report = check(**vars(arguments), status=status)
    print(json.dumps(report, indent=1, ensure_ascii=False), flush=True)
    counts = ", ".join(f"{count:,} {split}" for split, count in report["documents"].items())
    found = f"{report['leaks']:,} near copies" if report["leaks"] else "no near copies"
    status.show(f"{arguments.corpus}: {found} across splits at similarity "
                f"{arguments.threshold:g} ({counts or 'no documents'})", last=True)
    return 1 if report["leaks"] else 0


if __name__ == "__main__":
    command_line.run_command(main)
