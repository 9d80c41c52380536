"""The rules that judge clean documents, in their order.

A rule looks at one document. It gives it back, with another text or more scores if it likes, or
says why it is dropped. Rules that compare documents with each other are in `dedup`.
"""

import hashlib
from collections.abc import Iterator
from typing import Protocol

from apache_beam.io.filesystems import FileSystems

from data_beam.base import files, user_function
from data_beam.base.records import DeadLetter, Document, Dropped
from data_beam.clean.language import LanguageFilter
from data_beam.config import RecipeConfig
from data_beam.decontaminate import evaluation_sets
from data_beam.decontaminate.overlap_filter import DecontaminateFilter
from data_beam.filters.basic import BasicFilter
from data_beam.filters.licence import LicenceFilter
from data_beam.filters.rule_sets import make_rule_sets
from data_beam.models import loaded_files
from data_beam.models.classifier import QualityFilter
from data_beam.models.perplexity import PerplexityFilter
from data_beam.models.safety import SafetyFilter
from data_beam.privacy.filter import PrivacyFilter
from maxlm.config.schema import ConfigError


class Rule(Protocol):
    """One rule, made once a worker: models and tables are loaded when it is constructed."""

    stage: str
    """Its name, the `stage` of what it drops."""

    def __call__(self, document: Document) -> Document | Dropped:
        """The document, changed or not, or the reason to drop it. Never raises, whatever the text.
        """
        ...


def make_rules(recipe: RecipeConfig) -> list[Rule]:
    """The rules that a recipe turns on, in the order in which they are applied.

    Raises:
      ConfigError: a rule that cannot work: a model that does not exist, a list that is empty.
    """
    return [
        BasicFilter(recipe.filters),
        *([LicenceFilter(recipe.licence)] if recipe.licence.allow else []),
        LanguageFilter(recipe.language),
        *make_rule_sets(recipe.filters),
        *([PerplexityFilter(recipe.perplexity)] if recipe.perplexity.models else []),
        *([QualityFilter(recipe.quality)] if recipe.quality.model else []),
        *make_rules_for_made(recipe),
    ]


def make_rules_for_made(recipe: RecipeConfig) -> list[Rule]:
    """Of these rules the last ones, which documents made by augmentation must pass too: what must
    not be in a corpus at all may come from a table of facts, a dictionary or a translator.

    Raises:
      ConfigError: as `make_rules`.
    """
    return [
        *([SafetyFilter(recipe.safety)] if recipe.safety.is_on else []),
        *([DecontaminateFilter(recipe.decontaminate)] if recipe.decontaminate.sets else []),
        *([PrivacyFilter(recipe.privacy)] if recipe.privacy.enabled else []),
    ]


def judge(document: Document, rules: list[Rule]
          ) -> Iterator[tuple[str, Document | Dropped | DeadLetter]]:
    """The outcome of each rule by its stage, until one drops the document.

    A rule that fails on a document (a user's function may) makes it a dead letter of its stage. A
    disk that fails is no matter of the document, and is raised.
    """
    for rule in rules:
        try:
            outcome: Document | Dropped | DeadLetter = rule(document)
        except OSError:
            raise
        except (Exception, SystemExit) as error:  # a library of the user's may call sys.exit
            outcome = DeadLetter(document.origin, rule.stage, "failed",
                                 f"{type(error).__name__}: {error}")
        yield rule.stage, outcome
        if not isinstance(outcome, Document):
            return
        document = outcome


def model_files(recipe: RecipeConfig) -> dict[str, str]:
    """SHA-256 of the files that rules load, by path (of the user's function by its name): with
    others the outcome is another.

    Raises:
      ConfigError: one does not exist.
    """
    # Field of the recipe, path.
    paths = [*loaded_files.all_paths(recipe), *evaluation_sets.all_paths(recipe.decontaminate)]
    hashes = {}
    for field, path in paths:
        if not FileSystems.exists(path):
            raise ConfigError(f"{field}: {path} does not exist")
        hashes[path] = hashlib.sha256(files.read_bytes(path)).hexdigest()
    if recipe.privacy.name_recogniser:
        name = recipe.privacy.name_recogniser
        hashes[name] = user_function.module_sha256(name)
    return hashes
