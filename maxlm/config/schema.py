"""Configuration fields as frozen dataclasses, and their conversion to and from ConfigDict.

A section is a frozen dataclass whose fields are made with `setting(...)`: default, help text, what
a change affects, and bounds. The locked `ConfigDict` that a config file returns, the checks, and
(in overrides.py) the parsing of `--config.section.field=value` and the help text are derived from
it. Every mistake is a `ConfigError`: one line that names the field and what is allowed.
"""

import dataclasses
import difflib
import math
import os
import types
import typing
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import ml_collections

T = TypeVar("T")

# The largest and the smallest normal numbers of float32. Devices flush smaller ones to 0.
FLOAT32_MAX, FLOAT32_TINY = (2 - 2.0**-23) * 2.0**127, 2.0**-126


Nature = Literal["model", "training", "data", "computation", "output"]
"""What a change of a field affects:

    model        the network and its weights: their shapes, their meaning, their initial values
    training     how the weights are updated, for how long, and when the run has diverged
    data         which rows are trained on or scored
    computation  how the same numbers are computed: equal up to rounding
    output       only what is shown and saved
"""


class ConfigError(ValueError):
    """A setting that cannot be used; the message names it and says what to change."""


class RunFailure(RuntimeError):
    """A failure that is no mistake in the settings; the message says what to do."""


def setting(
    default: Any,
    help: str,
    *,
    affects: Nature | tuple[Nature, ...] = (),
    choices: Sequence[Any] | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
) -> Any:
    """One field of a section.

    Args:
      default: value if the config file does not set the field. A dataclass instance makes a
        sub-section.
      help: one sentence, with the unit.
      affects: what a change of the field affects. `Config` needs it for every field that is not a
        sub-section; other config classes may leave it out.
      choices: the only values allowed.
      minimum, maximum: inclusive bounds of a number.
      above: exclusive lower bound of a number.
    """
    metadata = {
        "help": help,
        "affects": frozenset([affects] if isinstance(affects, str) else affects),
        "choices": tuple(choices) if choices is not None else None,
        "minimum": minimum,
        "maximum": maximum,
        "above": above,
    }
    return dataclasses.field(default=default, metadata=metadata)


def natures(kind: type) -> dict[str, frozenset[Nature]]:
    """Dotted name -> `affects` of every field of a config class and its sections, in order."""
    found: dict[str, frozenset[Nature]] = {}
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        if dataclasses.is_dataclass(hints[field.name]):
            inner = natures(typing.cast(type, hints[field.name]))
            found |= {f"{field.name}.{name}": affects for name, affects in inner.items()}
        else:
            found[field.name] = field.metadata["affects"]
    return found


def local_path(text: str | os.PathLike[str], field: str) -> Path:
    """The path of a file or directory of this machine.

    Raises:
      ConfigError: it is a URL, which Python would take for a directory named `gs:`.
    """
    if "://" in os.fspath(text):
        raise ConfigError(f"{field}: {os.fspath(text)!r} is a URL; give the path at which the "
                          "bucket is mounted (gcsfuse, s3fs, ...)")
    return Path(text)


def suggestion(name: str, valid: Iterable[str]) -> str:
    """`did you mean 'x'?` for the closest valid name, or all valid names if none is close."""
    valid = sorted(valid)
    near = difflib.get_close_matches(name, valid, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"valid names: {', '.join(valid)}"


def _type_name(kind: Any) -> str:
    if dataclasses.is_dataclass(kind):
        return f"a table with fields {', '.join(f.name for f in dataclasses.fields(kind))}"
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_type_name(option) for option in typing.get_args(kind))
    if origin is tuple:
        return f"a list of {_type_name(typing.get_args(kind)[0])}"
    if kind is type(None):
        return "None"
    return {int: "an integer", float: "a number", bool: "True or False", str: "a text"}.get(
        kind, str(kind)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def convert(value: Any, kind: Any, path: str) -> Any:
    """Converts to `kind`: a dataclass, scalar, optional, union or homogeneous tuple type."""
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        failures = []
        for option in typing.get_args(kind):
            try:
                return convert(value, option, path)
            except ConfigError as error:
                failures.append(error)
        # If a table fits one option except for a field inside it, report that field.
        inner = [e for e in failures if not str(e).startswith(f"{path}:")]
        raise inner[0] if inner else wrong_type(path, kind, value)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise wrong_type(path, kind, value)
        item = typing.get_args(kind)[0]
        return tuple(convert(v, item, f"{path}[{i}]") for i, v in enumerate(value))
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        if isinstance(value, kind):
            value = {f.name: getattr(value, f.name) for f in dataclasses.fields(kind)}
        if isinstance(value, ml_collections.ConfigDict):
            value = {key: value[key] for key in value}
        if not isinstance(value, dict):
            raise wrong_type(path, kind, value)
        return build(kind, value, path)
    if kind is type(None):
        if value is None:
            return None
    elif kind is float:
        if _is_number(value):
            return float(value)
    elif kind is int:
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, float) and value.is_integer():  # allows 1e6
            return int(value)
    elif isinstance(value, kind):
        return value
    raise wrong_type(path, kind, value)


