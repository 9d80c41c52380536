"""Reading evaluation sets."""

import dataclasses
import io
import json
import re
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet

from data_beam.base import files
from data_beam.config.decontaminate import DecontaminateConfig, EvaluationSetConfig
from data_beam.readers import streams
from maxlm.config.schema import ConfigError, suggestion

_MAX_BYTES = 2**31


@dataclasses.dataclass(frozen=True)
class Item:
    """One item of an evaluation set."""

    number: int  # within the set, from 1
    texts: tuple[str, ...]  # one a field (and one an element of a list)
    fields: tuple[str, ...]  # the field of each text; "" in a file of format `text`


def paths(config: EvaluationSetConfig, field: str) -> list[str]:
    """The files of a set, sorted. Raises ConfigError if there is none, a folder cannot be read, or
    a path is not a regular file."""
    root = config.root.rstrip("/\\") + "/"
    try:
        found = sorted(entry.path for entry in files.match(root, config.pattern))
    except Exception as error:  # Beam wraps each file system's own errors in its own.
        raise ConfigError(f"{field}: cannot list {root + config.pattern}: {error}") from None
    if not found:
        raise ConfigError(f"{field}: no file matches {root + config.pattern}")
    for path in found:
        try:
            kind = files.irregular(path)
        except OSError as error:
            raise ConfigError(f"{field}: cannot read {path!r}: {error.strerror}") from None
        if kind is not None:
            raise ConfigError(f"{field}: {path!r} is {kind}, not a regular file; narrow "
                              "the pattern")
    return found


def all_paths(config: DecontaminateConfig) -> list[tuple[str, str]]:
    """(field of the recipe, path) of every file."""
    return [(field, path) for i, each in enumerate(config.sets)
            for field in (f"config.decontaminate.sets[{i}]",) for path in paths(each, field)]


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{where}: is not valid JSON: {error}") from None
    except RecursionError:
        raise ConfigError(f"{where}: is JSON nested too deeply") from None


def _rows(format: str, path: str, where: str) -> Iterator[tuple[str, Any]]:
    """(place, row) of a file; in format `text` a row is the text itself."""
    try:
        data = streams.read_all(path, _MAX_BYTES)
    except streams.DamagedFile as error:
        raise ConfigError(f"{where}: {error}") from None
    if data is None:
        raise ConfigError(f"{where}: has more than {_MAX_BYTES} bytes; cut it into several files")
    if format == "parquet":
        try:
            table = pyarrow.parquet.read_table(io.BytesIO(data))
        except Exception as error:
            raise ConfigError(f"{where}: is not a Parquet file: {error}") from None
        for number, row in enumerate(table.to_pylist(), 1):
            yield f"{where}, row {number}", row
        return
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: is not UTF-8 ({error.reason} at byte {error.start})") from None
    if format == "text":
        for number, paragraph in enumerate(re.split(r"\n\s*\n", text), 1):
            if paragraph.strip():
                yield f"{where}, paragraph {number}", paragraph
        return
    if format == "json":
        rows = _json(text, where)
        if not isinstance(rows, list):
            raise ConfigError(f"{where}: must hold a JSON array of objects")
        yield from ((f"{where}, item {number}", row) for number, row in enumerate(rows, 1))
        return
    for number, line in enumerate(text.split("\n"), 1):
        place = f"{where}, line {number}"
        if line.strip():
            yield place, _json(line, place)


def _texts(value: Any) -> Iterator[str]:
    """The texts of a field: a text, a number, or those inside a list or object."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple)):
        for element in value:
            yield from _texts(element)
    elif isinstance(value, dict):
        yield from _texts(list(value.values()))
    elif value is not None:
        yield str(value)


def read(config: EvaluationSetConfig, field: str) -> list[Item]:
    """All items of a set, in the order of its files. Raises ConfigError, which names the setting
    `field`: no file, a file that cannot be read as its format, a row without one of the fields, or
    no item at all."""
    items: list[Item] = []
    for path in paths(config, field):
        for place, row in _rows(config.format, path, f"{field}: {path}"):
            if config.format == "text":
                found = [("", row)]
            elif not isinstance(row, dict):
                raise ConfigError(f"{place}: must be an object with {', '.join(config.fields)}")
            else:
                for name in config.fields:
                    if name not in row:
                        raise ConfigError(f"{place}: has no field {name!r}; "
                                          f"{suggestion(name, [str(key) for key in row])}")
                found = [(name, text) for name in config.fields for text in _texts(row[name])]
            items.append(Item(len(items) + 1, tuple(text for _, text in found),
                              tuple(name for name, _ in found)))
    if not items:
        raise ConfigError(f"{field}: the set {config.name!r} has no item")
    return items
