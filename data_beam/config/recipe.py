"""The whole recipe: sources, stages and their thresholds."""

import dataclasses

from data_beam.config.checks import check_unique
from data_beam.config.clean import CleanConfig, LanguageConfig
from data_beam.config.decontaminate import DecontaminateConfig
from data_beam.config.dedup import DedupConfig
from data_beam.config.extract import ExtractConfig
from data_beam.config.filters import FilterConfig, LicenceConfig, PrivacyConfig
from data_beam.config.models import PerplexityConfig, QualityConfig, SafetyConfig
from data_beam.config.sources import SourceConfig
from maxlm.config.schema import ConfigError, setting, suggestion


@dataclasses.dataclass(frozen=True)
class SplitConfig:
    """Share of documents by split, by the hash of their text. The rest is for training."""

    validation: float = setting(0.01, "share of documents", minimum=0.0, maximum=1.0)
    test: float = setting(0.01, "share of documents", minimum=0.0, maximum=1.0)

    def check(self, path: str) -> None:
        if self.validation + self.test >= 1:
            raise ConfigError(f"{path}: validation + test is {self.validation + self.test:g}; "
                              "nothing would be left to train on")


@dataclasses.dataclass(frozen=True)
class AugmentConfig:
    """Documents made from training documents, or from a table of facts. Off unless `synonyms`,
    `templates` or `back_translation` is set."""

    max_share: float = setting(
        0.2, "made documents may be up to this share of the characters that a source trains on",
        above=0.0, maximum=0.9)
    synonyms: str = setting(
        "", "dictionary of terms: .tsv with a term and its synonyms a line, or .json with an "
        "object of lists")
    synonym_share: float = setting(
        0.5, "share of a document's terms that become a synonym", above=0.0, maximum=1.0)
    synonym_copies: int = setting(1, "documents made of one by synonyms", minimum=1)
    templates: str = setting(
        "", ".json with fields, records and templates by language, from which sentences are made")
    template_source: str = setting("", "source of the recipe that documents of templates belong to")
    back_translation: str = setting(
        "", "module:function that takes a list of paragraphs and returns as many, each translated "
        "to another language and back; loaded once a worker")

    @property
    def enabled(self) -> bool:
        return bool(self.synonyms or self.templates or self.back_translation)

    def check(self, path: str) -> None:
        if bool(self.templates) != bool(self.template_source):
            raise ConfigError(f"{path}.template_source: must be set with {path}.templates, and "
                              "only then")
        if not self.synonyms and (self.synonym_share, self.synonym_copies) != (
                AugmentConfig.synonym_share, AugmentConfig.synonym_copies):
            raise ConfigError(f"{path}.synonyms: is empty, so synonym_share and synonym_copies do "
                              "nothing")
        if not self.enabled and self.max_share != AugmentConfig.max_share:
            raise ConfigError(f"{path}.max_share: does nothing while no document is made; set "
                              "synonyms, templates or back_translation")


@dataclasses.dataclass(frozen=True)
class LimitConfig:
    """Bounds that keep one bad file from taking a worker down."""

    max_record_bytes: int = setting(
        32 * 2**20, "a larger file (line of jsonl, field) is a dead letter, unread", minimum=1)


@dataclasses.dataclass(frozen=True)
class RecipeConfig:
    """A whole corpus."""

    sources: tuple[SourceConfig, ...] = setting(
        (), "the sources; of equal texts the copy in the source listed first is kept")
    extract: ExtractConfig = setting(ExtractConfig(), "text out of markup")
    clean: CleanConfig = setting(CleanConfig(), "repairs")
    language: LanguageConfig = setting(LanguageConfig(), "naming the language")
    filters: FilterConfig = setting(FilterConfig(), "reasons to drop")
    licence: LicenceConfig = setting(LicenceConfig(), "licences that may stay")
    perplexity: PerplexityConfig = setting(
        PerplexityConfig(), "perplexity under an n-gram model of clean text")
    quality: QualityConfig = setting(QualityConfig(), "a classifier from 0 to 5")
    safety: SafetyConfig = setting(SafetyConfig(), "toxic text, unwanted advertisements")
    decontaminate: DecontaminateConfig = setting(
        DecontaminateConfig(), "evaluation sets that must not be in the corpus")
    privacy: PrivacyConfig = setting(PrivacyConfig(), "personal data")
    dedup: DedupConfig = setting(DedupConfig(), "copies")
    split: SplitConfig = setting(SplitConfig(), "train, validation, test")
    augment: AugmentConfig = setting(AugmentConfig(), "documents made from others")
    limits: LimitConfig = setting(LimitConfig(), "size caps")
    shards: int = setting(
        4, "files per output; a shard is sorted in the memory of one worker, so aim at 500 MB",
        minimum=1)

    def check(self, path: str) -> None:
        if not self.sources:
            raise ConfigError(f"{path}.sources: at least one is needed")
        names = [source.name for source in self.sources]
        check_unique(names, f"{path}.sources")
        target = self.augment.template_source
        if target and target not in names:
            raise ConfigError(f"{path}.augment.template_source: no source {target!r}; "
                              f"{suggestion(target, names)}")
        c4 = self.filters.c4
        if ("c4" in self.filters.rules and self.dedup.paragraphs.enabled
                and c4.en.min_words_per_line != 0 and c4.zh.min_words_per_line != 0):
            raise ConfigError(
                f"{path}.dedup.paragraphs.enabled: c4 removes the empty lines between paragraphs, "
                f"so there are none to compare; use {path}.dedup.lines, or set "
                f"{path}.filters.c4.en.min_words_per_line or {path}.filters.c4.zh."
                "min_words_per_line to 0")
