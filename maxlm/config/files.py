"""Config files: `--config=path.py`."""

import dataclasses
import difflib
import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import ml_collections

from maxlm.config import schema
from maxlm.config.overrides import override
from maxlm.config.schema import ConfigError


def load_config_file(argument: str, kind: type | None = None) -> ml_collections.ConfigDict:
    """What `get_config()` of a config file returns.

    Args:
      argument: `path.py`, or `path.py:text` to call `get_config(text)`.
      kind: config class of the command; a missing file is compared with files of this class only.

    Raises:
      ConfigError: no such file, no `get_config`, a mistake inside the file (with its line), or
        it returns something other than a ConfigDict.
    """
    name, colon, text = argument.partition(".py:")
    path = Path(name + ".py" if colon else name)
    if not path.is_file():
        raise _no_config_file(path, argument, kind)
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
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"--config: {_where(path, error)}: {_what(error)}") from error
    finally:
        sys.path.remove(str(path.resolve().parent))
    if not isinstance(config, ml_collections.ConfigDict):
        raise ConfigError(f"--config: get_config() of {str(path)!r} must return a ConfigDict, "
                          f"got {type(config).__name__}")
    return config


def _config_files(directory: Path, kind: type | None) -> list[Path]:
    """The files in a directory that define get_config() and name the config class."""
    name = rb"\b%s\b" % kind.__name__.encode() if kind else b""
    return sorted(file for file in directory.glob("*.py") if file.is_file()
                  and b"def get_config" in (text := file.read_bytes()) and re.search(name, text))


def _no_config_file(path: Path, argument: str, kind: type | None) -> ConfigError:
    """Names the closest config file, of the same directory or of configs/."""
    if path.is_dir():
        names = ", ".join(file.name for file in _config_files(path, kind)) or "no config files"
        return ConfigError(f"--config: {str(path)!r} is a directory; it holds {names}")
    configs = Path("configs")
    if not configs.is_dir():
        configs = Path(os.path.relpath(Path(__file__).parents[2] / "configs"))
    files: dict[str, Path] = {}  # by stem in lower case; the first directory with a name wins
    for folder in (path.parent, configs, *sorted(p for p in configs.glob("*") if p.is_dir())):
        for file in _config_files(folder, kind):
            files.setdefault(file.stem.lower(), file)
    stem, _, text = Path(argument.removesuffix(".py")).name.partition(":")
    near = difflib.get_close_matches(stem.removesuffix(".py").lower(), files, n=1, cutoff=0.7)
    if near:
        hint = f"did you mean {str(files[near[0]]) + (':' + text if text else '')!r}?"
    else:
        hint = f"config files: {', '.join(str(file) for file in files.values()) or 'none here'}"
    return ConfigError(f"--config: no file {str(path)!r}; {hint}")


def _where(path: Path, error: Exception) -> str:
    """`file.py, line 12`: the innermost line of the config file that the error passed through."""
    if isinstance(error, SyntaxError) and error.filename == str(path.resolve()):
        return f"{path}, line {error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
             if Path(frame.filename).resolve() == path.resolve()]
    return f"{path}, line {lines[-1]}" if lines else str(path)


def _what(error: Exception) -> str:
    """The error in one line; names the closest field if a field's name is misspelled."""
    text = str(error.args[0] if error.args else error)
    unknown = re.search(r'Key "(\w+)" does not exist', text)  # a locked ConfigDict
    if unknown:
        near = re.search(r'Did you mean "(\w+)"', text)
        return f"{unknown[1]}: no such field" + (f"; did you mean {near[1]!r}?" if near else "")
    unknown = re.search(r"(\w+)\.__init__\(\) got an unexpected keyword argument '(\w+)'", text)
    if unknown:
        *_, (frame, _) = traceback.walk_tb(error.__traceback__)
        section = frame.f_globals.get(unknown[1])
        if dataclasses.is_dataclass(section):
            hint = schema.suggestion(unknown[2], [f.name for f in dataclasses.fields(section)])
            return f"{unknown[1]}.{unknown[2]}: no such field; {hint}"
    return f"{type(error).__name__}: {' '.join(text.split())}"


def resolve_config(
    kind: type[schema.T], file: str, overrides: Sequence[tuple[str, str]]
) -> schema.T:
    """The checked dataclass of a config file with command-line overrides applied."""
    config = load_config_file(file, kind)
    fields = [field.name for field in dataclasses.fields(kind)]  # pyright: ignore
    if len(config) and not set(config) & set(fields):
        raise ConfigError(f"--config: {file!r} is a configuration of another command: its sections "
                          f"are {', '.join(sorted(config))}; this command reads "
                          f"{', '.join(sorted(fields))}")
    for name, text in overrides:
        override(config, kind, name, text)
    return schema.from_config_dict(kind, config)
