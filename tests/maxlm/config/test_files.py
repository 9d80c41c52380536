"""Config files, and the fields that `--config.…` words override in them."""

import re
import sys
from pathlib import Path

import pytest

from maxlm.config import Config, ConfigError, load_config_file, resolve_config, split_overrides
from tests.maxlm.config_files import GOOD, write


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
    for argument in ("zzzzqqqq", "zzzzqqqq.py", "nowhere/zzzzqqqq.py", "smart.py", "b"):
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


def test_only_configs_of_the_command_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[3])  # configs/ and configs/corpus/ of the project
    recipe = type("RecipeConfig", (), {})  # of data_beam; only its name counts
    for argument, kind, closest in (
            ("tinny.py", Config, "configs/tiny.py"), ("tinny.py", recipe, None),
            ("gofer.py", Config, None), ("gophr.py", recipe, "configs/corpus/gopher.py"),
            ("nope.py", Config, None), ("nope.py", recipe, None)):
        with pytest.raises(ConfigError) as caught:
            load_config_file(argument, kind)
        message = str(caught.value)
        assert ("gopher" in message) == (kind is recipe) and "setup" not in message
        if closest:
            assert message.endswith(f"did you mean '{closest}'?")
        else:
            assert f"{'configs/corpus/c4.py' if kind is recipe else 'configs/7b.py'}" in message
            assert ("configs/corpus" in message) == (kind is recipe)
    with pytest.raises(ConfigError, match=r"no file 'nope\.py'; config files: configs/110m\.py"):
        resolve_config(Config, "nope.py", [])


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


def test_a_config_of_another_command_is_named_as_such(tmp_path):
    recipe = write(tmp_path, "import ml_collections\ndef get_config():\n"
                   "    return ml_collections.ConfigDict({'sources': (), 'split': {}})\n")
    with pytest.raises(ConfigError, match="of another command: its sections are sources, split;"):
        resolve_config(Config, recipe, [])
