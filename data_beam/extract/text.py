"""Text of a record, by format."""

from collections.abc import Callable

from data_beam.extract import html, markdown, package_description, python_source
from data_beam.extract.errors import ExtractionError

_EXTRACTORS: dict[str, Callable[[str], str]] = {
    "html": html.main_text,
    "markdown": markdown.prose,
    "docstrings": python_source.docstrings,
    "package_description": package_description.description,
}


def extract(format: str, text: str) -> tuple[str, tuple[str, ...]]:
    """The text without its markup, and the names of the transforms applied.

    Formats without markup (`text`, `python`, `jsonl`, `json`, `sqlite`) come back as they are.
    A pure function: nothing is kept between calls.

    Raises:
      ExtractionError: the record is not in the format its input claims.
    """
    extractor = _EXTRACTORS.get(format)
    if extractor is None:
        return text, ()
    return extractor(text), (f"extract:{format}",)


__all__ = ["ExtractionError", "extract"]
