"""Invariant 7 of docs/architecture.md: what README.md and docs/*.md show works.

A page is followed from top to bottom in an empty directory, on a corpus of a few hundred kilobytes
and a model of 0.1 million parameters:

- Every `python -m maxlm...` and `python -m data_beam...` with flags, in a fenced or indented block
  or between backticks, is run by bash. `...` stands for the words of the last command of that
  module that named its --config.
- Every ```python block is run; one that begins with a file's name is saved under it instead.
- A block that begins with a comment "# on ..." needs what the comment says (a cluster, a quiet
  machine). Only its flags are checked, as are those of the modules of `ELSEWHERE`.
"""

import dataclasses
import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from maxlm import train
from maxlm.config import Config, ConfigError, load_config_file, resolve_config
from tests.document_corpora import document, write_corpus

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

# Modules that take minutes, or need packages that the tests do not install.
ELSEWHERE = ("benchmarks.", "maxlm.compile")

# Appended to each command of the module; the last word wins.
SMALL = {
    "data_beam.train_tokenizer": ["--vocab_size=4000"],
    "data_beam.train_perplexity": ["--held_out=0.2"],  # of 200 documents
    "maxlm.train": [f"--config.{field}" for field in (
        "run.steps=4", "model.vocab_size=4096", "model.num_layers=2", "model.embed_dim=64",
        "model.num_heads=4", "model.num_kv_heads=4", "model.head_dim=16", "model.mlp_dim=128",
        "data.sequence_length=64", "data.batch_size=8", "schedule.warmup_steps=1",
        "checkpoint.every_steps=2", "evals.batches=1")],
}


@dataclasses.dataclass
class Step:
    """A command (its text and its words from `python` on) or a block of Python."""

    text: str
    words: list[str] = dataclasses.field(default_factory=list)
    elsewhere: bool = False

    @property
    def module(self) -> str:
        return self.words[2] if self.words else ""


