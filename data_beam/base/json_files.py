"""JSON files that may be damaged or of another program."""

import json
from collections.abc import Iterator
from typing import Any

from data_beam.base import files


class NotThisKind(ValueError):
    """The file is not JSON or not of the expected shape; the message says what and where."""


def read(path: str, shape: Any) -> Any:
    """The value of a JSON file that exists; raises NotThisKind if it is not JSON, or not of the
    shape.

    A shape is a type; a list of one shape, for all items; a dict from `str` to one shape, for all
    values; or a dict from names to shapes, for an object with these and maybe more.
    """
    try:
        value = json.loads(files.read_bytes(path))
    except ValueError as error:  # also of text that is not UTF-8
        raise NotThisKind(f"no JSON: {error}") from None
    except RecursionError:
        raise NotThisKind("no JSON: nested too deep") from None
    _check(value, shape, "")
    return value


def read_lines(path: str) -> Iterator[Any]:
    """The values of a file of JSON lines."""
    return map(json.loads, files.read_bytes(path).splitlines())


def _check(value: Any, shape: Any, at: str) -> None:
    kind = shape if isinstance(shape, type) else type(shape)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise NotThisKind(f"{at or 'the whole'} is no {kind.__name__}")
    if isinstance(shape, list):
        for number, item in enumerate(value):
            _check(item, shape[0], f"{at}[{number}]")
    elif isinstance(shape, dict):
        for name in value if str in shape else shape:
            if name not in value:
                raise NotThisKind(f"{at}.{name} is missing".removeprefix("."))
            _check(value[name], shape[str if str in shape else name],
                   f"{at}.{name}".removeprefix("."))
