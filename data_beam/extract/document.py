"""One record to a clean document: its text extracted from the markup, and repaired."""

from data_beam.base.records import DeadLetter, Document, Dropped, Record, text_sha256
from data_beam.clean.prose import clean
from data_beam.clean.text import clean_code
from data_beam.config import RecipeConfig
from data_beam.extract.text import SOURCE_CODE, ExtractionError, NoText, extract
from data_beam.readers.programming_languages import language_of


def process(record: Record, recipe: RecipeConfig) -> Document | Dropped | DeadLetter:
    """A clean document, not yet judged by any rule, or why it has no text or is not of its format.

    A library that fails on a record makes it a dead letter; a disk that fails is raised.
    """
    try:
        return _process(record, recipe)
    except OSError:
        raise
    except Exception as error:
        return DeadLetter(record.origin, "extract", "failed", f"{type(error).__name__}: {error}")


def _process(record: Record, recipe: RecipeConfig) -> Document | Dropped | DeadLetter:
    try:
        text, extracted = extract(record, recipe.extract, recipe.limits.max_record_bytes)
    except ExtractionError as error:
        return DeadLetter(record.origin, "extract", error.reason, error.detail)
    except NoText as error:
        return Dropped(record.origin, "extract", error.reason, error.detail)
    is_code = record.format in SOURCE_CODE
    language, = (source.language for source in recipe.sources
                 if source.name == record.origin.source)
    if is_code:
        language = "python" if record.format == "python" else language_of(record.origin.path)
        text, repairs = clean_code(text)
    else:
        text, repairs = clean(text, recipe.clean)
    return Document(
        record.origin, text, record.domain, record.licence, record.url,
        language, None, text_sha256(text), record.bytes_sha256,
        record.transforms + extracted + repairs, is_code, offset=record.offset)
