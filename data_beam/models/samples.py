"""Samples of clean documents for training and for held-out evaluation."""

import dataclasses
import heapq
from collections.abc import Iterable, Iterator, Sequence

import xxhash

from data_beam.readers import streams
from data_beam.readers.corpus_files import CorpusFiles, read_rows
from maxlm.config.schema import ConfigError


@dataclasses.dataclass(frozen=True)
class Sample:
    """Training and held-out texts, ordered by the hash of the document's key.

    Attributes:
      train: training texts.
      held_out: texts not used for training, chosen by another hash.
      documents: number of documents in the input.
    """

    train: list[str]
    held_out: list[str]
    documents: int


class _Smallest:
    """The texts with the smallest hashes, up to a total number of bytes."""

    def __init__(self, limit: int):
        self._limit, self._total = limit, 0
        self._heap: list[tuple[int, str, int, str]] = []

    def offer(self, key: str, text: str) -> None:
        rank = -xxhash.xxh3_64_intdigest(key.encode())
        if self._total >= self._limit and rank < self._heap[0][0]:
            return
        size = len(text.encode("utf-8", "replace"))
        heapq.heappush(self._heap, (rank, key, size, text))
        self._total += size
        while self._total - self._heap[0][2] >= self._limit:
            self._total -= heapq.heappop(self._heap)[2]

    def texts(self) -> list[str]:
        return [entry[3] for entry in sorted(self._heap, reverse=True)]


def take(documents: Iterable[tuple[str, str]], sample_bytes: int, held_out: float) -> Sample:
    """Samples documents; the result depends on the set of documents, not on their order.

    Args:
      documents: (key, text); keys are unique.
      sample_bytes: UTF-8 bytes of training texts; the text that exceeds the limit is the last one.
      held_out: share of the documents to hold out. Held-out texts are limited to the same share of
        `sample_bytes`.
    """
    train, held_out_texts = _Smallest(sample_bytes), _Smallest(max(1, int(sample_bytes * held_out)))
    count = 0
    for key, text in documents:
        count += 1
        is_held_out = xxhash.xxh3_64_intdigest(key.encode(), seed=1) < held_out * 2**64
        (held_out_texts if is_held_out else train).offer(key, text)
    return Sample(train.texts(), held_out_texts.texts(), count)


def corpus_documents(corpus: CorpusFiles, language: str) -> Iterator[tuple[str, str]]:
    """Id and text of the training documents in one language.

    Raises:
      ConfigError: there are none; the message lists the languages of the corpus.
    """
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
    (gzip, zstd or bzip2) is detected from the content.

    Raises:
      ConfigError: a file is damaged or not UTF-8.
    """
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
