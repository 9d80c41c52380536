"""One record to a clean document: its text extracted from the markup, and repaired."""

from data_beam.clean.text import clean_code, clean_prose
from data_beam.config import RecipeConfig
from data_beam.extract.text import ExtractionError, extract
from data_beam.records import DeadLetter, Document, Record, text_sha256

CODE_LANGUAGE = {"python": "python"}
"""Formats that are source code, and the `language` their documents carry."""


def process(record: Record, recipe: RecipeConfig) -> Document | DeadLetter:
    """A clean document, not yet judged by any rule, or why it is no document of its format."""
    try:
        text, extracted = extract(record.format, record.text)
    except ExtractionError as error:
        return DeadLetter(record.origin, "extract", error.reason, error.detail)
    is_code = record.format in CODE_LANGUAGE
    if is_code:
        text, repairs = clean_code(text)
    else:
        text, repairs = clean_prose(text, recipe.clean.fix_mojibake, recipe.clean.normalization)
    return Document(
        record.origin, text, record.domain, record.licence, record.url,
        CODE_LANGUAGE.get(record.format, ""), None, text_sha256(text), record.bytes_sha256,
        record.transforms + extracted + repairs, is_code)
