"""Filters, which judge one document at a time.

Importing this package defines the filters that `filters.rules` can name; the settings of each are
here too.
"""

from data_beam.filters.c4 import C4Config, C4Thresholds
from data_beam.filters.chat_log import ChatLogConfig
from data_beam.filters.chinese_web_text import ChineseWebTextConfig
from data_beam.filters.entropy import EntropyConfig, EntropyThresholds
from data_beam.filters.fineweb import FineWebConfig, FineWebThresholds
from data_beam.filters.gopher import (
    GopherQualityConfig,
    GopherQualityThresholds,
    GopherRepetitionConfig,
    GopherRepetitionThresholds,
)
from data_beam.filters.nemo import NemoConfig
from data_beam.filters.repeated_sentences import (
    RepeatedSentencesConfig,
    RepeatedSentencesThresholds,
)
from data_beam.filters.roots import (
    NgramRepetitionConfig,
    NgramRepetitionThresholds,
    RootsConfig,
    RootsThresholds,
)
