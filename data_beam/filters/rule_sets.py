"""The rule sets that a recipe names, by name."""

from collections.abc import Callable

from data_beam.config.filters import FilterConfig
from data_beam.filters.c4 import C4Filter
from data_beam.filters.chat_log import ChatLogFilter
from data_beam.filters.chinese_web_text import ChineseWebTextFilter
from data_beam.filters.entropy import EntropyFilter
from data_beam.filters.fineweb import FineWebFilter
from data_beam.filters.gopher_quality import GopherQualityFilter
from data_beam.filters.gopher_repetition import GopherRepetitionFilter
from data_beam.filters.nemo import NemoFilter
from data_beam.filters.ngram_repetition import NgramRepetitionFilter
from data_beam.filters.repeated_sentences import RepeatedSentencesFilter
from data_beam.filters.roots import RootsFilter
from data_beam.filters.table_rule import TableFilter
from data_beam.filters.views import Views

RuleSet = TableFilter | ChatLogFilter

_MAKERS: dict[str, Callable[[FilterConfig, Views], RuleSet]] = {
    rule.stage: rule for rule in (
        GopherQualityFilter, GopherRepetitionFilter, C4Filter, FineWebFilter, NemoFilter,
        ChineseWebTextFilter, RootsFilter, NgramRepetitionFilter, RepeatedSentencesFilter,
        EntropyFilter)
}
_MAKERS["chat_log"] = lambda config, views: ChatLogFilter(config)

NAMES = tuple(_MAKERS)


def make_rule_sets(config: FilterConfig) -> list[RuleSet]:
    """The rule sets of `filters.rules` in their order; they share the words of a document.

    Raises:
      ConfigError: a setting that cannot work.
    """
    views = Views()
    return [_MAKERS[name](config, views) for name in config.rules]
