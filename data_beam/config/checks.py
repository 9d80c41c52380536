"""Checks that several sections of a recipe share: language codes, bounds, fields without effect."""

import dataclasses
from collections.abc import Iterable
from typing import Any

from maxlm.config.schema import ConfigError, suggestion

_CODES = """
af als am an ar arz as ast av az azb ba bar bcl be bg bh bn bo bpy br bs bxr ca cbk ce ceb ckb co
cs cv cy da de diq dsb dty dv el eml en eo es et eu fa fi fr frr fy ga gd gl gn gom gu gv he hi
hif hr hsb ht hu hy ia id ie ilo io is it ja jbo jv ka kk km kn ko krc ku kv kw ky la lb lez li
lmo lo lrc lt lv mai mg mhr min mk ml mn mr mrj ms mt mwl my myv mzn nah nap nds ne new nl nn no
oc or os pa pam pfl pl pms pnb ps pt qu rm ro ru rue sa sah sc scn sco sd sh si sk sl so sq sr su
sv sw ta te tg th tk tl tr tt tyv ug uk ur uz vec vep vi vls vo wa war wuu xal xmf yi yo yue zh
und
"""
LANGUAGES = frozenset(_CODES.split())  # codes that fastText's lid.176 tells apart, and `und`

CHINESE = ("zh", "yue", "wuu")  # written in Han characters alone; rjieba cuts their words
SPACELESS = frozenset(("bo", "ja", "km", "lo", "my", "th", "wuu", "yue", "zh"))
"""Languages that write no spaces between words."""


def check_languages(codes: Iterable[str], path: str) -> None:
    """Raises ConfigError for a code that no document can carry."""
    for code in codes:
        if code not in LANGUAGES:
            raise ConfigError(f"{path}: {code!r} is not a language code of lid.176; "
                              f"{suggestion(code, LANGUAGES)}")


def check_not_empty(section: Any, path: str, *names: str) -> None:
    """Raises ConfigError for a field without a visible character."""
    for name in names:
        if not getattr(section, name).strip():
            raise ConfigError(f"{path}.{name}: must not be empty")


def check_unique(names: list[str], path: str, what: str = "the name {!r} is used twice") -> None:
    """Raises ConfigError for the first of several equal names."""
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{path}: {what.format(name)}")


def check_order(table: Any, path: str, *names: str) -> None:
    """Raises ConfigError where `min_NAME` is above `max_NAME`: no document could pass."""
    for name in names:
        low, high = getattr(table, f"min_{name}"), getattr(table, f"max_{name}")
        if low is not None and high is not None and low > high:
            raise ConfigError(f"{path}.min_{name}: {low:g} is above max_{name} ({high:g}), so "
                              f"nothing would pass; lower it, or raise {path}.max_{name}")


def changed(section: Any, default: Any) -> list[str]:
    """Dotted names of the fields in which two instances of a section differ."""
    names = []
    for field in dataclasses.fields(section):
        value, usual = getattr(section, field.name), getattr(default, field.name)
        if dataclasses.is_dataclass(value):
            names += [f"{field.name}.{name}" for name in changed(value, usual)]
        elif value != usual:
            names.append(field.name)
    return names


def check_idle(section: Any, path: str, reason: str, fix: str, *, default: Any = None,
               only: Iterable[str] | None = None) -> None:
    """Raises ConfigError where fields that have no effect were changed from the defaults of their
    class, or from `default`: the fields in `only`, or all.

    `reason` completes "does nothing while"; `fix` is what the user should set instead.
    """
    usual = type(section)()
    if section == usual:  # written out, as in lines=RepeatedTextConfig(enabled=False)
        return
    names = changed(section, usual if default is None else default)
    for name in names:
        if only is None or name in only:
            raise ConfigError(f"{path}.{name}: does nothing while {reason}; {fix}, or leave it out")
