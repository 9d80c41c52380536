"""One record to a clean document: its text extracted from the markup, and repaired."""

from collections.abc import Callable

from data_beam.base.records import DeadLetter, Document, Dropped, Record, text_sha256
from data_beam.clean.conversions import clean
from data_beam.clean.repairs import clean_code
from data_beam.config import ExtractConfig, RecipeConfig
from data_beam.extract import documentation, epub, html, pdf
from data_beam.extract.errors import ExtractionError, NoText, check_garbled
from data_beam.readers.programming_languages import language_of

_DOCUMENTATION: dict[str, Callable[[str], str]] = {
    "markdown": documentation.markdown_prose,
    "docstrings": documentation.docstrings,
    "package_description": documentation.package_description,
}
SOURCE_CODE = ("code", "python")  # no filters of prose, no check for garbled text


def extract(record: Record, config: ExtractConfig, max_bytes: int) -> tuple[str, tuple[str, ...]]:
    """The text of a record without its markup, and the names of what was done.

    Formats without markup (`text`, `code`, `python`, `jsonl`, `json`, `sqlite`, `parquet`) come
    back as they are. A compressed container (EPUB) may have `max_bytes` when unpacked. Raises
    ExtractionError if the record is not in the format its input claims, NoText if it is, but holds
    no text.
    """
    if record.format in SOURCE_CODE:
        return record.text, ()
    if record.format == "pdf":
        return pdf.text(record.data, config)
    if record.format == "epub":
        text, done = epub.text(record.data, max_bytes)
    elif record.format == "html":
        text, done = html.main_text(record.text, config)
    elif record.format in _DOCUMENTATION:
        text, done = _DOCUMENTATION[record.format](record.text), (f"extract:{record.format}",)
    else:
        text, done = record.text, ()
    check_garbled(text, config.max_garbled_fraction)
    return text, done


def process(record: Record, recipe: RecipeConfig) -> Document | Dropped | DeadLetter:
    """A clean document, before any filter, or why it has no text or is not of its format.

    A library that fails on a record makes it a dead letter; I/O errors are re-raised.
    """
    try:
        text, transforms = extract(record, recipe.extract, recipe.limits.max_record_bytes)
        is_code = record.format in SOURCE_CODE
        language, = (source.language for source in recipe.sources
                     if source.name == record.origin.source)
        if is_code:
            language = "python" if record.format == "python" else language_of(record.origin.path)
            text, repairs = clean_code(text)
        elif record.trained_spans is not None:  # they count the characters of the text as it is
            repairs = ()
        else:
            text, repairs = clean(text, recipe.clean, language)
        return Document(
            record.origin, text, record.domain, record.licence, record.url,
            language, None, text_sha256(text), record.bytes_sha256,
            record.transforms + transforms + repairs, is_code, offset=record.offset,
            trained_spans=record.trained_spans, group=record.group)
    except ExtractionError as error:
        return DeadLetter(record.origin, "extract", error.reason, error.detail)
    except NoText as error:
        return Dropped(record.origin, "extract", error.reason, error.detail)
    except OSError:
        raise
    except Exception as error:
        return DeadLetter(record.origin, "extract", "failed", f"{type(error).__name__}: {error}")
