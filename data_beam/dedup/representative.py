"""Which document of a cluster of near copies is kept."""

import dataclasses
from collections.abc import Iterable


@dataclasses.dataclass(frozen=True)
class Member:
    """A document of a cluster, as far as the choice goes.

    Attributes:
      node: number among all documents.
      id: of the document.
      characters: length of its text.
      quality: its score `quality`, 0 where it has none.
    """

    node: int
    id: str
    characters: int
    quality: float


def representative(members: Iterable[Member]) -> Member:
    """The longest; of equally long ones that of the highest quality; of those the smallest id."""
    return min(members, key=lambda member: (-member.characters, -member.quality, member.id))
