"""Settings that filters share, and those of the licence and privacy filters.

Each filter in `data_beam/filters` that `filters.rules` can name declares its own settings, which
`add_filter` puts here as `filters.NAME`.
"""

import dataclasses
from typing import TYPE_CHECKING, Any

from data_beam.config.checks import CHINESE, SPACELESS, check_idle, check_languages
from maxlm.config.schema import ConfigError, setting, suggestion

THRESHOLDS = ("en", "zh")  # languages that filters have thresholds for


@dataclasses.dataclass(frozen=True)
class FilterConfig:
    """When a document is dropped. Source code is judged only by its length."""

    min_characters: int = setting(
        50, "shorter documents are dropped, counted without whitespace", minimum=1)
    short_line_width: int = setting(
        30, "lines up to this many columns are short; a full-width character takes two (FineWeb "
        "takes 30 characters)", minimum=1)
    max_short_line_fraction: float = setting(
        0.67, "prose with a larger share of short lines is dropped; 1 switches it off (FineWeb)",
        minimum=0.0, maximum=1.0)
    rules: tuple[str, ...] = setting(
        (), "the filters to apply, in this order; each has a section of its name below")
    other_languages: str = setting(
        "drop", "what these filters do with a language they have no thresholds for: drop it, with "
        "that reason, or keep it unjudged", choices=("drop", "keep"))
    same_as: tuple[str, ...] = setting(
        ("wuu=zh", "yue=zh"), "languages judged by the thresholds of another, as in 'fr=en'")

    if TYPE_CHECKING:  # the sections of the filters
        def __init__(self, **settings: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...

    def check(self, path: str) -> None:
        for i, name in enumerate(self.rules):
            if name not in filter_names():
                raise ConfigError(f"{path}.rules: there is no filter {name!r}; "
                                  f"{suggestion(name, filter_names())}")
            if name in self.rules[:i]:
                raise ConfigError(f"{path}.rules: {name!r} is there twice")
        self.thresholds_of(path)
        for name in filter_names():
            if name not in self.rules:
                check_idle(getattr(self, name), f"{path}.{name}",
                           f"{path}.rules does not list {name!r}", "add it there",
                           default=getattr(FilterConfig(), name))
        if not self.rules:
            check_idle(self, path, f"{path}.rules is empty", "list the filters to apply",
                       only=("other_languages", "same_as"))
        if self.max_short_line_fraction == 1:
            check_idle(self, path, f"{path}.max_short_line_fraction is 1", "lower that",
                       only=("short_line_width",))

    def thresholds_of(self, path: str = "filters") -> dict[str, str]:
        """Language -> the language whose thresholds judge it. Raises ConfigError if an entry of
        `same_as` is not of the form `language=thresholds`, names an unknown language, or would cut
        a language without spaces at spaces."""
        result = {name: name for name in THRESHOLDS}
        for entry in self.same_as:
            language, equals, other = entry.partition("=")
            if not equals or other not in THRESHOLDS:
                raise ConfigError(f"{path}.same_as: {entry!r} is not LANGUAGE=THRESHOLDS; there "
                                  f"are thresholds for {', '.join(THRESHOLDS)}")
            check_languages([language], f"{path}.same_as")
            if language in result:
                raise ConfigError(f"{path}.same_as: {language!r} has thresholds already")
            cut_like = "zh" if language in CHINESE else "" if language in SPACELESS else "en"
            if other != cut_like:
                raise ConfigError(f"{path}.same_as: {entry!r}: the words of {language!r} are not "
                                  f"cut like those of {other!r}")
            result[language] = other
        return result


def add_filter(name: str, settings: type) -> None:
    """Adds the section `filters.NAME` to `FilterConfig`, as if it stood in the class. `settings` is
    a frozen dataclass whose fields all have defaults; its docstring begins with the line that
    `--help` shows."""
    if name in FilterConfig.__dataclass_fields__:
        raise ValueError(f"config.filters.{name} exists already; give the filter another name")
    section = setting(settings(), str(settings.__doc__).partition("\n")[0])
    extended = dataclasses.make_dataclass(
        "FilterConfig", [(name, settings, section)], bases=(FilterConfig,), frozen=True)
    for made in ("__init__", "__eq__", "__hash__", "__repr__", "__match_args__",
                 "__dataclass_fields__"):
        setattr(FilterConfig, made, extended.__dict__[made])
    FilterConfig.__annotations__[name] = settings
    setattr(FilterConfig, name, section.default)


def filter_names() -> tuple[str, ...]:
    """The filters that `filters.rules` can name."""
    return tuple(field.name for field in dataclasses.fields(FilterConfig)
                 if dataclasses.is_dataclass(field.default))


@dataclasses.dataclass(frozen=True)
class LicenceConfig:
    """Which documents may stay, by their licence. Off while `allow` is empty."""

    allow: tuple[str, ...] = setting(
        (), "SPDX identifiers (CC-BY-4.0), identifiers without their version for all versions "
        "(CC-BY), or combinations (Apache-2.0 WITH LLVM-exception); empty allows every licence")
    unknown: str = setting(
        "drop", "documents whose licence is empty or no licence that SPDX lists: keep, drop, or "
        "quarantine: dropped under a reason of its own, so that they can be listed and cleared",
        choices=("keep", "drop", "quarantine"))

    def check(self, path: str) -> None:
        if not self.allow and self.unknown != LicenceConfig.unknown:
            raise ConfigError(f"{path}.allow: is empty, so {path}.unknown does nothing; list the "
                              "licences to keep")


ACTIONS = ("placeholder", "drop", "keep")  # puts [EMAIL] or the like, leaves out, only counts


@dataclasses.dataclass(frozen=True)
class PrivacyConfig:
    """Personal data, source code included. Each kind has its action: placeholder, drop, keep."""

    enabled: bool = setting(False, "look for personal data")
    email: str = setting("placeholder", "e-mail addresses: [EMAIL]", choices=ACTIONS)
    phone: str = setting("placeholder", "telephone numbers: [PHONE]", choices=ACTIONS)
    resident_id: str = setting(
        "placeholder", "PRC resident identity numbers: [ID]", choices=ACTIONS)
    ssn: str = setting("placeholder", "US social security numbers: [ID]", choices=ACTIONS)
    card: str = setting("placeholder", "bank cards: [CARD]", choices=ACTIONS)
    ip: str = setting("placeholder", "IP addresses: [IP]", choices=ACTIONS)
    passport: str = setting("placeholder", "passport numbers: [PASSPORT]", choices=ACTIONS)
    plate: str = setting("placeholder", "PRC licence plates: [PLATE]", choices=ACTIONS)
    name: str = setting("placeholder", "names that name_recogniser finds: [NAME]", choices=ACTIONS)
    drop_over: int = setting(
        0, "a document with more than this many items of kinds to drop is dropped; up to so many "
        "become placeholders", minimum=0)
    private_addresses: bool = setting(
        False, "IP addresses of private, loopback and documentation ranges too")
    name_recogniser: str = setting(
        "", "module:function that takes a text and returns a list of (start, end) in characters; "
        "loaded once a worker, empty for none")

    def check(self, path: str) -> None:
        if not self.enabled and self != PrivacyConfig():
            raise ConfigError(f"{path}.enabled: is False, so the other fields of {path} do "
                              "nothing; set it, or leave them at their defaults")
        kinds = [field.name for field in dataclasses.fields(self)
                 if field.metadata["choices"] == ACTIONS]
        if all(getattr(self, kind) != "drop" for kind in kinds):
            check_idle(self, path, "no kind has the action 'drop'", "give it to one",
                       only=("drop_over",))
        if not self.name_recogniser:
            check_idle(self, path, f"{path}.name_recogniser is empty", "name the function",
                       only=("name",))
