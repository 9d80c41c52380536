"""The gradient check: its arithmetic, a correct model, gradients broken on purpose, and a run."""

import dataclasses
import functools
import math
from typing import Any

import jax
import numpy as np
import pytest

from maxlm.config import Config, ConfigError, ModelConfig, ParallelConfig
from maxlm.kernels import attention
from maxlm.kernels.cpu.attention import Blocked
from maxlm.models import transformer
from maxlm.parallel.batches import BatchPlacement
from maxlm.parallel.mesh import make_mesh
from maxlm.parallel.rules import logical_rules
from maxlm.training import gradient_check
from maxlm.training.gradient_check import STEP, GradientCheck, wrong
from maxlm.training.state import init_state
from tests import training_runs
from tests.maxlm.training.test_golden_losses import packed_batch

MODEL = ModelConfig(vocab_size=96, num_layers=3, embed_dim=32, num_heads=4, num_kv_heads=2,
                    head_dim=8, mlp_dim=48, loss_chunk=64)


def configuration(compute: str = "float32") -> Config:
    config = training_runs.config(precision__compute=compute, data__batch_size=8,
                                  data__sequence_length=48)
    return dataclasses.replace(config, model=MODEL)


def prepared(config: Config, parallel: ParallelConfig) -> tuple[GradientCheck, Any, Any]:
    """A check, initial weights and a batch."""
    mesh = make_mesh(parallel, jax.devices()[:parallel.data * parallel.fsdp * parallel.tensor])
    placement = BatchPlacement(mesh, logical_rules(config.parallel), config.data.batch_size)
    batch = placement.put(packed_batch(config, 0))
    params = init_state(config, mesh).params
    return GradientCheck(config, mesh, params, batch), params, batch


def checked(config: Config, parallel: ParallelConfig, steps: range) -> list[dict[str, float]]:
    """Rows of the check at the initial weights, along the directions of these steps."""
    check, params, batch = prepared(config, parallel)
    assert check.note is None
    rows = [check.run(params, batch, step) for step in steps]
    assert all(row is not None for row in rows)
    return [row for row in rows if row is not None]


@functools.cache
def correct() -> list[dict[str, float]]:
    return checked(configuration(), ParallelConfig(data=1), range(4))


def test_a_correct_model_passes():
    names = {jax.tree_util.keystr(path, simple=True, separator="/") for path, _ in
             jax.tree_util.tree_leaves_with_path(transformer.init_params(MODEL, 0))}
    for row in correct():
        assert set(row) == {f"gradient_check/{name}/{field}"
                            for name in names for field in ("error", "limit")}
        assert wrong(row) == []
    # The gradients of query and key are a hundredth of the others at first: there, errors of the
    # size of the gradient are found, and smaller ones are hidden by rounding.
    small = ("attention/query", "attention/key")
    for name in names:
        limits = [row[f"gradient_check/{name}/limit"] for row in correct()]
        errors = [row[f"gradient_check/{name}/error"] for row in correct()]
        assert max(limits) < (1.0 if name.endswith(small) else 0.06), name
        assert max(errors) < 0.3 * max(limits), name
    assert correct()[0] != correct()[1]  # a new direction each time


class Bfloat16Only(Blocked):
    def lacks(self, description, inputs):
        return None if inputs.dtype == "bfloat16" else "needs bfloat16"


def test_bfloat16_runs_are_checked_in_float32(monkeypatch):
    monkeypatch.setitem(attention.KERNELS, "narrow", Bfloat16Only())
    monkeypatch.setitem(attention.PREFERRED, "cpu", ("narrow", "blocked"))
    config = configuration("bfloat16")
    check, params, batch = prepared(config, ParallelConfig(data=1))
    assert check.run(params, batch, 0) == correct()[0]
    assert check.note == ("the gradient check runs in float32 with attention blocked; the gradient "
                          "of narrow is not checked")
    config = dataclasses.replace(config, model=dataclasses.replace(MODEL, attention="narrow"))
    with pytest.raises(ConfigError, match=r"gradient_check_every: the check runs in float32, but "
                                          r"config.model.attention: 'narrow' needs bfloat16"):
        prepared(config, ParallelConfig(data=1))


@pytest.mark.slow
def test_a_mesh_passes():
    rows = checked(configuration(), ParallelConfig(data=2, fsdp=2, tensor=2), range(2))
    for here, there in zip(rows, correct(), strict=False):
        assert wrong(here) == []
        for name, error in here.items():
            if name.endswith("error"):  # the same directions
                limit = max(row[name.replace("error", "limit")] for row in (here, there))
                assert abs(error - there[name]) < limit, name


def broken(change):
    """transformer.loss with the gradient of each parameter multiplied: `change` returns the factor
    for a path, by layer for the stacked ones."""
    correct_loss = transformer.loss

    def loss(params, *rest):
        def scaled(path, leaf):
            factor = np.asarray(change(jax.tree_util.keystr(path, simple=True, separator="/")),
                                np.float32)
            factor = factor.reshape(*factor.shape, *[1] * (leaf.ndim - factor.ndim))
            return factor * leaf + jax.lax.stop_gradient((1 - factor) * leaf)

        return correct_loss(jax.tree_util.tree_map_with_path(scaled, params), *rest)

    return loss


