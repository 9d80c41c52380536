"""Do near copies of documents stand in different splits of a corpus?

    python -m data_beam.check_splits --corpus=CORPUS

reads CORPUS/documents, works out the shingles and signatures of every text anew (nothing that the
corpus was made with is believed) and looks for documents of validation and test that have a near
copy in another split. It prints a JSON object with the pairs to standard output and one line to
standard error; the exit status is 0 without a leak, 1 with one and 2 for a mistake.

Copies are documents of which the sets of shingles (5 words, or 5 characters in Chinese and other
scripts without spaces) have at least the Jaccard similarity --threshold, or the very same text. A
pair at the threshold is found with probability 0.999 or more, more similar ones nearly always;
the similarity that is reported is exact. Memory: 8 bytes for each word held out.

How to get rid of leaks: set dedup.minhash.enabled in the recipe. Then near copies are dropped, and
documents over dedup.minhash.split_similarity share a split.
"""

import collections
import dataclasses
import json
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from data_beam.readers.corpus_files import find_documents, read_rows
from data_beam.split.leaks import COLUMNS, find_leaks
from maxlm.config import command_line
from maxlm.config.schema import ConfigError

_PROGRESS_SECONDS = 5.0


class _Reader:
    """Reads the documents of a corpus, and says now and then how far it is."""

    def __init__(self, corpus: str):
        self._files = find_documents(corpus)
        self.by_split: collections.Counter[str] = collections.Counter()
        self._passes = 0

    def __call__(self) -> Iterator[dict[str, Any]]:
        self._passes += 1
        self.by_split.clear()
        said = time.monotonic()
        for file in self._files.files:
            for row in read_rows(file.path, COLUMNS):
                self.by_split[row["split"]] += 1
                if time.monotonic() - said > _PROGRESS_SECONDS:
                    said = time.monotonic()
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
      ConfigError: no whole corpus there.
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
