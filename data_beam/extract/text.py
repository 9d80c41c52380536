"""Text of a record, by format."""

from collections.abc import Callable

from data_beam.base.records import Record
from data_beam.config import ExtractConfig
from data_beam.extract import (
    epub,
    garbled,
    html,
    markdown,
    package_description,
    pdf,
    python_source,
)
from data_beam.extract.errors import ExtractionError, NoText

_OF_TEXT: dict[str, Callable[[str], str]] = {
    "markdown": markdown.prose,
    "docstrings": python_source.docstrings,
    "package_description": package_description.description,
}
SOURCE_CODE = ("code", "python")
"""Formats that are source code: rules for prose, and for garbled text, pass them by."""


def extract(record: Record, config: ExtractConfig,
            max_bytes: int) -> tuple[str, tuple[str, ...]]:
    """The text without its markup, and the names of what was done.

    Formats without markup (`text`, `code`, `python`, `jsonl`, `json`, `sqlite`, `parquet`) come
    back as they are. A pure function: nothing is kept between calls.

    Args:
      record: as read.
      config: how.
      max_bytes: that a compressed container (EPUB) may have when unpacked.

    Raises:
      ExtractionError: the record is not in the format its input claims.
      NoText: it is, but holds no text.
    """
    if record.format in SOURCE_CODE:
        return record.text, ()
    if record.format == "pdf":
        return pdf.text(record.data, config)
    if record.format == "epub":
        text, done = epub.text(record.data, max_bytes)
    elif record.format == "html":
        text, done = html.main_text(record.text, config)
    elif record.format in _OF_TEXT:
        text, done = _OF_TEXT[record.format](record.text), (f"extract:{record.format}",)
    else:
        text, done = record.text, ()
    garbled.check(text, config.max_garbled_fraction)
    return text, done


__all__ = ["SOURCE_CODE", "ExtractionError", "NoText", "extract"]
