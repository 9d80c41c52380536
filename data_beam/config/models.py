"""Filters that are models: perplexity, quality, safety. All are off until a model is named."""

import dataclasses

from data_beam.config.checks import check_idle, check_not_empty, check_unique
from maxlm.config.schema import ConfigError, setting


@dataclasses.dataclass(frozen=True)
class PerplexityModelConfig:
    """One language and its model."""

    language: str = setting(
        dataclasses.MISSING, "language of the documents it judges, as in the column language: zh")
    model: str = setting(
        dataclasses.MISSING, "folder that python -m data_beam.train_perplexity wrote")
    max_percentile: int = setting(
        99, "documents above this percentile of the model's clean held-out documents are dropped; "
        "0 drops none and only scores", minimum=0, maximum=99)
    min_percentile: int = setting(
        0, "documents below this percentile are dropped too (templates, one sentence over and "
        "over); 0 for none", minimum=0, maximum=99)
    max_perplexity: float = setting(
        0.0, "drop above this perplexity, instead of max_percentile; 0 to go by percentile",
        minimum=0.0)

    def check(self, path: str) -> None:
        check_not_empty(self, path, "language", "model")
        if 0 < self.max_percentile <= self.min_percentile and not self.max_perplexity:
            raise ConfigError(f"{path}.min_percentile: {self.min_percentile} leaves nothing under "
                              f"max_percentile {self.max_percentile}; lower it")
        if self.max_perplexity and self.max_percentile != PerplexityModelConfig.max_percentile:
            raise ConfigError(f"{path}.max_percentile: does nothing while {path}.max_perplexity is "
                              "set; choose one of them")


@dataclasses.dataclass(frozen=True)
class PerplexityConfig:
    """Drops documents unlikely under an n-gram model of clean text. Source code is not judged."""

    models: tuple[PerplexityModelConfig, ...] = setting(
        (), "one for each language; empty switches it off")
    other_languages: str = setting(
        "keep", "documents in a language without a model", choices=("keep", "drop"))

    def check(self, path: str) -> None:
        check_unique([model.language for model in self.models], f"{path}.models",
                     "the language {!r} has two models")
        if not self.models:
            check_idle(self, path, f"{path}.models is empty", "name the models")


@dataclasses.dataclass(frozen=True)
class QualityConfig:
    """Drops documents that a classifier rates low. Source code is not judged."""

    model: str = setting(
        "", "folder that python -m data_beam.train_quality wrote; empty switches it off")
    min_score: float = setting(
        2.0, "documents with a lower score, from 0 to 5, are dropped; 0 only scores",
        minimum=0.0, maximum=5.0)

    def check(self, path: str) -> None:
        if not self.model:
            check_idle(self, path, f"{path}.model is empty", "name the model's folder")


@dataclasses.dataclass(frozen=True)
class KeywordListConfig:
    """A list of words."""

    language: str = setting(dataclasses.MISSING, "language of the documents it is for; * for all")
    file: str = setting(
        dataclasses.MISSING, "one keyword a line; # begins a comment, ! a harmless phrase that "
        "holds a keyword")

    def check(self, path: str) -> None:
        check_not_empty(self, path, "language", "file")


@dataclasses.dataclass(frozen=True)
class SafetyConfig:
    """Drops toxic documents and advertisements for gambling and pornography. Source code is not
    judged."""

    model: str = setting(
        "", "folder that python -m data_beam.train_quality --task=safety wrote; empty for none")
    default_keywords: bool = setting(
        False, "use the short lists that come with data_beam (zh, en), on documents of any "
        "language")
    keywords: tuple[KeywordListConfig, ...] = setting((), "lists of your own")
    keyword_saturation: float = setting(
        0.05, "share of a text's characters in keywords at which its toxicity is 1", above=0.0,
        maximum=1.0)
    max_toxicity: float = setting(
        0.5, "documents with a higher score, from 0 to 1, are dropped; 1 only scores",
        minimum=0.0, maximum=1.0)
    max_keyword_lines: float = setting(
        0.5, "texts of 3 lines and more with a larger share of lines with a keyword are dropped; 1 "
        "switches it off", minimum=0.0, maximum=1.0)

    @property
    def is_on(self) -> bool:
        return bool(self.model or self.default_keywords or self.keywords)

    def check(self, path: str) -> None:
        if not self.is_on:
            check_idle(self, path, "there is neither a model nor a list of keywords",
                       f"set {path}.model, {path}.default_keywords or {path}.keywords")
        elif not (self.default_keywords or self.keywords):
            check_idle(self, path, "there is no list of keywords",
                       f"set {path}.default_keywords or {path}.keywords",
                       only=("keyword_saturation", "max_keyword_lines"))
