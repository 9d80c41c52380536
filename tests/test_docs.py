"""Invariant 7 of docs/architecture.md: the commands and files that the documentation shows work."""

import functools
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from maxlm.config import Config, ConfigError, DataConfig, load_config_file, resolve_config

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def run(words: list[str], timeout: float = 250) -> subprocess.CompletedProcess:
    """A command as a user starts it, on one device."""
    assert words[0] == "python"
    environment = {**os.environ, "XLA_FLAGS": ""}
    return subprocess.run([sys.executable, *words[1:]], cwd=ROOT, env=environment, text=True,
                          capture_output=True, timeout=timeout)


def commands(page: Path) -> list[list[str]]:
    """Every `python -m ...` of a page, in fenced blocks and between backticks."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.findall(r"^python -m [^\n]*$", text, re.MULTILINE)
    found += re.findall(r"`(python -m [^`\n]*)`", text)
    return [shlex.split(command, comments=True) for command in found]


@functools.cache
def help_of(module: str) -> str:
    shown = run(["python", "-m", module, "--help"])
    assert shown.returncode == 0 and not shown.stderr, f"{module}: {shown.stderr}"
    return shown.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_in_the_documentation_has_only_flags_that_exist(page):
    for words in commands(page):
        if words[2].split(".")[0] not in ("maxlm", "data_beam", "benchmarks"):
            continue
        assert words[2] in help_of(words[2])
        for word in words[3:]:
            if word.startswith("--"):
                flag = word.partition("=")[0]
                assert re.search(rf"{re.escape(flag)}\b", help_of(words[2])), f"{page.name}: {flag}"


SMALL_RECIPE = """
from maxlm.config import load_config_file

def get_config():
    config = load_config_file({original!r})
    config.sources = tuple({{**dict(source), "max_bytes": 150_000}} for source in config.sources)
    return config
"""


@pytest.mark.slow
def test_the_commands_of_the_readme_one_after_the_other(tmp_path):
    """The table's six commands as they are written, on 150 kB a source and a model in miniature."""
    original = "configs/corpus/quickstart.py"
    recipe = tmp_path / "recipe.py"
    recipe.write_text(SMALL_RECIPE.format(original=str(ROOT / original)), encoding="utf-8")
    table = [row for row in commands(ROOT / "README.md") if len(row) > 3 and "--help" not in row]
    modules = ["data_beam.prepare", "data_beam.train_tokenizer", "data_beam.tokenize",
               "maxlm.train", "maxlm.evaluate", "maxlm.generate"]
    assert [row[2] for row in table] == modules
    extra = {"data_beam.train_tokenizer": ["--vocab_size=4000"],
             "maxlm.train": ["--config.model.vocab_size=4000"],
             "maxlm.generate": ["--max_tokens=8"]}
    outputs = {}
    for row in table:
        words = [re.sub(r"\b(CORPUS|TOKENS|TOK|RUN)\b", lambda m: str(tmp_path / m[1]), word)
                 .replace("configs/tiny.py", "configs/tiny.py:tiny").replace(original, str(recipe))
                 for word in row]
        done = run([*words, *extra.get(row[2], [])])
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        outputs[row[2]] = done.stdout
    sources = {source["name"] for source in
               json.loads((tmp_path / "TOKENS/train/manifest.json").read_text())["sources"]}
    assert sources == {source["name"] for source in load_config_file(original).sources}
    assert json.loads(outputs["maxlm.evaluate"])["step"] == 4
    assert outputs["maxlm.generate"].startswith("The patient")


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def test_the_config_files_of_the_configuration_page(tmp_path):
    whole, mixture = python_blocks(ROOT / "docs" / "configuration.md")
    file = tmp_path / "my_model.py"
    file.write_text(whole, encoding="utf-8")
    config = resolve_config(Config, str(file), [])
    assert config.run.steps == 2000 and config.model.mlp_dim == 1408
    names: dict = {}
    exec(mixture, names)
    assert isinstance(names["data"], DataConfig) and len(names["data"].tokens) == 3


MISTAKES = [
    ("configs/tiny.py", [("model.num_layer", "3")]),
    ("configs/tiny.py", [("steps", "3")]),
    ("configs/tiny.py", [("run.steps", "many")]),
    ("configs/tiny.py", [("model.num_kv_heads", "3")]),
    ("configs/7bb.py", []),
]


def test_the_mistakes_of_the_configuration_page_read_as_shown():
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    for file, overrides in MISTAKES:
        with pytest.raises(ConfigError) as caught:
            # Relative, as on the page: tests run in the repository.
            resolve_config(Config, file, overrides)
        assert f"\nerror: {caught.value}\n" in page


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch):
    monkeypatch.chdir(ROOT)
