"""`--config=path.py`, `--config.section.field=value`, and errors as one line, for every command."""

import argparse
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_collections

from maxlm.config import schema
from maxlm.config.schema import ConfigError


def load_config_file(argument: str) -> ml_collections.ConfigDict:
    """What `get_config()` of a config file returns.

    Args:
      argument: `path.py`, or `path.py:text` to call `get_config(text)`.

    Raises:
      ConfigError: no such file, no `get_config`, or something else than a ConfigDict comes back.
    """
    name, colon, text = argument.partition(".py:")
    path = Path(name + ".py" if colon else name)
    if not path.is_file():
        near = sorted(path.parent.glob("*.py")) if path.parent.is_dir() else []
        hint = schema.suggestion(path.stem, [p.stem for p in near]) if near else (
            f"there is no directory {str(path.parent)!r} with config files")
        raise ConfigError(f"--config: no file {str(path)!r}; {hint}")
    if path.suffix != ".py":
        raise ConfigError(f"--config: {str(path)!r} is not a Python file; configs are .py files")
    spec = importlib.util.spec_from_file_location(f"config_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))  # a config may import its neighbours
    try:
        spec.loader.exec_module(module)
        if not hasattr(module, "get_config"):
            raise ConfigError(f"--config: {str(path)!r} defines no get_config()")
        config = module.get_config(text) if colon else module.get_config()
    finally:
        sys.path.remove(str(path.resolve().parent))
    if not isinstance(config, ml_collections.ConfigDict):
        raise ConfigError(f"--config: get_config() of {str(path)!r} must return a ConfigDict, "
                          f"got {type(config).__name__}")
    return config


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


def resolve_config(
    kind: type[schema.T], file: str, overrides: Sequence[tuple[str, str]]
) -> schema.T:
    """The checked dataclass of a config file with command-line overrides applied."""
    config = load_config_file(file)
    for name, text in overrides:
        schema.override(config, kind, name, text)
    return schema.from_config_dict(kind, config)


class Parser(argparse.ArgumentParser):
    """argparse whose mistakes are one line, like every other mistake."""

    def __init__(self, **kwargs: Any):
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(**kwargs)

    def error(self, message: str):  # type: ignore[override]
        raise ConfigError(f"{message}; see --help")


def run_command(main: Callable[[Sequence[str]], int | None]) -> None:
    """Runs a command's `main(argv)` and exits with its status.

    A user's mistake (`ConfigError`, or an operating-system error about a file the user named) ends
    in one line on standard error and status 2; set MAXLM_TRACEBACK=1 to see where it came from.
    Anything else is a bug or a fault of the machine and keeps its traceback.
    """
    try:
        status = main(sys.argv[1:])
    except (ConfigError, FileNotFoundError, PermissionError, NotADirectoryError) as error:
        if os.environ.get("MAXLM_TRACEBACK"):
            traceback.print_exc()
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # `| head` closed our output; not worth a word.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    sys.exit(status or 0)
