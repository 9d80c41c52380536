"""Flags and help of the commands, and commands that end in one line."""

import os
import subprocess
import sys

import pytest

from maxlm.cli.command_line import Parser, size
from maxlm.config import Config, ConfigError
from tests.maxlm.config_files import GOOD, write


@pytest.mark.parametrize(("words", "message"), [
    (["--confg=x"], "unknown option --confg; did you mean '--config'?"),
    (["--confg", "x", "--fault=y"], "unknown option --confg; did you mean '--config'?"),
    (["-config=x"], "unknown option -config; did you mean '--config'?"),
    (["--confg.run.steps=3"], "unknown option --confg.run.steps; did you mean "
                              "'--config.run.steps'?"),
    (["--config=x", "--falt=y"], "unknown option --falt; did you mean '--fault'?"),
    (["--config=x", "--zzz=y"], "unknown option --zzz; see --help"),
    (["--config=x", "zzz"], "unexpected argument 'zzz'; see --help"),
    (["--fault=y"], "the following arguments are required: --config; see --help"),
    (["--falt=y"], "the following arguments are required: --config; see --help"),
    (["--config"], "--config: expected one argument; see --help"),
    (["--help=modle"], "--help=modle: config has no section 'modle'; did you mean 'model'?"),
    (["--help=run.steps"], "--help=run.steps: config.run has no section 'steps'; it has none"),
])
def test_a_misspelt_flag_names_the_nearest(words, message):
    parser = Parser(prog="it", fields=Config)
    parser.add_argument("--config", required=True)
    parser.add_argument("--fault", default="")
    with pytest.raises(ConfigError) as caught:
        parser.parse_args(words)
    assert str(caught.value) == message


@pytest.mark.parametrize(("word", "message"), [
    ("--count=１２", "'１２' has digits or signs that are not ASCII; write 12"),
    ("--rate=０．５", "'０．５' has digits or signs that are not ASCII; write 0.5"),
    ("--bytes=５e6", "'５e6' has digits or signs that are not ASCII; write 5e6"),
    ("--grouped=٣", "'٣' has digits or signs that are not ASCII; write 3"),
    ("--count=x", "invalid int value: 'x'"),
    ("--rate=十", "invalid float value: '十'"),
])
def test_numbers_of_flags_are_written_in_ascii(word, message):
    parser = Parser(prog="it")
    parser.add_argument("--count", type=int)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--bytes", type=size)
    parser.add_argument_group("more").add_argument("--grouped", type=int)
    good = parser.parse_args(["--count=12", "--rate=0.5", "--bytes=5e6", "--grouped=3"])
    assert (good.count, good.rate, good.bytes, good.grouped) == (12, 0.5, 5_000_000, 3)
    with pytest.raises(ConfigError) as caught:
        parser.parse_args([word])
    assert str(caught.value) == f"{word.partition('=')[0]}: {message}; see --help"


def test_the_help_is_short_and_has_sections(capsys):
    def shown(word: str) -> str:
        with pytest.raises(SystemExit) as caught:
            Parser(prog="it", description="What it does.", fields=Config).parse_args([word])
        assert caught.value.code == 0
        return capsys.readouterr().out

    short, section, everything = map(shown, ("--help", "--help=model", "--help=all"))
    assert "What it does." in short and "--help=model" in short and "num_layers" not in short
    assert short == shown("-h") and short.count("\n") < 40
    assert "transformer blocks [affects: model]" in section
    assert "--config.model.num_layers=2" in section and "--config.run" not in section
    assert section == shown("--help=config.model")
    assert "--config.model.num_layers=2" in everything and "--config.run.steps" in everything


SCRIPT = """
import sys
from maxlm.cli.command_line import Parser, run_command
from maxlm.config import Config, ConfigError, RunFailure, resolve_config
from maxlm.config import split_overrides

def main(argv):
    parser = Parser(prog="it")
    parser.add_argument("--config", required=True)
    parser.add_argument("--fault", default="")
    rest, overrides = split_overrides(argv)
    arguments = parser.parse_args(rest)
    config = resolve_config(Config, arguments.config, overrides)
    if arguments.fault == "missing":
        open("no/such/file")
    if arguments.fault == "failure":
        raise RunFailure("the loss is not finite; lower the learning rate")
    if arguments.fault == "interrupt":
        raise KeyboardInterrupt
    if arguments.fault == "bug":
        raise RuntimeError("a bug")
    print(config.run.steps)
    return 0

run_command(main)
"""


@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        (["--config=FILE"], 0, ""),
        (["--config=FILE", "--config.run.stepz=3"], 2,
         "error: config.run.stepz: no such field; did you mean 'steps'?\n"),
        ([], 2, "error: the following arguments are required: --config; see --help\n"),
        (["--config=FILE", "--confg=3"], 2,
         "error: unknown option --confg; did you mean '--config'?\n"),
        (["--config=FILE", "--fault=missing"], 2,
         "error: [Errno 2] No such file or directory: 'no/such/file'\n"),
        (["--config=FILE", "--fault=failure"], 1,
         "failed: the loss is not finite; lower the learning rate\n"),
        (["--config=FILE", "--fault=interrupt"], 130, "interrupted\n"),
    ],
)
def test_commands_end_in_one_line(tmp_path, arguments, status, error):
    file = write(tmp_path, GOOD)
    script = write(tmp_path, SCRIPT, "script.py")
    done = subprocess.run(
        [sys.executable, script, *[a.replace("FILE", file) for a in arguments]],
        capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (status, error)
    assert done.stdout == ("500\n" if status == 0 else "")


def test_a_bug_keeps_its_traceback_and_mistakes_show_theirs_on_request(tmp_path):
    file = write(tmp_path, GOOD)
    script = write(tmp_path, SCRIPT, "script.py")
    bug = subprocess.run([sys.executable, script, f"--config={file}", "--fault=bug"],
                         capture_output=True, text=True, timeout=60)
    assert bug.returncode == 1 and "Traceback" in bug.stderr
    mistake = subprocess.run([sys.executable, script, "--config=absent.py"], capture_output=True,
                             text=True, timeout=60, env={**os.environ, "MAXLM_TRACEBACK": "1"})
    assert mistake.returncode == 2 and "Traceback" in mistake.stderr