def steps(page: Path) -> list[Step]:
    """What a page shows, in order, with `...` filled in."""
    found: list[Step] = []
    last: dict[str, str] = {}
    # Fenced or indented blocks, else commands between backticks in prose and tables.
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$|^((?:    [^\n]*\n)+)|`(python -m [^`\n]*)`",
                             page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        language, fenced, indented, inline = match.groups()
        if language == "python":
            found.append(Step(fenced))
            continue
        lines = (fenced or indented or inline).replace("\\\n", " ").splitlines()
        for line in lines:
            command = re.match(r"\s*((?:\w+=\S* )*python -m )([\w.]+)(.*)", line)
            if not command:
                continue
            start, module, rest = command.groups()
            if rest.startswith(" ..."):
                rest = last[module] + rest[len(" ..."):]
            elif " --config=" in rest:
                last[module] = rest
            found.append(Step(start + module + rest,
                              ["python", "-m", module, *shlex.split(rest, comments=True)],
                              elsewhere=lines[0].strip().startswith("# on ")))
    return found


def run(command: str, directory: Path = ROOT) -> subprocess.CompletedProcess:
    """A command line as a user types it, on one device."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(["bash", "-c", command], cwd=directory, text=True, capture_output=True,
                          timeout=250, env={**os.environ, "XLA_FLAGS": "", "PATH": path})


@functools.cache
def help_of(module: str) -> str:
    shown = run(f"python -m {module} --help=all")
    assert shown.returncode == 0 and not shown.stderr, f"{module}: {shown.stderr}"
    return shown.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_in_the_documentation_has_only_flags_that_exist(page):
    for step in steps(page):
        for word in step.words[3:]:
            flag = re.match(r"\[?(--[\w.]+)", word)
            if flag:
                assert re.search(rf"{re.escape(flag[1])}\b", help_of(step.module)), (
                    f"{page.name}: {step.text}")
        if step.elsewhere and step.module == "maxlm.train":
            train.parse_arguments(step.words[3:], None)


SMALL_RECIPE = """
from maxlm.config import load_config_file

def get_config():
    config = load_config_file({original!r})
    config.sources = tuple(
        {{**dict(source), "max_bytes": 200_000}} for source in config.sources
        if dict(source)["inputs"][0]["format"] not in ("json", "sqlite"))  # megabytes in one file
    config.split.validation = 0.2  # of some ten documents a source
    return config
"""


def raw_files(directory: Path) -> None:
    """Files such as the recipe of docs/corpus.md reads."""
    paragraph = "Wash your hands with soap and water before every visit, and again after it. "
    for name, text in {
        "handbook/hands/washing.html": "<html><body><article><h1>Hands</h1>"
                                       f"<p>{paragraph * 5}</p></article></body></html>",
        "handbook/visits.md": f"# Visits\n\n{paragraph * 4}\n",
        "news/today.jsonl": json.dumps({
            "body": f"News. {paragraph * 6}", "licence": "CC0-1.0", "link": "https://a.example/"}),
    }.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """CORPUS, TOK and TOKENS of two sources, for pages that begin with them."""
    directory = tmp_path_factory.mktemp("made")
    files = {"medicine": sorted((ROOT / "docs").glob("*.md")),
             "web": sorted((ROOT / "maxlm").rglob("*.py"))}
    rows = []
    for source, paths in files.items():
        parts = [part for path in paths
                 for part in re.findall(r"(?s).{1,2000}", path.read_text(encoding="utf-8"))]
        rows += [document(number, part, source,
                          split="validation" if number % 10 == 0 else "train")
                 for number, part in enumerate(parts)]
    write_corpus(directory / "CORPUS", rows)
    for command in (
            "python -m data_beam.train_tokenizer --corpus=CORPUS --output=TOK --vocab_size=4000",
            "python -m data_beam.tokenize --corpus=CORPUS --tokenizer=TOK/tokenizer.model "
            "--output=TOKENS"):
        done = run(command, directory)
        assert done.returncode == 0, done.stderr
    return directory


def prepare_directory(directory: Path, page: Path, made: Path) -> None:
    """What a page takes for granted: the configs, raw files, and what its commands do not make."""
    shutil.copytree(ROOT / "configs", directory / "configs")
    recipe = "configs/corpus/quickstart.py"
    (directory / recipe).write_text(SMALL_RECIPE.format(original=str(ROOT / recipe)),
                                    encoding="utf-8")
    raw_files(directory / "raw")
    outputs = {word.partition("=")[2] for step in steps(page) for word in step.words
               if word.startswith("--output=")}
    for name in {"CORPUS", "TOK", "TOKENS"} - outputs:
        shutil.copytree(made / name, directory / name)
    (directory / "runs" / "quickstart").mkdir(parents=True)
    shutil.copytree(made / "TOKENS", directory / "runs" / "quickstart" / "tokens")


def follow(page: Path, directory: Path, made: Path) -> dict[str, str]:
    """Does what a page shows. Returns the standard output of each module's last command."""
    prepare_directory(directory, page, made)
    shown = steps(page)
    files = {id(step): name[1] for step in shown
             if not step.words and (name := re.match(r'(?:"""|# )(\w+\.py)\b', step.text))}
    for step in shown:
        if id(step) in files:
            (directory / files[id(step)]).write_text(step.text, encoding="utf-8")
    outputs: dict[str, str] = {}
    for step in shown:
        if step.elsewhere or id(step) in files or step.module.startswith(ELSEWHERE):
            continue
        if not step.words:
            done = run(shlex.join(["python", "-c", step.text]), directory)
        elif any(word.startswith("--") for word in step.words):
            small = [] if "--help" in step.words else SMALL.get(step.module, [])
            # As typed, comments and quotes included; a function appends the small sizes.
            done = run(f'python() {{ command python "$@" {shlex.join(small)}; }}\n{step.text}',
                       directory)
        else:
            continue  # only the command's name
        assert done.returncode == 0, f"{step.text}\n{done.stdout}\n{done.stderr}"
        outputs[step.module] = done.stdout
    return outputs


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES[1:] if any(
    not step.module.startswith(ELSEWHERE) for step in steps(page))], ids=lambda page: page.name)
def test_a_page_from_top_to_bottom(page, made, tmp_path):
    follow(page, tmp_path, made)


@pytest.mark.slow
def test_the_readme_from_top_to_bottom(made, tmp_path):
    outputs = follow(ROOT / "README.md", tmp_path, made)
    assert set(outputs) == {"data_beam.prepare", "data_beam.train_tokenizer", "data_beam.tokenize",
                            "maxlm.train", "maxlm.evaluate", "maxlm.generate"}
    sources = {source["name"] for source in
               json.loads((tmp_path / "TOKENS/train/manifest.json").read_text())["sources"]}
    recipe = load_config_file(str(tmp_path / "configs/corpus/quickstart.py"))
    assert sources == {source["name"] for source in recipe.sources} and len(sources) == 3
    assert json.loads(outputs["maxlm.evaluate"])["step"] == 4
    assert outputs["maxlm.generate"].startswith("The patient")


def test_blocks_for_other_machines_are_told_apart(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "`python -m maxlm.train --config=a.py` and `python -m data_beam.prepare`\n\n"
        "```bash\nX=1 python -m maxlm.train ... \\\n    --workdir='a b'  # here\n```\n\n"
        "    # on a cluster\n    python -m maxlm.train ... --distributed\n", encoding="utf-8")
    found = steps(page)
    assert [step.words[2:] for step in found] == [
        ["maxlm.train", "--config=a.py"], ["data_beam.prepare"],
        ["maxlm.train", "--config=a.py", "--workdir=a b"],
        ["maxlm.train", "--config=a.py", "--distributed"]]
    assert [step.elsewhere for step in found] == [False, False, False, True]
    assert found[2].text.startswith("X=1 python -m maxlm.train --config=a.py ")


MISTAKES = [
    ("configs/tiny.py", [("model.num_layer", "3")]),
    ("configs/tiny.py", [("steps", "3")]),
    ("configs/tiny.py", [("run.steps", "many")]),
    ("configs/tiny.py", [("model.num_kv_heads", "3")]),
    ("configs/7bb.py", []),
    ("my_model.py", []),
]


def test_the_mistakes_of_the_configuration_page_read_as_shown(tmp_path, monkeypatch):
    page = ROOT / "docs" / "configuration.md"
    whole = next(step.text for step in steps(page) if not step.words)
    (tmp_path / "my_model.py").write_text(whole.replace("num_layers", "num_layer"))
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    monkeypatch.chdir(tmp_path)  # files are named relative to here, as on the page
    for file, overrides in MISTAKES:
        with pytest.raises(ConfigError) as caught:
            resolve_config(Config, file, overrides)
        assert f"\nerror: {caught.value}\n" in page.read_text(encoding="utf-8")
