"""The rule sets that a recipe names, by name."""

from collections.abc import Callable

from data_beam.config.filters import FilterConfig
from data_beam.filters.c4 import C4Rule
from data_beam.filters.chat_log import ChatLogRule
from data_beam.filters.chinese_web_text import ChineseWebTextRule
from data_beam.filters.entropy import EntropyRule
from data_beam.filters.fineweb import FineWebRule
from data_beam.filters.gopher_quality import GopherQualityRule
from data_beam.filters.gopher_repetition import GopherRepetitionRule
from data_beam.filters.nemo import NemoRule
from data_beam.filters.ngram_repetition import NgramRepetitionRule
from data_beam.filters.repeated_sentences import RepeatedSentencesRule
from data_beam.filters.roots import RootsRule
from data_beam.filters.table_rule import TableRule
from data_beam.filters.views import Views

RuleSet = TableRule | ChatLogRule

_MAKERS: dict[str, Callable[[FilterConfig, Views], RuleSet]] = {
    rule.stage: rule for rule in (
        GopherQualityRule, GopherRepetitionRule, C4Rule, FineWebRule, NemoRule,
        ChineseWebTextRule, RootsRule, NgramRepetitionRule, RepeatedSentencesRule, EntropyRule)
}
_MAKERS["chat_log"] = lambda config, views: ChatLogRule(config)

NAMES = tuple(_MAKERS)


def make_rule_sets(config: FilterConfig) -> list[RuleSet]:
    """The rule sets of `filters.rules` in their order; they share the words of a document.

    Raises:
      ConfigError: a setting that cannot work.
    """
    views = Views()
    return [_MAKERS[name](config, views) for name in config.rules]
