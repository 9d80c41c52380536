"""Outputs: nothing of a user's is deleted, one run at a time, unusual folders."""

import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from data_beam import prepare, tokenize, train_tokenizer
from data_beam.base import files
from data_beam.sinks import output_folder
from maxlm.config.schema import ConfigError
from tests.data_beam.runs import write_config
from tests.document_corpora import document, write_corpus
from tests.token_corpora import tiny_tokenizer

TEXT = "A sentence about the history of tea, long enough to be kept by every rule, number {}. "


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> Path:
    """A recipe, a corpus and a tokenizer, below a folder whose name is a glob."""
    root = tmp_path_factory.mktemp("inputs") / "in [1]*?"
    (root / "raw").mkdir(parents=True)
    for i in range(8):
        (root / f"raw/{i}.txt").write_text(TEXT.format(i) * 3)
    write_config(root, root / "raw")
    write_corpus(root / "corpus", [document(i, f"word{i} and text") for i in range(20)])
    (root / "tokenizer.model").write_bytes(tiny_tokenizer())
    return root


def arguments(inputs: Path, command, output: Path) -> list[str]:
    return {
        prepare: [f"--config={inputs / 'recipe.py'}"],
        tokenize: [f"--corpus={inputs / 'corpus'}", f"--tokenizer={inputs / 'tokenizer.model'}"],
        train_tokenizer: [f"--corpus={inputs / 'corpus'}", "--vocab_size=290"],
    }[command] + [f"--output={output}"]


COMMANDS, BEAM_COMMANDS = (pytest.mark.parametrize(
    "command", commands, ids=lambda module: module.__name__.split(".")[1])
    for commands in ([prepare, tokenize, train_tokenizer], [prepare, tokenize]))


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*") if path.is_file()}


@BEAM_COMMANDS
@pytest.mark.parametrize("name", [
    "train/a.txt", "validation/notes.md", "test/manifest.jsonl", "documents/thesis.tex",
    "dropped/ideas.txt", "dead_letters/letter.jsonl", "_temporary/parts/x.parquet",
    # Names as of the command's own, in a folder that it did not mark.
    "documents/documents-00000-of-00004.parquet", "train/web-00000-of-00001.array_record",
    "tokenizer.model"])
def test_other_files_are_not_deleted(inputs, command, name, tmp_path):
    path = tmp_path / "mydata" / name
    path.parent.mkdir(parents=True)
    path.write_text("years of work")
    before = tree(tmp_path)
    with pytest.raises(ConfigError, match=f"command did not write \\({re.escape(name)}\\)"):
        command.main(arguments(inputs, command, tmp_path / "mydata"))
    assert tree(tmp_path) == before


@BEAM_COMMANDS
def test_a_stopped_run_is_cleared_but_for_what_is_not_its_own(inputs, command, tmp_path):
    output = tmp_path / "out"
    own = {prepare: "documents/documents-00009-of-00010.parquet",
           tokenize: "train/gone-00000-of-00001.index.parquet"}[command]
    files_of = {prepare: prepare.OWN_FILES, tokenize: tokenize._OWN_FILES}[command]
    temporary = Path(output_folder.begin(str(output), command.COMMAND, files_of))
    for name in (own, "train/a.txt", "documents/a.txt"):
        (output / name).parent.mkdir(exist_ok=True)
        (output / name).write_text("half")
    (temporary / "parts").mkdir()
    (temporary / "parts" / f"{'0' * 32}.parquet").write_text("half")
    before = tree(output)
    for name in ("train/a.txt", "documents/a.txt"):
        with pytest.raises(ConfigError, match=r"did not write \((train|documents)/a"):
            command.main(arguments(inputs, command, output))
        assert tree(output) == before
        (output / name).unlink()
        del before[name]
    other = prepare if command is tokenize else tokenize
    with pytest.raises(ConfigError, match="files this command did not write"):
        other.main(arguments(inputs, other, output))
    assert tree(output) == before
    assert command.main(arguments(inputs, command, output)) == 0
    assert not (output / own).exists() and not temporary.exists()


