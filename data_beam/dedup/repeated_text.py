"""Lines and paragraphs that stand in many documents.

A line (or a paragraph: lines between empty ones) of enough characters that occurs in more than a
number of documents stays in the first of them only: the one whose source is listed first in the
recipe, then the one of the smallest id. Whitespace around it does not count.
"""

import re
from collections.abc import Iterator

import numpy as np
import xxhash

from data_beam.config.dedup import RepeatedTextConfig
from data_beam.dedup.buckets import unpack

OCCURRENCE = np.dtype([("hash", "<u8"), ("source", "<u2"), ("id", "<u8")])
"""A text that occurs in a document: its hash, the place of the source, 64 bits of the id."""

_UNITS = {"paragraphs": re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+"), "lines": re.compile(r"\n")}
UNITS = tuple(_UNITS)
"""In the order in which they are removed."""


def _hash(unit: str, text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"), UNITS.index(unit))


def hashes(text: str, unit: str, settings: RepeatedTextConfig) -> Iterator[int]:
    """Hashes of the lines (paragraphs) of a text that are long enough."""
    for part in _UNITS[unit].split(text):
        part = part.strip()
        if len(part) >= settings.min_characters:
            yield _hash(unit, part)


def repeated(occurrences: np.ndarray, max_documents: int) -> np.ndarray:
    """First occurrence of each text that is in too many documents.

    Args:
      occurrences: [n] `OCCURRENCE`, one for each text and document.
      max_documents: in more than this many a text is repeated.

    Returns:
      [m] `OCCURRENCE`, in order of the hash.
    """
    ordered = np.sort(np.unique(occurrences), order=["hash", "source", "id"])
    _, starts, counts = np.unique(ordered["hash"], return_index=True, return_counts=True)
    return ordered[starts[counts > max_documents]]


class Remover:
    """Takes repeated texts out of documents.

    Args:
      settings: by unit, those that are switched on.
      tables: by unit, what `repeated` found.
    """

    def __init__(self, settings: dict[str, RepeatedTextConfig], tables: dict[str, np.ndarray]):
        self._settings = settings
        self._first = {
            unit: dict(zip(table["hash"].tolist(),
                           zip(table["source"].tolist(), table["id"].tolist(), strict=True),
                           strict=True))
            for unit, table in tables.items()}

    def __call__(self, text: str, source: int, id: str) -> tuple[str, tuple[str, ...]]:
        """The text without them, and what was done: `repeated lines removed: 3`."""
        me = source, int(id[:16], 16)
        done = []
        for unit in UNITS:
            if unit in self._settings and self._first[unit]:
                text, removed = self._remove(text, unit, me)
                if removed:
                    done.append(f"repeated {unit} removed: {removed}")
        return text, tuple(done)

    def _remove(self, text: str, unit: str, me: tuple[int, int]) -> tuple[str, int]:
        minimum, first = self._settings[unit].min_characters, self._first[unit]
        separator = _UNITS[unit]
        kept: list[str] = []
        removed = 0
        for part in separator.split(text):
            bare = part.strip()
            if len(bare) >= minimum and first.get(_hash(unit, bare), me) != me:
                removed += 1
            else:
                kept.append(part)
        if not removed:
            return text, 0
        joined = ("\n\n" if unit == "paragraphs" else "\n").join(kept)
        return re.sub(r"\n{3,}", "\n\n", joined).strip("\n"), removed


def load(blobs: list[bytes]) -> np.ndarray:
    """A table from the parts that workers wrote."""
    return np.sort(unpack(blobs, OCCURRENCE), order="hash")
