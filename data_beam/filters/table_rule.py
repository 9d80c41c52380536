"""What all rule sets share: which documents they judge, and with which table."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from data_beam.base.records import Document, Dropped
from data_beam.config import FilterConfig
from data_beam.filters.views import View, Views

Failure = tuple[str, str]
"""The reason to drop a document and what was measured."""

NO_TABLE = "no thresholds for its language"


class TableFilter(ABC):
    """A rule set that judges prose by the thresholds for its language.

    Source code passes it by. So does a language that other rule sets have thresholds for, when this
    one has none: it is made for one language. Any other language meets `other_languages`: it is
    dropped with a reason of its own, or kept unjudged, and never judged by another's thresholds.

    Args:
      config: all of the filters' settings.
      views: shared with the other rule sets of the worker.
    """

    stage: str

    def __init__(self, config: FilterConfig, views: Views):
        self.config: Any = getattr(config, self.stage)
        self._views = views
        self._table_of = config.table_of()
        self._keep_others = config.other_languages == "keep"
        self._tables = self.tables()

    def tables(self) -> Mapping[str, Any]:
        """Thresholds by language."""
        return {"en": self.config.en, "zh": self.config.zh}

    @abstractmethod
    def judge(self, view: View, table: Any) -> Failure | None:
        """Why a text is dropped, or None."""

    def apply(self, document: Document, view: View, table: Any) -> Document | Failure:
        """The document, changed or not, or why it is dropped."""
        return self.judge(view, table) or document

    def __call__(self, document: Document) -> Document | Dropped:
        if document.is_code:
            return document
        name = self._table_of.get(document.language)
        if name is None:
            if self._keep_others:
                return document
            return Dropped(document.origin, self.stage, NO_TABLE, document.language)
        table = self._tables.get(name)
        if table is None:
            return document
        outcome = self.apply(document, self._views(document.text, name), table)
        if isinstance(outcome, Document):
            return outcome
        return Dropped(document.origin, self.stage, *outcome)


def over(value: float, limit: float | None) -> bool:
    """Whether a value passes an upper limit that is on."""
    return limit is not None and value > limit


def under(value: float, limit: float | None) -> bool:
    """Whether a value misses a lower limit that is on."""
    return limit is not None and value < limit


def measured(value: float, limit: float | None) -> str:
    """`0.3125, limit 0.3` for the detail of what is dropped."""
    return f"{value:.4g}, limit {limit:g}"
