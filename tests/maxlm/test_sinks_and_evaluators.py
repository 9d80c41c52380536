"""A new sink and a new evaluator are one class and one registration each."""

import json
from typing import Any

import jax
import numpy as np
import pytest

from maxlm import evals, telemetry
from maxlm.evals import Evaluator
from maxlm.telemetry import RunStart, Sink
from tests import training_runs as runs

SETTINGS = {"run__steps": 4, "checkpoint__every_steps": 2, "telemetry__log_every": 2}


@pytest.fixture
def sinks(monkeypatch):
    """The toy sinks that runs of this test have opened."""
    opened: list[Any] = []

    class InMemory(Sink):
        """Keeps the rows."""

        def __init__(self):
            self.rows: list[dict] = []
            self.synced: list[int] = []
            self.closed = 0
            opened.append(self)

        def write(self, row):
            self.rows.append(row)

        def sync(self):
            self.synced.append(len(self.rows))

        def close(self):
            self.closed += 1

    monkeypatch.setattr(telemetry, "SINKS", [*telemetry.SINKS, InMemory])
    return opened


class WeightNorm(Evaluator):
    """The global norm of the weights at even steps; says that it was stopped while `stopped`."""

    name = "weights/norm"
    stopped = False

    def due(self, step):
        return step % 2 == 0

    def run(self, state):
        if self.stopped:
            return None
        squares = [np.sum(np.square(np.asarray(leaf, np.float64)))
                   for leaf in jax.tree.leaves(state.params)]
        return {self.name: float(np.sqrt(sum(squares)))}


@pytest.fixture
def evaluator(monkeypatch):
    monkeypatch.setattr(evals, "EVALUATORS", [*evals.EVALUATORS, WeightNorm])
    monkeypatch.setattr(WeightNorm, "stopped", False)
    return WeightNorm


def norms(workdir) -> dict[int, float]:
    return {row["step"]: row["weights/norm"] for row in runs.rows(workdir) if "weights/norm" in row}


def saved_norm(workdir, step: int) -> float:
    return np.sqrt(sum(np.sum(np.square(array.astype(np.float64)))
                       for name, array in runs.saved_arrays(workdir, step).items()
                       if name.startswith("['params']")))


def test_a_toy_sink_receives_the_rows_of_metrics_jsonl(tmp_path, sinks):
    assert runs.run(tmp_path / "run", **SETTINGS) == 0
    lines = (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    [sink] = sinks
    assert sink.rows == [json.loads(line) for line in lines]
    assert [row["step"] for row in sink.rows if "loss" in row] == [2, 4]
    # Before each checkpoint, after the rows of its step.
    assert [sink.rows[count - 1]["step"] for count in sink.synced] == [2, 4]
    assert sink.closed == 1


def test_a_sink_that_the_config_does_not_ask_for(tmp_path, monkeypatch):
    class Never(Sink):
        @classmethod
        def open(cls, run: RunStart):
            return cls() if run.config.telemetry.log_every == 5 else None

    monkeypatch.setattr(telemetry, "SINKS", [Never])
    assert telemetry.open_sinks(RunStart(runs.config(), tmp_path, None)) == []
    asked = RunStart(runs.config(telemetry__log_every=5), tmp_path, None)
    assert [type(sink) for sink in telemetry.open_sinks(asked)] == [Never]


@pytest.mark.parametrize("held_out", [0, 4])
def test_a_toy_evaluator_writes_rows(tmp_path, evaluator, capfd, held_out):
    workdir = tmp_path / "run"
    assert runs.run(workdir, **SETTINGS, evals__every_steps=held_out) == 0
    found = norms(workdir)
    assert list(found) == [0, 2, 4]
    for step in (2, 4):
        np.testing.assert_allclose(found[step], saved_norm(workdir, step), rtol=1e-12)
    assert f"step 4: weights/norm {found[4]:.4f}" in capfd.readouterr().err
    scored = [row["step"] for row in runs.rows(workdir) if "eval/loss" in row]
    assert scored == ([0, 4] if held_out else [])


def test_a_stopped_evaluator_runs_again_in_the_next_start(tmp_path, evaluator, monkeypatch):
    workdir = tmp_path / "run"
    settings = SETTINGS | {"evals__every_steps": 4}
    assert runs.run(workdir, **settings | {"run__steps": 2}) == 0
    monkeypatch.setattr(WeightNorm, "stopped", True)
    assert runs.run(workdir, **settings) == 75
    assert list(norms(workdir)) == [0, 2]
    monkeypatch.setattr(WeightNorm, "stopped", False)
    assert runs.run(workdir, **settings) == 0
    assert list(norms(workdir)) == [0, 2, 4]
    # The held-out loss of step 4 was complete, so it is not scored again.
    assert [row["step"] for row in runs.rows(workdir) if "eval/loss" in row] == [0, 2, 4]
