"""The rules that judge clean documents, in their order.

A rule looks at one document. It gives it back, with another text or more scores if it likes, or
says why it is dropped. Rules that compare documents with each other are in `dedup`.
"""

from collections.abc import Iterator
from typing import Protocol

from data_beam.clean.language import LanguageRule
from data_beam.config import RecipeConfig
from data_beam.filters.basic import BasicRule
from data_beam.records import Document, Dropped


class Rule(Protocol):
    """One rule, made once a worker: models and tables are loaded when it is constructed.

    Attributes:
      stage: its name, the `stage` of what it drops.
    """

    stage: str

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
        BasicRule(recipe.filters),
        LanguageRule(recipe.language),
    ]


def judge(document: Document, rules: list[Rule]) -> Iterator[tuple[str, Document | Dropped]]:
    """The outcome of each rule by its stage, until one drops the document."""
    for rule in rules:
        outcome = rule(document)
        yield rule.stage, outcome
        if isinstance(outcome, Dropped):
            return
        document = outcome
