"""Folders of trained models: writing, loading and what makes them invalid."""

import json
from pathlib import Path

import numpy as np
import pytest

from data_beam.models import folder
from maxlm.config.schema import ConfigError

KIND = "maxlm quality model 1"
INPUTS = {"seed": 0, "examples": "ab"}
SHAPE = {"features": int}


def write(path: Path, kind: str = KIND) -> Path:
    path.mkdir(exist_ok=True)
    folder.write(str(path), kind, INPUTS, {"weights": np.arange(3)}, {"features": 3},
                 {folder.REPORT: b"{}"})
    return path


def load(path: Path) -> folder.Folder:
    return folder.Folder(str(path), KIND, "config.quality.model", SHAPE)


def test_a_written_model_is_loaded_and_recognised_as_finished(tmp_path):
    path = write(tmp_path / "m")
    model = load(path)
    np.testing.assert_array_equal(model.arrays()["weights"], np.arange(3))
    assert model.read(folder.REPORT) == b"{}"
    assert folder.finished(str(path), KIND, INPUTS) == model.description
    assert sorted(each.name for each in path.iterdir()) == sorted(
        [folder.DESCRIPTION, folder.ARRAYS, folder.REPORT])


def edit_description(path: Path, **entries) -> None:
    file = path / folder.DESCRIPTION
    file.write_text(json.dumps({**json.loads(file.read_text()), **entries}))


@pytest.mark.parametrize("damage, message", [
    (lambda m: (m / folder.DESCRIPTION).unlink(), "contains no model.json"),
    (lambda m: (m / folder.ARRAYS).unlink(), "model.npz is missing"),
    (lambda m: (m / folder.ARRAYS).write_bytes(b"PK"), "model.npz does not match its checksum"),
    (lambda m: (m / folder.DESCRIPTION).write_text('{"kind'), "model.json is damaged"),
    (lambda m: edit_description(m, features="many"), "does not describe a model"),
    (lambda m: edit_description(m, kind="maxlm safety model 1"),
     "contains a maxlm safety model 1, not a maxlm quality model 1"),
    (lambda m: edit_description(m, files={}), "lists no file model.npz"),
])
def test_an_invalid_model_raises(tmp_path, damage, message):
    path = write(tmp_path / "m")
    damage(path)
    with pytest.raises(ConfigError, match=rf"config\.quality\.model: .*{message}"):
        load(path).arrays()


@pytest.mark.parametrize("path, message", [("", "must name a folder"), ("none", "does not exist")])
def test_a_missing_folder_raises(path, message):
    with pytest.raises(ConfigError, match=message):
        folder.Folder(path, KIND, "f", SHAPE)


def test_another_model_in_the_output_folder_raises(tmp_path):
    path = str(write(tmp_path / "m"))
    with pytest.raises(ConfigError, match="made with another seed"):
        folder.finished(path, KIND, {**INPUTS, "seed": 1})
    with pytest.raises(ConfigError, match="holds a maxlm quality model 1; choose another"):
        folder.finished(path, "maxlm safety model 1", INPUTS)


@pytest.mark.parametrize("name", folder.FILES)
def test_files_of_the_user_are_not_overwritten(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(ConfigError, match=f"{name} has no model.json"):
        folder.finished(str(tmp_path), KIND, INPUTS)
    assert (tmp_path / name).read_text() == "mine"


def test_an_interrupted_run_is_completed(tmp_path):
    path = write(tmp_path / "m")
    expected = {each.name: each.read_bytes() for each in path.iterdir()}
    (path / folder.DESCRIPTION).unlink()
    (path / "unfinished_model").write_text(f"{KIND}\n")
    (path / f"unfinished-{'0' * 32}").write_text("half")
    (path / "unfinished-notes").write_text("mine")
    assert folder.finished(str(path), KIND, INPUTS) is None
    write(path)
    assert {each.name: each.read_bytes() for each in path.iterdir()} == {
        **expected, "unfinished-notes": b"mine"}
