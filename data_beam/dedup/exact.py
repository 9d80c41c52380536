"""Documents with equal text: one survives.

The survivor is the copy whose source stands first in the recipe; within a source the smallest path,
then the smallest record number. Nothing of that depends on workers or order.
"""

from collections.abc import Iterable, Iterator

import apache_beam as beam
from apache_beam.pvalue import TaggedOutput

from data_beam.records import Document, Dropped, Origin

Claim = tuple[int, str, int, str]
"""Place of the source in the recipe, path, record number (0 for none), source: in this order the
smallest claim on a text wins."""


def claim(document: Document, source_index: int) -> tuple[str, Claim]:
    """(hash of the text, the document's claim on it)."""
    origin = document.origin
    return document.sha256, (source_index, origin.path, origin.record or 0, origin.source)


def origin_of(claim: Claim) -> Origin:
    """The document that a claim stands for."""
    _, path, record, source = claim
    return Origin(source, path, record or None)


class KeepFirst(beam.DoFn):
    """(hash, claims) -> the survivor's id; the others go to the output `dropped`."""

    def process(self, element: tuple[str, Iterable[Claim]]) -> Iterator[object]:
        _, claims = element
        winner = min(claims)
        survivor = origin_of(winner).id
        yield survivor
        for other in claims:
            if other != winner:
                yield TaggedOutput("dropped", Dropped(
                    origin_of(other), "dedup", "exact duplicate", f"same text as {survivor}"))
