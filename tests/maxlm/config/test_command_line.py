"""Config files, `--config.…` words, and commands that end in one line."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from maxlm.config import (
    Config,
    ConfigError,
    Parser,
    load_config_file,
    resolve_config,
    split_overrides,
)

GOOD = """
from maxlm.config import Config, RunConfig
def get_config():
    return Config(run=RunConfig(steps=500)).to_config_dict()
"""


def write(folder: Path, text: str, name: str = "mine.py") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_config_file_with_overrides(tmp_path):
    file = write(tmp_path, GOOD)
    assert resolve_config(Config, file, []).run.steps == 500
    config = resolve_config(Config, file, [
        ("run.steps", "200"), ("data.tokens", '[{"path": "a", "weight": 0.7}, {"path": "b"}]'),
        ("run.steps", "300")])
    assert config.run.steps == 300  # the last word wins
    assert [source.path for source in config.data.tokens] == ["a", "b"]  # type: ignore[union-attr]


def test_text_after_the_colon_goes_to_get_config(tmp_path):
    file = write(tmp_path, """
from maxlm.config import Config, RunConfig
def get_config(text=""):
    return Config(run=RunConfig(steps=len(text) or 1000)).to_config_dict()
""")
    assert load_config_file(file).run.steps == 1000
    assert load_config_file(file + ":abcd").run.steps == 4


def test_a_config_file_may_import_its_neighbour_and_leaves_the_path_alone(tmp_path):
    write(tmp_path, "STEPS = 700\n", "neighbour_of_mine.py")
    file = write(tmp_path, """
import neighbour_of_mine
from maxlm.config import Config, RunConfig
def get_config():
    return Config(run=RunConfig(steps=neighbour_of_mine.STEPS)).to_config_dict()
""")
    before = list(sys.path)
    assert load_config_file(file).run.steps == 700
    assert sys.path == before


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 3\n", "defines no get_config()"),
        ("def get_config():\n    return 3\n", "must return a ConfigDict, got int"),
        ("def get_config()\n    return 3\n", ", line 1: SyntaxError: expected ':'"),
        ("import no_such_module_anywhere\n",
         ", line 1: ModuleNotFoundError: No module named 'no_such_module_anywhere'"),
        (GOOD.replace("RunConfig(steps", "RunConfig(step"),
         ", line 4: RunConfig.step: no such field; did you mean 'steps'?"),
        ("""from maxlm.config import Config
def get_config():
    config = Config().to_config_dict()
    config.model.num_layer = 3
    return config
""", ", line 4: num_layer: no such field; did you mean 'num_layers'?"),
        ("""from maxlm.config import Config
def get_config():
    config = Config().to_config_dict()
    config["modle"] = 3
    return config
""", ", line 4: modle: no such field"),
        ("def get_config():\n    return 1 / 0\n", ", line 2: ZeroDivisionError: division by zero"),
    ],
)
def test_mistakes_in_a_config_file_name_file_and_line(tmp_path, text, expected):
    file = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_config_file(file)
    assert str(caught.value).startswith("--config: ")
    assert file in str(caught.value) and expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_values_in_a_config_file_are_checked_like_the_command_line(tmp_path):
    file = write(tmp_path, GOOD.replace("500", "'many'"))
    with pytest.raises(ConfigError, match=r"^config\.run\.steps: expected an integer, got 'many'$"):
        resolve_config(Config, file, [])


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A working directory with Python files that are not configs, and configs/."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs" / "corpus").mkdir(parents=True)
    for name in ("7b.py", "13b.py", "small.py", "corpus/web.py"):
        write(tmp_path / "configs", GOOD, name)
    write(tmp_path, "from setuptools import setup\n", "setup.py")
    write(tmp_path, "from setuptools import setup\n", "smal.py")
    write(tmp_path, GOOD, "mine.py")


@pytest.mark.parametrize(("argument", "closest"), [
    ("small", "configs/small.py"),
    ("smal", "configs/small.py"),
    ("small:tiny", "configs/small.py:tiny"),
    ("small.py", "configs/small.py"),
    ("smalll.py:tiny", "configs/small.py:tiny"),
    ("configs/small", "configs/small.py"),
    ("configs/smal.py", "configs/small.py"),
    ("config/small.py", "configs/small.py"),
    ("configs/7bb.py", "configs/7b.py"),
    ("13B", "configs/13b.py"),
    ("mine", "mine.py"),
    ("mien.py", "mine.py"),
    ("web", "configs/corpus/web.py"),
])
def test_a_missing_file_names_the_closest_config_file(project, argument, closest):
    with pytest.raises(ConfigError, match=rf"no file .*; did you mean '{re.escape(closest)}'\?$"):
        load_config_file(argument)


def test_a_missing_file_far_from_any_lists_the_config_files(project, tmp_path):
    for argument in ("zzzzqqqq", "zzzzqqqq.py", "nowhere/zzzzqqqq.py"):
        with pytest.raises(ConfigError) as caught:
            load_config_file(argument)
        assert "configs/13b.py, configs/7b.py, configs/small.py" in str(caught.value)
        assert "setup.py" not in str(caught.value) and "smal.py" not in str(caught.value)
    with pytest.raises(ConfigError, match=r"is a directory; it holds 13b\.py, 7b\.py, small\.py$"):
        load_config_file("configs")
    with pytest.raises(ConfigError, match=r"is a directory; it holds mine\.py$"):
        load_config_file(".")
    with pytest.raises(ConfigError, match="is not a Python file"):
        load_config_file(write(tmp_path, "steps: 3", "7b.yaml"))


def test_from_another_directory_the_configs_of_the_project_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        load_config_file("tiny")
    [named] = re.findall(r"did you mean '(.*)'\?", str(caught.value))
    assert Path(named).samefile(Path(__file__).parents[3] / "configs" / "tiny.py")


def test_split_overrides():
    rest, overrides = split_overrides(
        ["--config=a.py", "--config.run.steps=3", "--workdir", "w", "--config.model.remat", "full",
         "--config.data.tokens=a=b"])
    assert rest == ["--config=a.py", "--workdir", "w"]
    assert overrides == [("run.steps", "3"), ("model.remat", "full"), ("data.tokens", "a=b")]
    for words in (["--config.run.steps"], ["--config.run.steps", "--workdir=w"]):
        with pytest.raises(ConfigError, match=r"--config\.run\.steps: no value given"):
            split_overrides(words)


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
from maxlm.config import Config, ConfigError, Parser, RunFailure, resolve_config, run_command
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


def test_a_config_of_another_command_is_named_as_such(tmp_path):
    recipe = write(tmp_path, "import ml_collections\ndef get_config():\n"
                   "    return ml_collections.ConfigDict({'sources': (), 'split': {}})\n")
    with pytest.raises(ConfigError, match="of another command: its sections are sources, split;"):
        resolve_config(Config, recipe, [])


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
