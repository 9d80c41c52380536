"""The cap on made documents: which of them fit, the same whatever the number of workers.

What is made is spread over buckets by its id. Sums by source and bucket are all that workers have
to bring together; from them follow the buckets that fit, and every worker can tell by an id alone
whether a document is in.
"""

from collections.abc import Mapping

BUCKETS = 4096


def bucket(id: str) -> int:
    """The bucket of a made document: the last 12 bits of its id, which is a hash."""
    return int(id[-3:], 16)


def admitted(characters: int, by_bucket: Mapping[int, int], max_share: float) -> frozenset[int]:
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
