"""The fields of a config on the command line: `--config.section.field=value`, and their help."""

import dataclasses
import difflib
import json
import types
import typing
import unicodedata
from collections.abc import Sequence
from typing import Any

import ml_collections

from maxlm.config import schema
from maxlm.config.schema import ConfigError


def split_overrides(argv: Sequence[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Separates `--config.a.b=value` (or `--config.a.b value`) from the other arguments."""
    rest: list[str] = []
    overrides: list[tuple[str, str]] = []
    position = 0
    while position < len(argv):
        word = argv[position]
        if word.startswith("--config."):
            name, equals, value = word[len("--config."):].partition("=")
            if not equals:
                position += 1
                if position == len(argv) or argv[position].startswith("--"):
                    raise ConfigError(
                        f"--config.{name}: no value given; write --config.{name}=VALUE")
                value = argv[position]
            overrides.append((name, value))
        else:
            rest.append(word)
        position += 1
    return rest, overrides


def refuse_other_digits(text: str) -> None:
    """Raises ValueError, with the ASCII form, for a number that is not written in ASCII.

    Python would accept some of them. A Chinese input method may leave full-width digits (１２).
    """
    if text.isascii():
        return
    ascii_form = "".join(str(unicodedata.decimal(c)) if c.isdecimal()
                         else unicodedata.normalize("NFKC", c) for c in text)
    try:
        float(ascii_form)
    except ValueError:
        return
    raise ValueError(f"{text!r} has digits or signs that are not ASCII; write {ascii_form}")


def _parse(text: str, kind: Any, path: str) -> Any:
    """Parses a command-line value: JSON for lists and tables, otherwise a scalar as in Python."""
    options = typing.get_args(kind) if typing.get_origin(kind) in (
        typing.Union, types.UnionType) else (kind,)
    if text.lower() in ("none", "null") and type(None) in options:
        return None
    nested = [o for o in options if typing.get_origin(o) is tuple or dataclasses.is_dataclass(o)]
    if nested and text[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            raise ConfigError(f"{path}: not valid JSON ({error})"
                              f"{schema.list_hint(path, kind, typed=True)}") from None
    if bool in options and text.lower() in ("true", "false", "1", "0"):
        return text.lower() in ("true", "1")
    if int in options or float in options:
        try:
            refuse_other_digits(text)
        except ValueError as error:
            raise ConfigError(f"{path}: {error}") from None
        try:
            return int(text) if int in options and float not in options else float(text)
        except ValueError:
            try:
                return float(text)
            except ValueError:
                pass
    if str in options:
        return text
    raise schema.wrong_type(path, kind, text, typed=True)


def override(config: ml_collections.ConfigDict, kind: type, name: str, text: str) -> None:
    """Sets one field of a locked config from the command line.

    Args:
      config: what the config file returned; changed in place.
      kind: its dataclass.
      name: dotted field name without the leading `config.`, for example `run.steps`.
      text: the value as typed.

    Raises:
      ConfigError: unknown name (with the closest valid one) or a value of the wrong type.
    """
    table: Any = config
    parts = name.split(".")
    for depth, part in enumerate(parts):
        path = ".".join(["config", *parts[: depth + 1]])
        hints = typing.get_type_hints(kind)
        if part not in hints:
            if len(parts) == 1:  # `--config.steps`: suggest the section with this field
                sections = {inner: section for section, sub in reversed(hints.items())
                            if dataclasses.is_dataclass(sub)
                            for inner in typing.get_type_hints(sub)}
                near = difflib.get_close_matches(part, [*hints, *sections], n=1, cutoff=0.6)
                if near and near[0] in sections:
                    raise ConfigError(f"{path}: no such section; did you mean "
                                      f"'{sections[near[0]]}.{near[0]}'?")
            raise ConfigError(f"{path}: no such field; {schema.suggestion(part, hints)}")
        if depth == len(parts) - 1:
            if dataclasses.is_dataclass(hints[part]):
                inner = ", ".join(typing.get_type_hints(hints[part]))
                raise ConfigError(f"{path}: is a section; set one of its fields: {inner}")
            value = _parse(text, hints[part], path)
            field = next(f for f in dataclasses.fields(kind) if f.name == part)
            value = schema.convert(value, hints[part], path)
            schema.check_bounds(value, field, path)
            with config.unlocked():
                table[part] = schema.to_plain(value)
            return
        if not dataclasses.is_dataclass(hints[part]):
            raise ConfigError(f"{path}: is a value, not a section")
        kind = typing.cast(type, hints[part])
        if part not in table:  # the config file left this section out
            with config.unlocked():
                table[part] = ml_collections.ConfigDict(type_safe=False)
        table = table[part]
        if not isinstance(table, ml_collections.ConfigDict):
            raise schema.wrong_type(path, kind, table)


def section(kind: type, name: str) -> tuple[type, str]:
    """The class and full dotted name of a section, given its name below `config`.

    Raises:
      ConfigError: there is no such section.
    """
    path = "config"
    for part in name.split("."):
        hints = typing.get_type_hints(kind)
        valid = [key for key, hint in hints.items() if dataclasses.is_dataclass(hint)]
        if part not in valid:
            raise ConfigError(f"--help={name}: {path} has no section {part!r}; "
                              f"{schema.suggestion(part, valid) if valid else 'it has none'}")
        kind, path = hints[part], f"{path}.{part}"
    return kind, path


def describe(kind: type, prefix: str = "config", nested: bool = True) -> str:
    """Every field with its type, default and help, for `--help`.

    Args:
      kind: a config class.
      prefix: its dotted name.
      nested: whether to list the fields of its sections, or only the sections' names.
    """
    fields, sections = [], []
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        name, rules = f"{prefix}.{field.name}", field.metadata
        if not dataclasses.is_dataclass(hints[field.name]):
            choices = f", one of {'|'.join(map(str, rules['choices']))}" if rules.get(
                "choices") else ""
            default = "required" if field.default is dataclasses.MISSING else repr(field.default)
            affects = f" [affects: {', '.join(sorted(rules['affects']))}]" if rules.get(
                "affects") else ""
            fields.append(
                f"    --{name}={default}{choices}\n        {rules.get('help', '')}{affects}\n")
        elif nested:
            sections.append(f"\n  {name}\n{describe(typing.cast(type, hints[field.name]), name)}")
        else:
            sections.append(f"    --help={name.removeprefix('config.'):<28} "
                            f"{rules.get('help', '')}\n")
    return "".join([*fields, *sections])
