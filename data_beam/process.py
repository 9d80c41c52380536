"""One record to one outcome: extract, clean, judge, name its language."""

import hashlib

from data_beam.clean.language import LanguageIdentifier
from data_beam.clean.text import clean_code, clean_prose
from data_beam.config import RecipeConfig
from data_beam.extract.text import ExtractionError, extract
from data_beam.filters.basic import reason_to_drop
from data_beam.records import DeadLetter, Document, Dropped, Outcome, Record

CODE_LANGUAGE = {"python": "python"}
"""Formats that are source code, and the `language` their documents carry."""


def process(record: Record, recipe: RecipeConfig, language: LanguageIdentifier) -> Outcome:
    """A clean document, or the rule that dropped it, or why it is no document of its format."""
    try:
        text, extracted = extract(record.format, record.text)
    except ExtractionError as error:
        return DeadLetter(record.origin, "extract", error.reason, error.detail)
    is_code = record.format in CODE_LANGUAGE
    if is_code:
        text, repairs = clean_code(text)
    else:
        text, repairs = clean_prose(text, recipe.clean.fix_mojibake, recipe.clean.normalization)
    failed = reason_to_drop(text, is_code, recipe.filters)
    if failed is not None:
        return Dropped(record.origin, "filter", *failed)
    if is_code:
        name, score = CODE_LANGUAGE[record.format], None
    else:
        name, score = language(text)
    return Document(
        record.origin, text, record.domain, record.licence, record.url, name, score,
        hashlib.sha256(text.encode("utf-8")).hexdigest(), record.bytes_sha256,
        record.transforms + extracted + repairs)
