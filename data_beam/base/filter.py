"""Base class of filters: it judges one document and declares what its decisions depend on."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from data_beam.base.records import Document, Dropped

Span = tuple[int, int]  # start and end of a part of a text
Highlight = str | Callable[[str, Mapping[str, Any]], list[Span]]
"""What to highlight in a dropped text: a regular expression, or a function of the text and the
settings of the filter (`section`, as plain values)."""


class Filter(ABC):
    """Judges one document at a time. Each worker makes one instance; its constructor gets the
    settings from `section` of the recipe, loads models, and raises ConfigError for a setting that
    is unusable, such as a model that does not exist. Filters that compare documents with each other
    are in `dedup`."""

    name: ClassVar[str]  # written to the column `stage` of documents that it drops
    section: ClassVar[str]  # the field of the recipe with its settings
    libraries: ClassVar[tuple[str, ...]] = ()
    """Distributions whose version may change its decisions, without numpy; these versions are part
    of the fingerprint of the stages."""
    highlights: ClassVar[tuple[tuple[str, Highlight], ...]] = ()
    """(reason, what the report highlights in texts dropped for this reason). The quote at the end
    of `detail` is always highlighted."""

    def __init__(self, config: Any):
        self._config = config

    @classmethod
    def is_enabled(cls, config: Any) -> bool:
        """Whether the settings turn it on."""
        return True

    @classmethod
    def files(cls, config: Any) -> list[tuple[str, str]]:
        """(field of the recipe, path) for each file that its decisions depend on."""
        return []

    @classmethod
    def functions(cls, config: Any) -> list[str]:
        """User functions (`module:function`) that its decisions depend on."""
        return []

    def notes(self) -> list[str]:
        """Lines that a dry run prints about the filter."""
        return []

    @abstractmethod
    def __call__(self, document: Document) -> Document | Dropped:
        """The document, changed or not, or the reason to drop it."""
