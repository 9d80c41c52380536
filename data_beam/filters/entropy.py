"""Entropy of the characters of a text, in bits. A filter of our own.

H = -sum p(c) log2 p(c) over the characters without whitespace (Shannon 1948). It is low for text
that repeats a few characters and high for random text (keys, encoded data, tables of symbols). The
bounds have a margin around the range of documentation, novels and statutes (docs/decisions.md).
Short texts are not judged, because their length bounds their entropy.
"""

import dataclasses
import math
from collections import Counter

from data_beam.config.checks import check_idle, check_order
from data_beam.filters.text_filter import Failures, TextFilter, View, above, below, share
from maxlm.config.schema import setting


def entropy(text: str) -> float:
    """Bits per character; 0.0 for an empty text."""
    total = len(text)
    return -sum(count / total * math.log2(count / total) for count in Counter(text).values()) + 0.0


@dataclasses.dataclass(frozen=True)
class EntropyThresholds:
    """Bounds of the entropy of characters, for one language."""

    min_bits: float | None = share(3.0, "bits per character, at least")
    max_bits: float | None = share(6.5, "bits per character, at most")
    min_characters: int = setting(200, "shorter texts are not judged", minimum=1)

    def check(self, path: str) -> None:
        check_order(self, path, "bits")
        if self.min_bits is None and self.max_bits is None:
            check_idle(self, path, f"{path}.min_bits and max_bits are None", "set one",
                       only=("min_characters",))


@dataclasses.dataclass(frozen=True)
class EntropyConfig:
    """Entropy of the distribution of characters without whitespace."""

    en: EntropyThresholds = setting(EntropyThresholds(), "English")
    zh: EntropyThresholds = setting(EntropyThresholds(min_bits=4.0, max_bits=10.5), "Chinese")


class EntropyFilter(TextFilter):
    name = "entropy"
    settings = EntropyConfig

    def failures(self, view: View, limits: EntropyThresholds) -> Failures:
        if len(view.squeezed) >= limits.min_characters:
            bits = entropy(view.squeezed)
            yield below("low entropy", bits, limits.min_bits)
            yield above("high entropy", bits, limits.max_bits)