def list_hint(path: str, kind: Any, typed: bool = False) -> str:
    """The end of a message that shows how to write a list of scalars; empty for other types.

    Args:
      typed: show the command-line form, with quotes for the shell.
    """
    options = typing.get_args(kind) if typing.get_origin(kind) in (
        typing.Union, types.UnionType) else (kind,)
    for option in options:
        item = typing.get_args(option)[0] if typing.get_origin(option) is tuple else None
        example = {int: "[1,2]", float: "[0.1,0.2]", str: '["a","b"]'}.get(item)
        if example:
            return "; write it like " + (f"--{path}='{example}'" if typed else example)
    return ""


_SHOWN_CHARACTERS = 200


def _is_table_of(value: Any, kind: Any) -> bool:
    """Whether a value from a config file is an instance of a dataclass or a table of its fields."""
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        return False
    names = {field.name for field in dataclasses.fields(kind)}
    return isinstance(value, kind) or (
        isinstance(value, (dict, ml_collections.ConfigDict)) and set(value) <= names)


def wrong_type(path: str, kind: Any, value: Any, typed: bool = False) -> ConfigError:
    options = typing.get_args(kind) if typing.get_origin(kind) in (
        typing.Union, types.UnionType) else (kind,)
    for option in options:
        item = typing.get_args(option)[0] if typing.get_origin(option) is tuple else None
        if item is not None and _is_table_of(value, item):
            return ConfigError(f"{path}: expected a list, got one {item.__name__}; put it in "
                               f"brackets with a comma, as in ({item.__name__}(...),)")
    if isinstance(value, ml_collections.ConfigDict):
        value = value.to_dict()  # repr of a ConfigDict is YAML of many lines
    text = " ".join(repr(value).split())
    if len(text) > _SHOWN_CHARACTERS:
        text = text[:_SHOWN_CHARACTERS] + "..."
    return ConfigError(f"{path}: expected {_type_name(kind)}, got {text}"
                       f"{list_hint(path, kind, typed)}")


def check_bounds(value: Any, field: dataclasses.Field, path: str) -> None:
    rules = field.metadata
    for number in value if isinstance(value, tuple) else (value,):
        if isinstance(number, float) and math.isfinite(number) and number and not (
                FLOAT32_TINY <= abs(number) <= FLOAT32_MAX):
            raise ConfigError(f"{path}: {number} is not a float32 number; use 0, or a magnitude "
                              f"from {FLOAT32_TINY:.3g} to {FLOAT32_MAX:.3g}")
    choices = rules.get("choices")
    if choices is not None and value not in choices:
        if len(choices) == 1:
            raise ConfigError(f"{path}: can only be {choices[0]!r}, got {value!r}")
        names = [str(choice) for choice in choices]
        near = difflib.get_close_matches(str(value), names, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"{path}: {value!r} is not one of {', '.join(names)}{hint}")
    if not _is_number(value):
        return
    if not math.isfinite(value):  # pyright: ignore[reportArgumentType]: checked above
        raise ConfigError(f"{path}: must be a finite number, got {value}")
    if rules.get("minimum") is not None and value < rules["minimum"]:
        raise ConfigError(f"{path}: must be at least {rules['minimum']}, got {value}")
    if rules.get("maximum") is not None and value > rules["maximum"]:
        raise ConfigError(f"{path}: must be at most {rules['maximum']}, got {value}")
    if rules.get("above") is not None and value <= rules["above"]:
        raise ConfigError(f"{path}: must be above {rules['above']}, got {value}")


def build(kind: type[T], values: dict[str, Any], path: str = "config") -> T:
    """A checked instance of the dataclass `kind` from plain values.

    Args:
      kind: a frozen dataclass. If it has a method `check(self, path)`, that is called on the new
        instance and raises `ConfigError` for invalid combinations.
      values: field name -> plain value, nested for sub-sections. Missing fields take the default.
      path: dotted name of this table, for messages.

    Raises:
      ConfigError: unknown field, wrong type, out of range.
    """
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for name in values:
        if name not in fields:
            raise ConfigError(f"{path}.{name}: no such field; {suggestion(name, fields)}")
    hints = typing.get_type_hints(kind)
    final: dict[str, Any] = {}
    for name, field in fields.items():
        if name not in values:
            if field.default is dataclasses.MISSING:
                raise ConfigError(f"{path}.{name}: must be set ({field.metadata.get('help', '')})")
            continue
        final[name] = convert(values[name], hints[name], f"{path}.{name}")
        check_bounds(final[name], field, f"{path}.{name}")
    instance = kind(**final)
    check = getattr(instance, "check", None)
    if check is not None:
        check(path)
    return instance


def to_plain(value: Any) -> Any:
    """Converts dataclasses and tuples to dicts and lists, for JSON."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, (tuple, list)):
        return [to_plain(item) for item in value]
    return value


def to_config_dict(instance: Any) -> ml_collections.ConfigDict:
    """The locked `ConfigDict` of a dataclass instance: fields can be changed, none added."""

    def table_of(value: Any) -> Any:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            # Without ConfigDict's type check: `build` checks types, with better messages.
            table = ml_collections.ConfigDict(type_safe=False)
            for field in dataclasses.fields(value):
                table[field.name] = table_of(getattr(value, field.name))
            return table
        if isinstance(value, tuple):
            return tuple(to_plain(item) for item in value)
        return value

    return table_of(instance).lock()


def from_config_dict(kind: type[T], config: ml_collections.ConfigDict, path: str = "config") -> T:
    """The checked dataclass for a `ConfigDict` that a config file returned; see `build`."""
    return convert(config, kind, path)
