"""Samples of clean documents for training and for held-out evaluation.

They are chosen by the hash of the documents' ids, so they are the same in every run.
"""

import dataclasses
import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import xxhash

from data_beam.readers import streams
from data_beam.readers.corpus_files import CorpusFiles, read_rows
from maxlm.config.schema import ConfigError, suggestion

_COLUMNS = ["id", "text", "source", "domain", "language", "split"]


@dataclasses.dataclass(frozen=True)
class Sample:
    """Training and held-out texts, ordered by the hash of the document's key."""

    train: list[str]  # training texts
    held_out: list[str]  # texts not used for training, chosen by another hash
    documents: int  # number of documents in the input


class _Smallest:
    """The texts with the smallest hashes of their keys that hold a number of bytes, each with what
    it belongs to. `seen` and `kept` are the UTF-8 bytes of all texts that were added, and of those
    kept."""

    def __init__(self, limit: float):
        self._limit, self.kept, self.seen = limit, 0, 0
        self._heap: list[tuple[int, str, int, Any]] = []

    def add(self, key: str, text: str, item: Any) -> None:
        size = len(text.encode("utf-8", "replace"))
        self.seen += size
        rank = -xxhash.xxh3_64_intdigest(key.encode())
        if not self._heap or self.kept < self._limit or rank >= self._heap[0][0]:
            heapq.heappush(self._heap, (rank, key, size, item))
            self.kept += size
            self.shrink(self._limit)

    def shrink(self, limit: float) -> None:
        """Removes the largest hashes, without which the others hold `limit` bytes too."""
        while self._heap and self.kept - self._heap[0][2] >= limit:
            self.kept -= heapq.heappop(self._heap)[2]

    def items(self) -> list[tuple[int, str, Any]]:
        """Hash, key and item of each, in their order."""
        return sorted(((-rank, key, item) for rank, key, _, item in self._heap),
                      key=lambda entry: entry[:2])


def take(documents: Iterable[tuple[str, str]], sample_bytes: int, held_out: float) -> Sample:
    """Samples documents, (unique key, text); the result depends on their set, not on their order.

    `sample_bytes` are UTF-8 bytes of training texts; the text that exceeds the limit is the last
    one. A share `held_out` of the documents is held out, with texts of up to the same share of the
    bytes.
    """
    train, held_out_texts = _Smallest(sample_bytes), _Smallest(max(1, int(sample_bytes * held_out)))
    count = 0
    for key, text in documents:
        count += 1
        is_held_out = xxhash.xxh3_64_intdigest(key.encode(), seed=1) < held_out * 2**64
        (held_out_texts if is_held_out else train).add(key, text, text)
    train_texts, others = ([text for *_, text in part.items()] for part in (train, held_out_texts))
    return Sample(train_texts, others, count)


def corpus_documents(corpus: CorpusFiles, language: str) -> Iterator[tuple[str, str]]:
    """Id and text of the training documents in one language. Raises ConfigError, with the languages
    of the corpus, if there are none."""
    others: set[str] = set()
    found = False
    for file in corpus.files:
        for row in read_rows(file.path, ["id", "text", "language", "split"]):
            if row["split"] != "train":
                continue
            if row["language"] == language:
                found = True
                yield row["id"], row["text"]
            else:
                others.add(row["language"] or "")
    if not found:
        names = ", ".join(sorted(others)) or "none"
        raise ConfigError(f"--language: the corpus has no training documents in {language!r}; "
                          f"its languages: {names}")


