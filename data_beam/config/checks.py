"""Checks that several sections of a recipe have in common."""

import dataclasses
from collections.abc import Iterable
from typing import Any

from maxlm.config.schema import ConfigError


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
    """Raises ConfigError where fields that have no effect were changed.

    Args:
      section: of which the fields are idle.
      reason: completes "does nothing while".
      fix: what the user should set instead.
      default: what the section is when nobody changes it; without one, its defaults.
      only: the idle fields, where others of the section are not.
    """
    usual = type(section)()
    if section == usual:  # written out, as in lines=RepeatedTextConfig(enabled=False)
        return
    names = changed(section, usual if default is None else default)
    for name in names:
        if only is None or name in only:
            raise ConfigError(f"{path}.{name}: does nothing while {reason}; {fix}, or leave it out")
