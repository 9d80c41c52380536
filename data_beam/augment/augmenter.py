"""What is made of one document."""

import dataclasses
import hashlib
from collections.abc import Container, Iterator, Mapping
from typing import Any

from data_beam.augment import synonyms
from data_beam.augment.back_translation import MAX_RATIO, BackTranslation
from data_beam.augment.templates import Generated, generate
from data_beam.base.records import DeadLetter, Document, text_sha256
from data_beam.config import AugmentConfig, SourceConfig
from data_beam.sinks.documents import corpus_row

BUCKETS = 4096


@dataclasses.dataclass(frozen=True)
class Planned:
    """A document that could be made: its id, the most characters that it will have, and its row
    unless a translator has to be asked for it."""

    id: str
    characters: int
    row: dict[str, Any] | None = None


def augmented_id(original: str, kind: str, number: int) -> str:
    """Id of the n-th document of a kind made from another.

    Its first 64 bits are those of the original, so that both are in one shard; the others are a
    hash of all three.
    """
    digest = hashlib.sha256(f"{original}\0{kind}\0{number}".encode()).hexdigest()
    return original[:16] + digest[:16]


def bucket_of(id: str) -> int:
    """The bucket of a made document: the last 12 bits of its id, which is a hash."""
    return int(id[-3:], 16)


def admitted_buckets(
        characters: int, by_bucket: Mapping[int, int], max_share: float) -> frozenset[int]:
    """The buckets of a source that fit under its cap.

    With C characters of its own, made documents of A characters are a share A / (C + A), so A may
    be up to C s / (1 - s). Buckets are taken in their order, one that does not fit is passed over.

    Args:
      characters: of the source's own training documents.
      by_bucket: characters of made documents by bucket.
      max_share: the cap s.
    """
    left = int(characters * max_share / (1 - max_share))
    taken = set()
    for number, size in sorted(by_bucket.items()):
        if size <= left:
            left -= size
            taken.add(number)
    return frozenset(taken)


class Augmenter:
    """Makes documents by synonyms and back-translation; a document decides by its id and text.

    Build it once a worker: it holds the dictionary and the user's function.

    Raises:
      ConfigError: a file or function that cannot be used.
    """

    def __init__(self, config: AugmentConfig):
        self._config = config
        self._synonyms = (synonyms.load(config.synonyms, "config.augment.synonyms")
                          if config.synonyms else None)
        self._translate = (
            BackTranslation(config.back_translation, "config.augment.back_translation")
            if config.back_translation else None)

    def planned(self, document: Document) -> Iterator[Planned]:
        """What could be made of a training document, without asking the translator."""
        row = corpus_row(document, "train")
        for id, text, count in self._by_synonyms(document):
            yield Planned(id, len(text), _row(row, id, text, f"augment:synonyms={count}"))
        if self._translate is not None and not document.is_code:
            yield Planned(augmented_id(document.origin.id, "back_translation", 1),
                          int(MAX_RATIO * len(document.text)))

    def made(self, document: Document, row: dict[str, Any], buckets: Container[int]
             ) -> Iterator[dict[str, Any] | DeadLetter]:
        """Rows of the documents made, or why one could not be made.

        Args:
          document: a training document.
          row: its row in the corpus, from which the new rows take what they share with it.
          buckets: those admitted (see `share`); what is not in them is not made.
        """
        for id, text, count in self._by_synonyms(document):
            if bucket_of(id) in buckets:
                yield _row(row, id, text, f"augment:synonyms={count}")
        if self._translate is None or document.is_code:
            return
        id = augmented_id(document.origin.id, "back_translation", 1)
        if bucket_of(id) not in buckets:
            return
        try:
            text = self._translate(document.text)
        except OSError:  # the machine's, not the document's
            raise
        except (Exception, SystemExit) as error:
            yield DeadLetter(document.origin, "augment", "back-translation failed",
                             f"{type(error).__name__}: {error}")
            return
        if text is not None:
            yield _row(row, id, text, "augment:back_translation")

    def _by_synonyms(self, document: Document) -> Iterator[tuple[str, str, int]]:
        """(id, text, terms replaced) of each copy that differs from the others."""
        if self._synonyms is None or document.is_code:
            return
        seen = {document.text}
        for number in range(1, self._config.synonym_copies + 1):
            id = augmented_id(document.origin.id, "synonyms", number)
            text, count = self._synonyms.substitute(
                document.text, self._config.synonym_share, id)
            if text not in seen:
                seen.add(text)
                yield id, text, count


def _row(row: dict[str, Any], id: str, text: str, transform: str) -> dict[str, Any]:
    return {**row, "id": id, "text": text, "sha256": text_sha256(text),
            "transforms": [*row["transforms"], transform, f"augment:from={row['id']}"],
            "scores": sorted({**dict(row["scores"]), "augmented": 1.0}.items())}


class TemplateDocuments:
    """The documents of the recipe's templates.

    Raises:
      ConfigError: a file that cannot be used.
    """

    def __init__(self, config: AugmentConfig, sources: tuple[SourceConfig, ...]):
        self._path = config.templates
        self._generated = (generate(config.templates, "config.augment.templates")
                           if config.templates else [])
        self._source = next(
            (source for source in sources if source.name == config.template_source), None)

    def documents(self) -> list[tuple[str, Generated]]:
        """(id, document) in the order of ids."""
        return sorted((
            hashlib.sha256(f"{self._path.rpartition('/')[2]}\0template\0{made.record}\0"
                           f"{made.language}".encode()).hexdigest()[:32], made)
            for made in self._generated)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Rows of the corpus, in the order of ids, all for training."""
        if self._source is None:
            return
        name = self._path.rpartition("/")[2]
        for id, made in self.documents():
            yield {
                "id": id, "text": made.text, "source": self._source.name,
                "domain": self._source.domain, "licence": self._source.licence, "path": name,
                "language": made.language, "split": "train", "sha256": text_sha256(made.text),
                "record": made.record, "language_score": None,
                "bytes_sha256": text_sha256(made.text),
                "transforms": [f"augment:templates={made.sentences}"],
                "scores": [("augmented", 1.0)], "cluster": None}