def text_documents(paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Key and text of the documents in text files. Empty lines separate documents. Compression
    (gzip, zstd or bzip2) is detected from the content. Raises ConfigError for a file that is
    damaged or not UTF-8."""
    for number, path in enumerate(paths):
        try:
            text = b"".join(streams.chunks(path)).decode("utf-8")
        except streams.DamagedFile as error:
            raise ConfigError(f"--text: {path} is damaged ({error})") from None
        except UnicodeDecodeError as error:
            raise ConfigError(f"--text: {path} is not UTF-8 ({error})") from None
        lines: list[str] = []
        parts = 0
        for line in [*text.splitlines(), ""]:
            if line.strip():
                lines.append(line)
            elif lines:
                yield f"{number} {parts}", "\n".join(lines)
                parts += 1
                lines = []


def sample_documents(corpus: CorpusFiles, sample_bytes: int,
                     weights: Mapping[str, float] | None = None, split: str = "train"
                     ) -> tuple[list[dict[str, Any]], int]:
    """Rows (_COLUMNS) of the documents of a split with the smallest hashes of their ids, in that
    order, up to `sample_bytes` of UTF-8 text, which bounds the memory taken; and how many documents
    the split has.

    Without weights each document has the same chance, so sources keep their shares. With weights
    each source gets exactly its share of the bytes, relative to the others; 0 leaves it out. When a
    source has too little text, the whole sample is smaller. The last document (of each source) is
    cut to fit.

    Raises ConfigError for weights of sources that do not exist or have no documents in the split,
    and for sources without a weight.
    """
    if weights is None:
        shares = None
        groups: dict[str | None, _Smallest] = {None: _Smallest(sample_bytes)}
    else:
        shares = _shares(corpus, weights, split)
        groups = {name: _Smallest(float(share * sample_bytes)) for name, share in shares.items()}
    seen = 0
    for file in corpus.files:
        for row in read_rows(file.path, _COLUMNS):
            if row["split"] == split:
                seen += 1
                group = groups.get(None if shares is None else row["source"])
                if group is not None:
                    group.add(row["id"], row["text"], row)
    total = Fraction(sample_bytes)
    for name, share in (shares or {}).items():
        if not groups[name].seen:
            raise ConfigError(f"--weights: source {name!r} has no text in split {split!r}; give it "
                              "weight 0")
        total = min(total, groups[name].seen / share)
    kept = [entry for name, group in groups.items()
            for entry in _cut(group, int(total * (shares[str(name)] if shares else 1)))]
    return [row for _, _, row in sorted(kept, key=lambda entry: entry[:2])], seen


def _cut(group: _Smallest, limit: int) -> list[tuple[int, str, dict[str, Any]]]:
    """Hash, id and row of each document in their order; the text of the last is cut to fit."""
    group.shrink(limit)
    kept = group.items()
    if group.kept > limit:
        rank, id, row = kept[-1]
        text = row["text"].encode()[:limit - group.kept].decode("utf-8", "ignore")
        kept[-1] = rank, id, {**row, "text": text}
    return [entry for entry in kept if entry[2]["text"]]


def _shares(corpus: CorpusFiles, weights: Mapping[str, float], split: str) -> dict[str, Fraction]:
    """Share of each source of a positive weight; they sum to 1."""
    names = [source.name for source in corpus.sources]
    for name in weights:
        if name not in names:
            raise ConfigError(f"--weights: the corpus has no source {name!r}; "
                              f"{suggestion(name, names)}")
    for source in corpus.sources:
        if source.splits.get(split) and source.name not in weights:
            raise ConfigError(f"--weights: source {source.name!r} has no weight; give {source.name}"
                              "=0 to leave it out")
    total = sum(map(Fraction, weights.values()))
    if not total:
        raise ConfigError("--weights: all are 0")
    return {name: Fraction(weight) / total for name, weight in weights.items() if weight}


def parse_weights(text: str) -> dict[str, float] | None:
    """`source=0.7,other=0.3` -> weights, "" -> None. Raises ConfigError for an entry of another
    form, and a weight that is no number of at least 0."""
    weights: dict[str, float] = {}
    for entry in filter(None, text.split(",")):
        name, equals, value = entry.partition("=")
        try:
            weight = float(value)
        except ValueError:
            weight = -1.0
        if not equals or not name or not 0 <= weight < float("inf"):
            raise ConfigError(f"--weights: {entry!r} is not SOURCE=WEIGHT with a weight of at "
                              "least 0, for example medicine=0.7,web=0.3")
        if name in weights:
            raise ConfigError(f"--weights: source {name!r} is given twice")
        weights[name] = weight
    return weights or None
