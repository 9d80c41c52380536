"""`python -m maxlm.train` of a run that diverges: one line, and the good checkpoints stay."""

import json
import math
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from maxlm import evaluate, train
from maxlm.cli.command_line import run_command
from maxlm.config import ConfigError, RunFailure
from tests import training_runs as runs

# Saves after each step; the miniature warms up in one step.
SETTINGS = {"checkpoint__every_steps": 1, "checkpoint__keep": 2, "checkpoint__confirm_steps": 2,
            "schedule__name": "constant", "evals__every_steps": 2}
UNBOUNDED = {"checkpoint__max_update_ratio": 3e38}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A sound run of six steps. Tests copy it."""
    workdir = tmp_path_factory.mktemp("finished") / "run"
    assert runs.run(workdir, run__steps=6, **SETTINGS) == 0
    return workdir


def checkpoints(workdir: Path) -> list[int]:
    return sorted(int(p.name) for p in (workdir / "checkpoints").iterdir())


def read_strictly(workdir: Path) -> list[dict]:
    """metrics.jsonl by a reader that knows no NaN."""
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return [json.loads(line, parse_constant=refuse)
            for line in (workdir / "metrics.jsonl").read_text().splitlines()]


def test_a_sound_run_keeps_its_newest_checkpoints_as_good_ones(finished):
    assert checkpoints(finished) == [5, 6]
    status = json.loads((finished / "checkpoint_status.json").read_text())
    assert status["checkpoints"] == {"5": "good", "6": "good"}
    for row in runs.rows(finished):
        if "loss" in row:
            assert 0 < row["update_norm"] < 0.2 * row["param_norm"]


DIVERGING = {
    "infinite update": ({"schedule__learning_rate": 3e38}, "the update_norm of step 7 is inf"),
    "huge update": ({"schedule__learning_rate": 1e30}, r"the update of step 7 has \S+e\+\d+ time"),
    "large update": ({"schedule__learning_rate": 30}, r"the update of step 7 has \S+ times the n"),
    "held-out loss": ({"schedule__learning_rate": 30, **UNBOUNDED},
                      r"the held-out loss of step 8 is \d\S+, above"),
    "training loss": ({"schedule__learning_rate": 30, "evals__every_steps": 0, **UNBOUNDED},
                      r"the loss of the last 2 steps is above \S+ \(step 9"),
    "huge held-out loss": (
        {"schedule__learning_rate": 1e12, "evals__every_steps": 1, **UNBOUNDED},
        "the held-out loss of step 7 is"),
    "not finite": ({"schedule__learning_rate": 1e25, "evals__every_steps": 1, **UNBOUNDED},
                   "the grad_norm of step 8 is nan"),
}


@pytest.mark.parametrize("case", DIVERGING)
def test_a_diverging_run_ends_and_resumes_from_its_last_good_checkpoint(finished, tmp_path, case):
    settings, problem = DIVERGING[case]
    workdir = Path(shutil.copytree(finished, tmp_path / "run"))
    with pytest.raises(RunFailure, match=f"the run has diverged: .*{problem}") as caught:
        runs.run(workdir, **SETTINGS | {"run__steps": 60} | settings)
    assert "\n" not in str(caught.value)
    assert "The last good checkpoint is of step 6, and the same command resumes there" in str(
        caught.value)
    rows = read_strictly(workdir)
    if case == "not finite":
        assert rows[-1]["grad_norm"] is None and rows[-1]["nonfinite"]["grad_norm"] == "nan"
    assert {5, 6} <= set(checkpoints(workdir)) and max(checkpoints(workdir)) <= 9
    for name, array in runs.saved_arrays(finished, 6).items():
        assert array.tobytes() == runs.saved_arrays(workdir, 6)[name].tobytes(), name

    assert runs.run(workdir, **SETTINGS | {"run__steps": 8}) == 0
    assert checkpoints(workdir) == [7, 8]
    assert sorted(runs.losses(workdir)) == list(range(1, 9))
    assert all(np.isfinite(array).all() for array in runs.saved_arrays(workdir, 8).values())


def test_a_run_that_diverges_at_once_is_one_line_and_starts_again(tmp_path, monkeypatch, capfd):
    workdir = tmp_path / "run"
    settings = SETTINGS | {"run__steps": 40, "evals__every_steps": 0, "schedule__learning_rate": 30,
                           **UNBOUNDED}
    monkeypatch.setattr(sys, "argv", ["maxlm.train", *runs.arguments(workdir, **settings)])
    with pytest.raises(SystemExit) as caught:
        run_command(train.main)
    errors = capfd.readouterr().err
    assert caught.value.code == 1 and "Traceback" not in errors
    [line] = [line for line in errors.splitlines() if line.startswith("failed: ")]
    assert line == errors.splitlines()[-1]
    assert "No checkpoint is good, so the same command starts from step 0" in line
    assert checkpoints(workdir)  # kept to be looked at, and not used
    with pytest.raises(ConfigError, match="has diverged and has no good checkpoint"):
        evaluate.main([f"--workdir={workdir}"])
    assert runs.run(workdir, **SETTINGS | {"run__steps": 2}) == 0
    assert checkpoints(workdir) == [1, 2]
    assert sorted(runs.losses(workdir)) == [1, 2]
    assert (workdir / "rejected_checkpoints").is_dir()


def test_arrays_that_no_batch_shows_are_checked_when_they_are_saved(tmp_path, monkeypatch):
    """A moment of a row of the embedding whose token occurs in no batch: losses, gradients, updates
    and weights are finite, and what would be saved is not."""
    init_state = train.init_state

    def poisoned(config, mesh):
        state = init_state(config, mesh)
        adam, *rest = state.opt_state
        nu = adam.nu | {"embedding": adam.nu["embedding"].at[-1].set(math.inf)}
        return state._replace(opt_state=(adam._replace(nu=nu), *rest))

    monkeypatch.setattr(train, "init_state", poisoned)
    with pytest.raises(RunFailure, match=r"after step 1 these arrays are not finite: opt_state\.0"
                       r"\.nu\.embedding\. No checkpoint is good"):
        runs.run(tmp_path / "run", model__tie_embeddings=False, **SETTINGS)
    assert checkpoints(tmp_path / "run") == []


@pytest.mark.parametrize(("settings", "words"), [
    ({"optimizer__epsilon": 1e-50}, "config.optimizer.epsilon: 1e-50 is not a float32 number"),
    ({"optimizer__epsilon": 1e-30}, "config.optimizer.epsilon: must be at least 4.8e-19"),
    ({"schedule__learning_rate": 1e39}, "config.schedule.learning_rate: 1e+39 is not a float32"),
])
def test_numbers_that_float32_cannot_hold_are_refused(tmp_path, settings, words):
    with pytest.raises(ConfigError) as caught:
        runs.run(tmp_path / "run", **settings)
    assert words in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_checkpoint_of_an_interrupted_run_is_resumed_from(finished, tmp_path, capfd):
    """Unconfirmed, but not rejected: a kill between a save and what confirms it costs nothing."""
    workdir = Path(shutil.copytree(finished, tmp_path / "run"))
    status = json.loads((workdir / "checkpoint_status.json").read_text())
    status["checkpoints"]["6"] = "candidate"
    (workdir / "checkpoint_status.json").write_text(json.dumps(status))
    assert runs.run(workdir, **SETTINGS | {"run__steps": 7}) == 0
    assert "resuming after step 6" in capfd.readouterr().err
    (workdir / "checkpoint_status.json").unlink()  # of a version that had no such file
    assert runs.run(workdir, **SETTINGS | {"run__steps": 8}) == 0
    assert "resuming after step 7" in capfd.readouterr().err
