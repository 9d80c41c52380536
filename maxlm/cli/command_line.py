"""What every command has: flags, `--help` by section, errors as one line, an exit status."""

import argparse
import difflib
import math
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from maxlm.cli import interrupts
from maxlm.config.overrides import describe, refuse_other_digits, section
from maxlm.config.schema import ConfigError, RunFailure


def _number(kind: type) -> Callable[[str], Any]:
    """The function that reads flags of type int or float: ASCII digits only."""

    def parse(text: str) -> Any:
        try:
            refuse_other_digits(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        return kind(text)

    return parse


def size(text: str) -> int:
    """The type of a flag for a number of bytes: 50e6 is as good as 50000000."""
    try:
        value = _number(float)(text)
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
        for kind in (int, float):
            self.register("type", kind, _number(kind))
        self._fields, self._words = fields, []
        what = "this text" if fields is None else (
            "this text; --help=SECTION: the fields of a section; --help=all: everything")
        self.add_argument("-h", "--help", nargs="?", const="", metavar="SECTION",
                          action=_ShowHelp, default=argparse.SUPPRESS, help=what)

    def help_text(self, name: str) -> str:
        """The help: "" for the short one, a section of the config, or "all".

        Raises:
          ConfigError: there is no such section.
        """
        if self._fields is None:
            if name not in ("", "all"):
                raise ConfigError(f"--help={name}: this help has no sections")
            return self.format_help()
        if name in ("", "all"):
            fields = describe(self._fields, nested=name == "all")
            return (f"{self.format_help()}\nfields of the config, in its file or on the command "
                    f"line as --config.SECTION.FIELD=VALUE:\n{fields}")
        kind, prefix = section(self._fields, name.removeprefix("config."))
        return f"  {prefix}\n{describe(kind, prefix, nested=False)}"

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


def run_command(main: Callable[[Sequence[str]], int | None]) -> None:
    """Runs a command's `main(argv)` and exits with its status.

    A user's mistake (`ConfigError`, or an operating-system error about a file the user named) ends
    in one line on standard error and status 2, a `RunFailure` in one line and status 1; set
    MAXLM_TRACEBACK=1 to see where either came from. Ctrl-C ends in the word `interrupted` and
    status 130, after the command's clean-up or, pressed again, at once. Anything else is a bug or a
    fault of the machine and keeps its traceback.
    """
    interrupts.clean_up_first()
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
