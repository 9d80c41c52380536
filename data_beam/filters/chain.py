"""The filters of a recipe in their order, and what their decisions depend on."""

import hashlib
from collections.abc import Iterator

from apache_beam.io.filesystems import FileSystems

from data_beam.base import files, user_function
from data_beam.base.filter import Filter
from data_beam.base.records import DeadLetter, Document, Dropped, ReasonedError
from data_beam.clean.language import LanguageFilter
from data_beam.config import RecipeConfig
from data_beam.decontaminate.overlap_filter import DecontaminateFilter
from data_beam.filters.basic import BasicFilter
from data_beam.filters.licence import LicenceFilter
from data_beam.filters.text_filter import TextFilter
from data_beam.models.classifier import QualityFilter
from data_beam.models.perplexity import PerplexityFilter
from data_beam.models.safety import SafetyFilter
from data_beam.privacy.filter import PrivacyFilter
from maxlm.config.schema import ConfigError

_BEFORE: tuple[type[Filter], ...] = (BasicFilter, LicenceFilter, LanguageFilter)
_AFTER: tuple[type[Filter], ...] = (PerplexityFilter, QualityFilter)
_FOR_AUGMENTED: tuple[type[Filter], ...] = (SafetyFilter, DecontaminateFilter, PrivacyFilter)


def all_filters() -> dict[str, type[Filter]]:
    """Every filter by its name. Those of `filters.rules` run in the order given there."""
    return {each.name: each for each in (
        *_BEFORE, *TextFilter.by_name.values(), *_AFTER, *_FOR_AUGMENTED)}


def sections() -> tuple[str, ...]:
    """The fields of the recipe with the settings of filters."""
    return tuple(dict.fromkeys(each.section for each in all_filters().values()))


def libraries() -> tuple[str, ...]:
    """The distributions whose version may change the decision of a filter."""
    return tuple(dict.fromkeys(
        library for each in all_filters().values() for library in each.libraries))


def _enabled(recipe: RecipeConfig) -> list[type[Filter]]:
    named = [TextFilter.by_name[name] for name in recipe.filters.rules]
    return [each for each in (*_BEFORE, *named, *_AFTER, *_FOR_AUGMENTED)
            if each.is_enabled(getattr(recipe, each.section))]


def make_filters(recipe: RecipeConfig, for_augmented: bool = False) -> list[Filter]:
    """The filters that a recipe enables, in the order in which they are applied.

    Documents made by augmentation must pass the last ones too: a table of facts, a dictionary or a
    translator may bring in what a corpus must not contain. Raises ConfigError for a filter that
    cannot work: a model that does not exist, an empty list.
    """
    return [each(getattr(recipe, each.section)) for each in _enabled(recipe)
            if each in _FOR_AUGMENTED or not for_augmented]


def judge(document: Document, filters: list[Filter]
          ) -> Iterator[tuple[str, Document | Dropped | DeadLetter]]:
    """The outcome of each filter by its name, until one drops the document.

    A filter that fails on a document (a user's function may) makes it a dead letter. I/O errors are
    re-raised.
    """
    for each in filters:
        try:
            outcome: Document | Dropped | DeadLetter = each(document)
        except OSError:
            raise
        except ReasonedError as error:
            outcome = DeadLetter(document.origin, each.name, error.reason, error.detail)
        except (Exception, SystemExit) as error:  # a library of the user's may call sys.exit
            outcome = DeadLetter(document.origin, each.name, "failed",
                                 f"{type(error).__name__}: {error}")
        yield each.name, outcome
        if not isinstance(outcome, Document):
            return
        document = outcome


def loaded_files(recipe: RecipeConfig) -> dict[str, str]:
    """SHA-256 of the files that the enabled filters load by path, and of the modules of the user's
    functions by their names: with other contents, decisions may change. Raises ConfigError if one
    does not exist."""
    hashes = {}
    for each in _enabled(recipe):
        config = getattr(recipe, each.section)
        for field, path in each.files(config):
            if not FileSystems.exists(path):
                raise ConfigError(f"{field}: {path} does not exist")
            hashes[path] = hashlib.sha256(files.read_bytes(path)).hexdigest()
        for function in each.functions(config):
            hashes[function] = user_function.module_sha256(function)
    return hashes
