"""What a labelled document is, and the files that hold them.

A label says what should become of one record and why, from the requirement or the published rule.
It is never taken from what the program does.
"""

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from data_beam.base.records import Origin
from tests.data_beam.mini_corpus import topics

FREE = "CC-BY-4.0"


@dataclasses.dataclass(frozen=True)
class Label:
    """The end a record should come to.

    Attributes:
      fate: `kept`, `dropped` or `dead` (a dead letter).
      stage, reason: of what is not kept.
      traps: numbers of the known traps that the record is a case of.
      why: what is special about it.
      language: of the kept document.
      text: the whole text kept.
      contains, lacks: parts that the text kept must have, and must not have.
      transforms: that must be among those recorded, in this order.
      untouched: no transform at all.
      scores: names that must be among the scores, with the value where one is given.
      licence, url: of the kept document.
      cluster: name of the cluster of near copies; documents of one cluster share it, dropped or
        kept. Those without a name have no near copy.
      split_with: name of a group of kept documents that share a split.
    """

    fate: str
    stage: str = ""
    reason: str = ""
    traps: tuple[int, ...] = ()
    why: str = ""
    language: str = ""
    text: str | None = None
    contains: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    transforms: tuple[str, ...] = ()
    untouched: bool = False
    scores: tuple[tuple[str, float | None], ...] = ()
    licence: str = ""
    url: str = ""
    cluster: str = ""
    split_with: str = ""


def kept(language: str = "", **facts: Any) -> Label:
    return Label("kept", language=language, **facts)


def dropped(stage: str, reason: str, **facts: Any) -> Label:
    return Label("dropped", stage, reason, **facts)


def dead(stage: str, reason: str, **facts: Any) -> Label:
    return Label("dead", stage, reason, **facts)


class Prose:
    """Texts that nobody has used yet.

    The first are the subjects themselves. After them come digests, which take one sentence of each
    of several subjects: two of them, or one and a subject, share at most two sentences, so that no
    two texts are near copies.
    """

    _STRIDES = (0, 4, 7, 11, 8, 13, 2)  # no two differ by a multiple of 10

    def __init__(self, topics: dict[str, list[str]], joint: str):
        self._topics = list(topics.values())
        self._joint = joint
        self._unused = self._all()

    def _all(self) -> Iterator[list[str]]:
        for stride in self._STRIDES:
            for first in range(len(self._topics)):
                yield [self._topics[(first + stride * place) % len(self._topics)][place]
                       for place in range(len(self._topics[0]))]

    def sentences(self) -> list[str]:
        """Sentences of the next text."""
        return next(self._unused)

    def text(self) -> str:
        """The next text, one paragraph."""
        return self._joint.join(self.sentences())

    def around(self, text: str, place: int = 1) -> str:
        """The next text with `text` after so many of its sentences."""
        sentences = self.sentences()
        return self._joint.join([*sentences[:place], text, *sentences[place:]])

    def long(self, characters: int) -> list[str]:
        """Sentences of the subjects one after the other, none twice, at least so many characters
        in all."""
        chosen: list[str] = []
        for sentence in (each for topic in self._topics for each in topic):
            if sum(map(len, chosen)) >= characters:
                return chosen
            chosen.append(sentence)
        return chosen


class MiniCorpus:
    """Files and labels.

    Attributes:
      files: bytes by path; the first folder of a path is the source.
      labels: by (source, path, record).
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.labels: dict[tuple[str, str, int | None], Label] = {}
        self.english = Prose(topics.ENGLISH, " ")
        self.chinese = Prose(topics.CHINESE, "")

    def file(self, path: str, data: str | bytes, label: Label | None = None,
             records: Sequence[Label | None] = ()) -> None:
        """A file with the label of the whole, and those of its records from the first on."""
        assert path not in self.files, path
        self.files[path] = data.encode() if isinstance(data, str) else data
        for record, each in ((None, label), *enumerate(records, 1)):
            if each:
                self.label(path, record, each)

    def label(self, path: str, record: int | None, label: Label) -> None:
        """The label of one record of a file."""
        key = path.split("/")[0], path, record
        assert key not in self.labels, key
        self.labels[key] = label

    def rows(self, path: str) -> "Rows":
        """A file of JSON lines."""
        return Rows(self, path)

    def write(self, root: Path) -> None:
        """Writes all files below a folder."""
        for path, data in self.files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)


class Rows:
    """JSON lines: `with corpus.rows(path) as rows: rows.add(text, label)`."""

    def __init__(self, corpus: MiniCorpus, path: str):
        self._corpus, self._path = corpus, path
        self._lines: list[bytes] = []

    def add(self, text: str, label: Label, licence: str = FREE, url: str = "") -> None:
        """A row with a text."""
        number = len(self._lines) + 1
        self.raw(json.dumps({"text": text, "licence": licence,
                             "url": url or f"https://mini.example/{self._path}/{number}"},
                            ensure_ascii=False), label)

    def raw(self, line: str | bytes, label: Label | None) -> None:
        """A line as it is."""
        self._lines.append(line.encode() if isinstance(line, str) else line)
        if label is not None:
            self._corpus.label(self._path, len(self._lines), label)

    @property
    def data(self) -> bytes:
        return b"\n".join(self._lines) + b"\n"

    def __enter__(self) -> "Rows":
        return self

    def __exit__(self, *error: object) -> None:
        self._corpus.file(self._path, self.data)


def id_of(key: tuple[str, str, int | None]) -> str:
    """Document id of a labelled record."""
    return Origin(*key).id
