"""What travels through `prepare`: a record read, and the three ends it can come to."""

import dataclasses
import hashlib
from collections.abc import Mapping


def text_sha256(text: str) -> str:
    """SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where a record comes from.

    `record` is the line of a jsonl file, the item of a json array or the row of a query, counted
    from 1, and None for a file that is one document (or for the file as a whole).
    """

    source: str
    path: str
    record: int | None = None

    @property
    def id(self) -> str:
        """Document id: 32 hex digits that depend on source, path and record number only."""
        key = "\0".join([self.source, self.path, "" if self.record is None else str(self.record)])
        return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclasses.dataclass(frozen=True)
class Record:
    """One document as read: decoded, markup and all."""

    origin: Origin
    text: str
    format: str
    domain: str
    licence: str
    url: str
    bytes_sha256: str
    """Of the record's raw bytes: the decompressed file, the line, or the field."""
    transforms: tuple[str, ...] = ()
    data: bytes = b""
    """The document itself in formats that are no text (PDF, EPUB); `text` is empty then."""


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
    sha256: str
    """Of the clean text in UTF-8."""
    bytes_sha256: str
    transforms: tuple[str, ...]
    """What changed the text since the bytes, in order."""
    is_code: bool = False
    """Source code: rules made for prose pass it by."""
    scores: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """What rules measured, by name: `perplexity`, `quality`, `toxicity`, `pii/email` and so on."""

    cluster: str = ""
    """Id of the survivor of its near copies, "" for a document that has none."""
    split_key: str = ""
    """Hash that decides the split; documents that must not be parted share it. "" is `sha256`."""

    def with_text(self, text: str, *transforms: str) -> "Document":
        """The document with another text, and what changed it."""
        return dataclasses.replace(
            self, text=text, sha256=text_sha256(text), transforms=self.transforms + transforms)

    def with_scores(self, **scores: float) -> "Document":
        """The document with more scores."""
        return dataclasses.replace(self, scores={**self.scores, **scores})


@dataclasses.dataclass(frozen=True)
class Dropped:
    """A document left out by a rule."""

    origin: Origin
    stage: str
    reason: str
    """The rule's name; counts are by this."""
    detail: str = ""


@dataclasses.dataclass(frozen=True)
class DeadLetter:
    """A record (or the file from some point on) that could not be read."""

    origin: Origin
    stage: str
    reason: str
    detail: str = ""


Outcome = Document | Dropped | DeadLetter
