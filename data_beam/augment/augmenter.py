"""Augmented documents of one training document, and the cap on their number.

The cap must not depend on the number of workers. Each augmented document is assigned to a bucket by
its id. Workers sum the characters by source and bucket; the sums determine which buckets fit under
the cap, and a worker needs only the id of a document to know whether it is admitted.
"""

import dataclasses
import hashlib
from collections.abc import Container, Iterator, Mapping
from typing import Any

from data_beam.augment import synonyms
from data_beam.augment.back_translation import MAX_RATIO, BackTranslation
from data_beam.augment.templates import generate
from data_beam.base.records import DeadLetter, Document, text_sha256
from data_beam.config import AugmentConfig, SourceConfig
from data_beam.sinks.documents import corpus_row

BUCKETS = 4096


@dataclasses.dataclass(frozen=True)
class Planned:
    """A document that could be created: id, most characters, and its row unless the translator
    makes it."""

    id: str
    characters: int
    row: dict[str, Any] | None = None


def augmented_id(original: str, kind: str, number: int) -> str:
    """Id of the n-th augmented document of a kind: the first 64 bits are those of the original, so
    both are in one shard; the others are a hash of the three arguments."""
    digest = hashlib.sha256(f"{original}\0{kind}\0{number}".encode()).hexdigest()
    return original[:16] + digest[:16]


def bucket_of(id: str) -> int:
    """The bucket of an augmented document: the last 12 bits of its id, which are a hash."""
    return int(id[-3:], 16)


def admitted_buckets(characters: int, by_bucket: Mapping[int, int], max_share: float
                     ) -> frozenset[int]:
    """The buckets of a source that fit under its cap, the share `max_share` = s of augmented text.
    `by_bucket` has the characters of augmented documents.

    A source with C characters in its original training documents and A augmented ones has a share A
    / (C + A), so A may be up to C s / (1 - s). Buckets are admitted in order; a bucket that does
    not fit is skipped.
    """
    left = int(characters * max_share / (1 - max_share))
    admitted = set()
    for number, size in sorted(by_bucket.items()):
        if size <= left:
            left -= size
            admitted.add(number)
    return frozenset(admitted)


class Augmenter:
    """Creates documents by synonyms and back-translation. The result depends only on the id and
    text of the original. Create one per worker: it loads the dictionary and the user's function,
    and raises ConfigError if one cannot be used."""

    def __init__(self, config: AugmentConfig):
        self._config = config
        self._synonyms = (synonyms.load(config.synonyms, "config.augment.synonyms")
                          if config.synonyms else None)
        self._translate = (
            BackTranslation(config.back_translation, "config.augment.back_translation")
            if config.back_translation else None)

    def planned(self, document: Document) -> Iterator[Planned]:
        """The documents that could be created from a training document, without a call of the
        translator."""
        row = corpus_row(document, "train")
        for id, text, count in self._by_synonyms(document):
            yield Planned(id, len(text), _row(row, id, text, f"augment:synonyms={count}"))
        if self._translate is not None and not document.is_fixed:
            yield Planned(augmented_id(document.origin.id, "back_translation", 1),
                          int(MAX_RATIO * len(document.text)))

    def augment(self, document: Document, row: dict[str, Any], buckets: Container[int]
                ) -> Iterator[dict[str, Any] | DeadLetter]:
        """The rows of the augmented documents in the admitted buckets, with the other columns of
        the training document's row; a dead letter if the translator failed."""
        for id, text, count in self._by_synonyms(document):
            if bucket_of(id) in buckets:
                yield _row(row, id, text, f"augment:synonyms={count}")
        if self._translate is None or document.is_fixed:
            return
        id = augmented_id(document.origin.id, "back_translation", 1)
        if bucket_of(id) not in buckets:
            return
        try:
            text = self._translate(document.text)
        except OSError:  # a fault of the machine, not of the document
            raise
        except (Exception, SystemExit) as error:
            yield DeadLetter(document.origin, "augment", "back-translation failed",
                             f"{type(error).__name__}: {error}")
            return
        if text is not None:
            yield _row(row, id, text, "augment:back_translation")

    def _by_synonyms(self, document: Document) -> Iterator[tuple[str, str, int]]:
        """(id, text, number of replaced terms) of each distinct copy."""
        if self._synonyms is None or document.is_fixed:
            return
        seen = {document.text}
        for number in range(1, self._config.synonym_copies + 1):
            id = augmented_id(document.origin.id, "synonyms", number)
            text, count = self._synonyms.substitute(document.text, self._config.synonym_share, id)
            if text not in seen:
                seen.add(text)
                yield id, text, count


def _row(row: dict[str, Any], id: str, text: str, transform: str) -> dict[str, Any]:
    return {**row, "id": id, "text": text, "sha256": text_sha256(text),
            "transforms": [*row["transforms"], transform, f"augment:from={row['id']}"],
            "group": None,
            "scores": sorted({**dict(row["scores"]), "augmented": 1.0}.items())}


class TemplateDocuments:
    """The documents of the recipe's templates. Raises ConfigError if a file cannot be used."""

    def __init__(self, config: AugmentConfig, sources: tuple[SourceConfig, ...]):
        self._path = config.templates
        self._generated = (generate(config.templates, "config.augment.templates")
                           if config.templates else [])
        self._source = next(
            (source for source in sources if source.name == config.template_source), None)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Corpus rows in the order of ids, all in the training split."""
        if self._source is None:
            return
        name = self._path.rpartition("/")[2]
        by_id = {hashlib.sha256(f"{name}\0template\0{generated.record}\0{generated.language}"
                                .encode()).hexdigest()[:32]: generated
                 for generated in self._generated}
        for id, generated in sorted(by_id.items()):
            yield {
                "id": id, "text": generated.text, "source": self._source.name,
                "domain": self._source.domain, "licence": self._source.licence, "path": name,
                "language": generated.language, "split": "train",
                "sha256": text_sha256(generated.text), "record": generated.record,
                "language_score": None, "bytes_sha256": text_sha256(generated.text),
                "transforms": [f"augment:templates={generated.sentences}"],
                "scores": [("augmented", 1.0)], "cluster": None, "url": None, "offset": None,
                "trained_spans": None, "group": None}
