"""The records that pass through `prepare`, and the three outcomes of a record."""

import dataclasses
import hashlib
from collections.abc import Mapping

from data_beam.base.trained_spans import Spans


def text_sha256(text: str) -> str:
    """SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


class ReasonedError(Exception):
    """An error with the reason and detail of a dead letter or of a dropped document."""

    def __init__(self, reason: str, detail: str):
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where a record comes from: the source, the path of the file relative to the root of its
    input, and the number of the record in its file, from 1 (a line of jsonl, an item of a json
    array, a row of Parquet or of a query, a record of a web archive). It is None for a file that is
    one document, and for the file as a whole."""

    source: str
    path: str
    record: int | None = None

    @property
    def id(self) -> str:
        """Document id: 32 hex digits, a hash of source, path and record number."""
        key = "\0".join([self.source, self.path, "" if self.record is None else str(self.record)])
        return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclasses.dataclass(frozen=True)
class Record:
    """One document as read: decoded, with its markup."""

    origin: Origin
    text: str
    format: str
    domain: str
    licence: str
    url: str
    bytes_sha256: str  # of the record's raw bytes: the decompressed file, the line, or the field
    transforms: tuple[str, ...] = ()
    data: bytes = b""  # content of a binary format (PDF, EPUB); `text` is empty then
    offset: int | None = None  # this and what follows: see `Document`
    trained_spans: Spans | None = None
    group: str = ""


@dataclasses.dataclass(frozen=True)
class Document:
    """One clean document."""

    origin: Origin
    text: str
    domain: str
    licence: str
    url: str
    language: str
    language_score: float | None
    sha256: str  # of the clean text in UTF-8
    bytes_sha256: str
    transforms: tuple[str, ...]  # steps that changed the text since its bytes, in order
    is_code: bool = False  # source code, which filters for prose do not judge
    scores: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Measurements of the filters, by name: `perplexity`, `quality`, `pii/email` and so on."""

    cluster: str = ""  # id of the representative of its near copies, "" without near copies
    split_key: str = ""  # hash shared by documents that must share a split; "" means `sha256`
    offset: int | None = None
    """Of a record of a web archive: the byte of the file at which it begins, or at which the
    compressed member that holds it begins."""
    trained_spans: Spans | None = None
    """The trained parts of the text; None where all of it is trained."""
    group: str = ""
    """Shared by documents of the source that belong together, "" without a group."""

    @property
    def is_fixed(self) -> bool:
        """Whether no step may make another text of it: source code, and texts with trained spans,
        which count its characters."""
        return self.is_code or self.trained_spans is not None

    def with_text(self, text: str, *transforms: str) -> "Document":
        """The document with another text, and the steps that changed it.

        Raises:
          ReasonedError: it has trained spans, which count the characters of the text as it is.
        """
        if self.trained_spans is not None:
            raise ReasonedError("text with trained spans", f"{', '.join(transforms)} would change "
                                "the text, and its trained spans would no longer fit")
        return dataclasses.replace(
            self, text=text, sha256=text_sha256(text), transforms=self.transforms + transforms)

    def with_scores(self, **scores: float) -> "Document":
        return dataclasses.replace(self, scores={**self.scores, **scores})


@dataclasses.dataclass(frozen=True)
class _Rejected:
    origin: Origin
    stage: str
    reason: str  # counts are by stage and reason
    detail: str = ""


class Dropped(_Rejected):
    """A document that a filter left out."""


class DeadLetter(_Rejected):
    """A record, or a part of a file, that could not be read."""


Outcome = Document | Dropped | DeadLetter