FAULTS = {
    "blocks/attention/query": -1.0,                    # a wrong sign
    "blocks/attention/out": [1.0, 0.0, 1.0],           # one layer left out
    "blocks/feed_forward/gate": 0.0,                   # left out
    "blocks/feed_forward_norm/scale": 1.1,             # a tenth too long
    "embedding": 0.9,
    "final_norm/scale": 2.0,
}


def test_gradients_broken_on_purpose_are_caught(monkeypatch):
    monkeypatch.setattr(transformer, "loss", broken(lambda name: FAULTS.get(name, 1.0)))
    # In one direction of eight an error of a tenth may be too short to see.
    found = [{line.split()[3] for line in wrong(row)}
             for row in checked(configuration(), ParallelConfig(data=1), range(4))]
    assert set.union(*found) == set(FAULTS)
    assert all(len(names) >= 4 for names in found)
    assert all("blocks/feed_forward/gate" in names for names in found)


POINTS = STEP * np.array([-2, -1, 1, 2])


def compare(along, usual, noise, moved):
    errors, limits = gradient_check._compare(
        np.array([along]), np.array([usual]), np.array(noise), np.array([moved]))
    return float(errors[0]), float(limits[0])


def test_the_difference_is_exact_for_polynomials_of_degree_four():
    moved = 3 + 0.7 * POINTS - 2 * POINTS**2 + POINTS**3 + 5 * POINTS**4
    error, limit = compare(0.7, 0.7, np.zeros(8), moved)
    assert error < 1e-13
    # D(h) = 0.7 + h^2, D(2h) = 0.7 + 4 h^2: the limit allows the h^2 that D no longer has.
    assert limit == pytest.approx(0.01 + STEP**2 / 0.7)


def test_the_truncation_error_is_that_of_the_fifth_derivative():
    error, limit = compare(1.0, 1.0, np.zeros(8), np.exp(POINTS))
    assert error == pytest.approx(STEP**4 / 30, rel=0.05)
    assert 0.01 + error < limit < 0.02


def test_rounding_errors_stay_within_the_limit():
    """A thousand differences of losses of 8 with white noise. Its standard deviation is estimated
    from 8 points, so that a few in a thousand exceed 6 of them."""
    rng = np.random.default_rng(0)
    sigma, slope, ratios = 3e-6, 1e-3, []
    for _ in range(1000):
        moved = 8 + slope * POINTS + sigma * rng.normal(size=4)
        noise = 8 + 0.4 * gradient_check.NOISE_STEP * np.arange(8) + sigma * rng.normal(size=8)
        error, limit = compare(slope, slope, noise, moved)
        ratios.append(error / limit)
    assert np.mean(np.array(ratios) > 1) < 3e-3
    assert 0.1 < np.sqrt(np.mean(np.square(ratios))) < 0.4


@pytest.mark.parametrize(("along", "usual", "moved", "error"), [
    (0.0, 0.0, 1.0 * POINTS, 1.0),          # the gradient is left out
    (-1.0, 1.0, 1.0 * POINTS, 2.0),         # its sign is wrong
    (2.0, 2.0, 1.0 * POINTS, 0.5),
    (0.0, 0.0, 0.0 * POINTS, 0.0),          # nothing is trained in this batch
    (math.nan, math.nan, 1.0 * POINTS, math.nan),
    (1.0, 1.0, math.nan * POINTS, math.nan),
])
def test_errors_are_relative(along, usual, moved, error):
    found, limit = compare(along, usual, 8 + np.zeros(8), 8 + moved)
    assert found == pytest.approx(error, nan_ok=True)
    row = {"gradient_check/head/error": found, "gradient_check/head/limit": limit}
    assert len(wrong(row)) == (error != 0)


def test_a_run_reports_the_check_and_computes_the_same(tmp_path, capfd, monkeypatch):
    correct_gradients = gradient_check.loss_and_gradients

    def doubled(*arguments):
        *losses, grads = correct_gradients(*arguments)
        return *losses, grads | {"embedding": 2 * grads["embedding"]}

    monkeypatch.setattr(gradient_check, "loss_and_gradients", doubled)  # for the check alone
    assert training_runs.run(tmp_path / "checked", telemetry__gradient_check_every=2,
                             parallel__fsdp=2) == 0
    notes = [line for line in capfd.readouterr().err.splitlines() if "finite differences" in line]
    rows = [row for row in training_runs.rows(tmp_path / "checked")
            if "gradient_check/embedding/error" in row]
    assert [row.pop("step") for row in rows] == [2, 4]
    assert len(notes) == 2
    for row, note, step in zip(rows, notes, (2, 4), strict=True):
        assert wrong(row) == [note.split(f"note: step {step}: ")[1]]
        assert "the gradient of embedding differs from finite differences of the loss by " in note

    assert training_runs.run(tmp_path / "plain", parallel__fsdp=2) == 0
    assert training_runs.losses(tmp_path / "checked") == training_runs.losses(tmp_path / "plain")
