"""Rules that drop a document."""

import dataclasses

from data_beam.config.checks import check_idle
from data_beam.config.languages import SPACELESS, check_languages
from data_beam.config.rule_sets import (
    C4Config,
    ChatLogConfig,
    ChineseWebTextConfig,
    EntropyConfig,
    FineWebConfig,
    GopherQualityConfig,
    GopherRepetitionConfig,
    NemoConfig,
    NgramRepetitionConfig,
    RepeatedSentencesConfig,
    RootsConfig,
)
from maxlm.config.schema import ConfigError, setting, suggestion

TABLES = ("en", "zh")
"""Languages that rule sets have thresholds for."""


@dataclasses.dataclass(frozen=True)
class FilterConfig:
    """When a document is dropped. Source code is only judged by its length."""

    min_characters: int = setting(
        50, "shorter documents are dropped, counted without whitespace", minimum=1)
    short_line_width: int = setting(
        30, "lines up to this many columns are short; a full-width character takes two (FineWeb "
        "takes 30 characters)", minimum=1)
    max_short_line_fraction: float = setting(
        0.67, "prose with a larger share of short lines is dropped; 1 switches it off (FineWeb)",
        minimum=0.0, maximum=1.0)
    rules: tuple[str, ...] = setting(
        (), "rule sets to apply, in this order: gopher_quality, gopher_repetition, c4, fineweb, "
        "nemo, chinese_web_text, roots, ngram_repetition, repeated_sentences, entropy, chat_log")
    other_languages: str = setting(
        "drop", "what rule sets do with a language they have no thresholds for: drop it, with that "
        "reason, or keep it unjudged", choices=("drop", "keep"))
    same_as: tuple[str, ...] = setting(
        ("wuu=zh", "yue=zh"), "languages judged by the thresholds of another, as in 'fr=en'")
    gopher_quality: GopherQualityConfig = setting(GopherQualityConfig(), "Gopher, quality")
    gopher_repetition: GopherRepetitionConfig = setting(
        GopherRepetitionConfig(), "Gopher, repetition")
    c4: C4Config = setting(C4Config(), "C4")
    fineweb: FineWebConfig = setting(FineWebConfig(), "FineWeb")
    nemo: NemoConfig = setting(NemoConfig(), "NeMo Curator, English")
    chinese_web_text: ChineseWebTextConfig = setting(
        ChineseWebTextConfig(), "ChineseWebText, Chinese")
    roots: RootsConfig = setting(RootsConfig(), "ROOTS, special characters and stop words")
    ngram_repetition: NgramRepetitionConfig = setting(NgramRepetitionConfig(), "repeated n-grams")
    repeated_sentences: RepeatedSentencesConfig = setting(
        RepeatedSentencesConfig(), "a sentence through a whole book")
    entropy: EntropyConfig = setting(EntropyConfig(), "entropy of characters")
    chat_log: ChatLogConfig = setting(ChatLogConfig(), "logs of chats")

    def check(self, path: str) -> None:
        for i, name in enumerate(self.rules):
            if name not in RULE_SETS:
                raise ConfigError(
                    f"{path}.rules: there is no rule set {name!r}; {suggestion(name, RULE_SETS)}")
            if name in self.rules[:i]:
                raise ConfigError(f"{path}.rules: {name!r} is there twice")
        self.table_of(path)
        for name in RULE_SETS:
            if name not in self.rules:
                check_idle(getattr(self, name), f"{path}.{name}",
                           f"{path}.rules does not list {name!r}", "add it there",
                           default=getattr(_DEFAULT, name))
        if not self.rules:
            check_idle(self, path, f"{path}.rules is empty", "list the rule sets to apply",
                       only=("other_languages", "same_as"))
        if self.max_short_line_fraction == 1:
            check_idle(self, path, f"{path}.max_short_line_fraction is 1", "lower that",
                       only=("short_line_width",))

    def table_of(self, path: str = "filters") -> dict[str, str]:
        """Language -> the language whose thresholds judge it.

        Raises:
          ConfigError: an entry of `same_as` that is no `language=table`, that names a language
            nobody knows, or that would cut a language without spaces at spaces.
        """
        result = {name: name for name in TABLES}
        for entry in self.same_as:
            language, equals, table = entry.partition("=")
            if not equals or table not in TABLES:
                raise ConfigError(f"{path}.same_as: {entry!r} is not LANGUAGE=TABLE; tables: "
                                  f"{', '.join(TABLES)}")
            check_languages([language], f"{path}.same_as")
            if language in result:
                raise ConfigError(f"{path}.same_as: {language!r} has a table already")
            if (language in SPACELESS) != (table == "zh") or language in ("bo", "km", "lo", "my",
                                                                           "th", "ja"):
                raise ConfigError(f"{path}.same_as: {entry!r}: the words of {language!r} are not "
                                  f"cut like those of {table!r}")
            result[language] = table
        return result


RULE_SETS = tuple(field.name for field in dataclasses.fields(FilterConfig)
                  if dataclasses.is_dataclass(field.default))
"""Names of the rule sets: those of their sections."""
_DEFAULT = FilterConfig()
