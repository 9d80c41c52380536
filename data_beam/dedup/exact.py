"""Documents with equal text: one survives.

The survivor is the copy whose source stands first in the recipe; within a source the smallest path,
then the smallest record number. Nothing of that depends on workers or order.
"""

from collections.abc import Iterable, Iterator

import apache_beam as beam

from data_beam.base.records import Dropped, Origin

Claim = tuple[int, str, int, str]
"""Place of the source in the recipe, path, record number (0 for none), source: in this order the
smallest claim on a text wins."""


def claim(origin: Origin, source_index: int) -> Claim:
    """The claim of a document on its text."""
    return source_index, origin.path, origin.record or 0, origin.source


def origin_of(claim: Claim) -> Origin:
    """The document that a claim stands for."""
    _, path, record, source = claim
    return Origin(source, path, record or None)


class DropOthers(beam.DoFn):
    """(hash, claims) -> `Dropped` for every document but the survivor."""

    def process(self, element: tuple[str, Iterable[Claim]]) -> Iterator[Dropped]:
        _, claims = element
        claims = list(claims)
        winner = min(claims)
        representative = origin_of(winner).id
        for other in claims:
            if other != winner:
                yield Dropped(origin_of(other), "dedup", "exact duplicate",
                              f"same text as {representative}")
