"""`--config=path.py`, `--config.section.field=value`, and errors as one line, for every command."""

import argparse
import dataclasses
import difflib
import importlib.util
import math
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import ml_collections

from maxlm.cli import interrupts
from maxlm.config import schema
from maxlm.config.schema import ConfigError


def load_config_file(argument: str) -> ml_collections.ConfigDict:
    """What `get_config()` of a config file returns.

    Args:
      argument: `path.py`, or `path.py:text` to call `get_config(text)`.

    Raises:
      ConfigError: no such file, no `get_config`, a mistake inside the file (with its line), or
        it returns something other than a ConfigDict.
    """
    name, colon, text = argument.partition(".py:")
    path = Path(name + ".py" if colon else name)
    if not path.is_file():
        raise _no_config_file(path, argument)
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


def _config_files(directory: Path) -> list[Path]:
    """The files in a directory that define get_config()."""
    return sorted(file for file in directory.glob("*.py") if file.is_file()
                  and b"def get_config" in file.read_bytes())


def _no_config_file(path: Path, argument: str) -> ConfigError:
    """Names the closest config file, of the same directory or of configs/."""
    if path.is_dir():
        names = ", ".join(file.name for file in _config_files(path)) or "no config files"
        return ConfigError(f"--config: {str(path)!r} is a directory; it holds {names}")
    configs = Path("configs")
    if not configs.is_dir():
        configs = Path(os.path.relpath(Path(__file__).parents[2] / "configs"))
    files: dict[str, Path] = {}  # by stem; the first directory with a name wins
    for folder in (path.parent, configs, *sorted(p for p in configs.glob("*") if p.is_dir())):
        for file in _config_files(folder):
            files.setdefault(file.stem, file)
    stem, _, text = Path(argument.removesuffix(".py")).name.partition(":")
    near = difflib.get_close_matches(stem.removesuffix(".py"), files, n=1, cutoff=0.5)
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


def local_path(text: str | os.PathLike[str], field: str) -> Path:
    """The path of a file or directory of this machine.

    Raises:
      ConfigError: it is a URL, which Python would take for a directory named `gs:`.
    """
    if "://" in os.fspath(text):
        raise ConfigError(f"{field}: {os.fspath(text)!r} is a URL; give the path at which the "
                          "bucket is mounted (gcsfuse, s3fs, ...)")
    return Path(text)


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
    fields = [field.name for field in dataclasses.fields(kind)]  # pyright: ignore
    if len(config) and not set(config) & set(fields):
        raise ConfigError(f"--config: {file!r} is a configuration of another command: its sections "
                          f"are {', '.join(sorted(config))}; this command reads "
                          f"{', '.join(sorted(fields))}")
    for name, text in overrides:
        schema.override(config, kind, name, text)
    return schema.from_config_dict(kind, config)


class RunFailure(RuntimeError):
    """A failure that is no mistake in the settings; the message says what to do."""


def size(text: str) -> int:
    """The type of a flag for a number of bytes: 50e6 is as good as 50000000."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 1 <= value < math.inf:  # false for a nan
        raise argparse.ArgumentTypeError(f"must be a number of at least 1, got {text!r}")
    return int(value)


class Parser(argparse.ArgumentParser):
    """argparse with one-line errors that name the closest flag, and with help by section.

    Args:
      fields: the config class of the command, if it has one. `--help` then lists its sections,
        `--help=SECTION` the fields of one of them and `--help=all` all fields.
    """

    def __init__(self, *, fields: type | None = None, **kwargs: Any):
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(**kwargs, add_help=False)
        self._fields, self._words = fields, []
        what = "this text" if fields is None else (
            "this text; --help=SECTION: the fields of a section; --help=all: everything")
        self.add_argument("-h", "--help", nargs="?", const="", metavar="SECTION",
                          action=_ShowHelp, default=argparse.SUPPRESS, help=what)

    def help_text(self, section: str) -> str:
        """The help: "" for the short one, a section of the config, or "all".

        Raises:
          ConfigError: there is no such section.
        """
        if self._fields is None:
            if section not in ("", "all"):
                raise ConfigError(f"--help={section}: this help has no sections")
            return self.format_help()
        if section in ("", "all"):
            fields = schema.describe(self._fields, nested=section == "all")
            return (f"{self.format_help()}\nfields of the config, in its file or on the command "
                    f"line as --config.SECTION.FIELD=VALUE:\n{fields}")
        kind, name = schema.section(self._fields, section.removeprefix("config."))
        return f"  {name}\n{schema.describe(kind, name, nested=False)}"

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._words = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(self._words, namespace)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        namespace, rest = self.parse_known_args(args, namespace)
        if rest:
            raise self.unknown(rest[0])
        return namespace

    def unknown(self, word: str, others: Sequence[str] = ()) -> ConfigError:
        """The error of a word that is no flag of the command; names the nearest one.

        Args:
          word: of the command line.
          others: flags that another library takes from the same command line.
        """
        if not word.startswith("-"):
            return ConfigError(f"unexpected argument {word!r}; see --help")
        flag = word.partition("=")[0]
        near = self._near(flag, self._option_string_actions) or self._near(flag, others)
        return ConfigError(f"unknown option {flag}; " + (
            f"did you mean {near!r}?" if near else "see --help"))

    @staticmethod
    def _near(flag: str, valid: Iterable[str]) -> str | None:
        name, dot, field = flag.partition(".")
        near = difflib.get_close_matches(name, [v for v in valid if v.startswith("--")], n=1,
                                         cutoff=0.7)
        return near[0] + dot + field if near else None

    def error(self, message: str):  # type: ignore[override]
        missing = [action.option_strings[-1] for action in self._actions
                   if action.required and action.option_strings
                   and action.option_strings[-1] in message]
        flags = [word.partition("=")[0] for word in self._words if word.startswith("-")]
        for flag in flags if "required" in message else ():
            near = None if flag in self._option_string_actions else self._near(flag, missing)
            if near:
                raise self.unknown(flag)
        raise ConfigError(f"{message.removeprefix('argument ')}; see --help")


class _ShowHelp(argparse.Action):
    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        print(parser.help_text(values or ""), end="")
        parser.exit()


def run_command(main: Callable[[Sequence[str]], int | None], after_stop: str = "") -> None:
    """Runs a command's `main(argv)` and exits with its status.

    A user's mistake (`ConfigError`, or an operating-system error about a file the user named) ends
    in one line on standard error and status 2, a `RunFailure` in one line and status 1; set
    MAXLM_TRACEBACK=1 to see where either came from. Ctrl-C and SIGTERM end in one line, the word
    `interrupted` and what `after_stop` says of running the command again, and in status 130 or 75,
    after the command's clean-up or, at the next signal, at once. Anything else is a bug or a fault
    of the machine and keeps its traceback.
    """
    interrupts.clean_up_first(after_stop)
    try:
        try:
            status = main(sys.argv[1:])
        except Exception:
            if interrupts.pressed():
                raise KeyboardInterrupt from None
            raise
        finally:
            interrupts.end_at_once()
    except (ConfigError, FileNotFoundError, PermissionError, NotADirectoryError,
            IsADirectoryError) as error:
        if os.environ.get("MAXLM_TRACEBACK"):
            traceback.print_exc()
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        interrupts.leave()
    except RunFailure as error:
        print(f"failed: {error}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:  # `| head` has closed the output
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    sys.exit(status or 0)
