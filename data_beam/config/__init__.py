"""The recipe of a corpus: which files are read, how they are cleaned, and which filters judge them.

A recipe file (`configs/corpus/*.py`) returns `schema.to_config_dict(RecipeConfig(...))`.
"""

from data_beam.config.clean import CleanConfig, LanguageConfig
from data_beam.config.decontaminate import DecontaminateConfig, EvaluationSetConfig
from data_beam.config.dedup import DedupConfig, MinHashConfig, RepeatedTextConfig, SimHashConfig
from data_beam.config.extract import ExtractConfig
from data_beam.config.filters import FilterConfig, LicenceConfig, PrivacyConfig
from data_beam.config.models import (
    KeywordListConfig,
    PerplexityConfig,
    PerplexityModelConfig,
    QualityConfig,
    SafetyConfig,
)
from data_beam.config.recipe import AugmentConfig, LimitConfig, RecipeConfig, SplitConfig
from data_beam.config.sources import FORMATS, InputConfig, SourceConfig