@COMMANDS
def test_a_file_for_a_folder_is_found_before_any_work(inputs, command, tmp_path, capsys):
    (tmp_path / "file").write_text("x")
    for output in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ConfigError, match=r"--output: .* is, or lies below, a file"):
            command.main(arguments(inputs, command, output))
    assert capsys.readouterr().out == ""
    assert tree(tmp_path) == {"file": b"x"}


@COMMANDS
def test_folders_named_like_globs(inputs, command, tmp_path, capsys):
    output = tmp_path / "out [1]*?[!x]"
    assert command.main(arguments(inputs, command, output)) == 0
    made = tree(output)
    assert made and not [name for name in made if name.startswith("_temporary")]
    capsys.readouterr()
    assert command.main(arguments(inputs, command, output)) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert tree(output) == made
    plain = tmp_path / "plain"
    assert command.main(arguments(inputs, command, plain)) == 0
    assert tree(plain) == made


@COMMANDS
def test_a_second_run_at_once_is_refused(inputs, command, tmp_path):
    output = tmp_path / "out"
    with output_folder.exclusive(str(output)):
        result = subprocess.run(
            [sys.executable, "-m", command.__name__, *arguments(inputs, command, output)],
            capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr == (f"error: --output: another run is writing {output}; wait until it "
                             "ends or choose another --output\n")
    assert command.main(arguments(inputs, command, output)) == 0  # the lock ended with its block


def test_a_folder_that_cannot_be_locked_is_reported(tmp_path, capsys, monkeypatch):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)  # as some network file systems do
    with output_folder.exclusive(str(tmp_path)):
        pass
    assert "cannot be locked (Operation not supported)" in capsys.readouterr().err


def test_an_empty_folder_made_by_a_failed_run_is_removed(tmp_path):
    (tmp_path / "theirs").mkdir()
    for name in ("theirs", "ours"):
        with contextlib.suppress(KeyError), output_folder.exclusive(str(tmp_path / name)):
            raise KeyError
    assert os.listdir(tmp_path) == ["theirs"]


@pytest.fixture(scope="module")
def made(inputs) -> Path:
    prepare.main(arguments(inputs, prepare, inputs / "out"))
    return inputs / "out"


@pytest.mark.parametrize("damage, message", [
    (lambda entry, _: entry.unlink(), "is missing"),
    (lambda entry, _: os.truncate(entry, 7), "has 7 bytes instead of"),
    (lambda _, manifest: manifest.write_text("[1]"), "the whole is no dict"),
    (lambda _, manifest: manifest.write_bytes(b"\xff"), "no JSON"),
    (lambda _, manifest: manifest.write_text(json.dumps(
        {**json.loads(manifest.read_text()), "outputs": [{"file": 1}]})), "file is no str"),
    (lambda _, manifest: manifest.write_text('{"recipe_sha256": "0"}'), "recipe is missing"),
])
def test_a_corpus_that_lost_a_file_is_incomplete(inputs, made, tmp_path, damage, message):
    output = shutil.copytree(made, tmp_path / "out")
    damage(output / "dropped/dropped-00001-of-00002.parquet", output / "manifest.json")
    before = tree(output)
    with pytest.raises(ConfigError, match=message) as caught:
        prepare.main(arguments(inputs, prepare, output))
    assert str(caught.value).startswith("--output: ") and "remove" in str(caught.value)
    assert tree(output) == before


def test_deleting_takes_names_literally(tmp_path):
    for name in ("a", "*", "[a]"):
        (tmp_path / name).write_text("x")
    files.remove([str(tmp_path / "*"), str(tmp_path / "[a]")])
    assert os.listdir(tmp_path) == ["a"]


def test_a_report_that_is_gone_is_made_again_by_itself(tmp_path):
    for name, fix in (("report.html", "python -m data_beam.report --corpus="),
                      ("report.json", "python -m data_beam.report --corpus="),
                      ("documents/a", "remove ")):
        with pytest.raises(ConfigError, match=f"{name} is missing; .*{fix}{tmp_path}"):
            output_folder.check_files(str(tmp_path), [(name, 5)])
