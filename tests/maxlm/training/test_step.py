"""The train step: accumulation, clipping, the update, and the same numbers on every mesh."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maxlm.config import ModelConfig, ParallelConfig
from maxlm.data.plan import Plan
from maxlm.models import transformer
from maxlm.parallel.batches import BATCH_DTYPES, BatchPlacement
from maxlm.parallel.mesh import make_mesh
from maxlm.parallel.rules import logical_rules
from maxlm.training import step as steps
from maxlm.training.state import abstract_state, init_state
from tests import training_runs
from tests.maxlm.models.examples import BFLOAT16, FLOAT32

MODEL = ModelConfig(vocab_size=96, num_layers=2, embed_dim=32, num_heads=4, num_kv_heads=2,
                    head_dim=8, mlp_dim=48, loss_chunk=64)


def configuration(**settings):
    base = training_runs.config(**settings)
    return dataclasses.replace(base, model=MODEL)


def random_batch(rows: int, length: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    batch = {"tokens": rng.integers(0, 96, (rows, length)),
             "targets": rng.integers(0, 96, (rows, length)),
             "segment_ids": np.sort(rng.integers(1, 4, (rows, length)), axis=1),
             "positions": np.broadcast_to(np.arange(length), (rows, length)),
             # From a row without a single trained token to a row with nearly all.
             "weights": rng.random((rows, length)) < (np.arange(rows) / rows)[:, None]}
    return {name: batch[name].astype(dtype) for name, dtype in BATCH_DTYPES.items()}


def accumulated(count: int, batch, compute: str = "float32"):
    config = configuration(run__accumulation_steps=count, precision__compute=compute,
                           data__batch_size=len(batch["tokens"]))
    params = transformer.init_params(MODEL, 0)
    return loss_and_gradients(config, params, batch)


def loss_and_gradients(config, params, batch):
    """Loss sum, trained tokens, gradient of the sum."""
    how = BFLOAT16 if config.precision.compute == "bfloat16" else FLOAT32
    losses, grads = jax.jit(functools.partial(steps.loss_and_gradients, config, how))(
        params, batch, jnp.int32(0))
    return *losses["loss"], grads


def largest_difference(one, other) -> float:
    """Of two trees, relative to the largest entry of the first."""
    scale = max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(one))
    return max(float(jnp.abs(a - b).max()) for a, b in zip(
        jax.tree.leaves(one), jax.tree.leaves(other), strict=True)) / scale


def test_accumulation_with_uneven_masks_equals_the_whole_batch():
    batch = random_batch(8, 24)
    assert batch["weights"][0].sum() == 0
    trained = batch["weights"].sum()
    loss, tokens, grads = accumulated(1, batch)
    assert tokens == trained
    for count in (4, 8):
        loss_n, tokens_n, grads_n = accumulated(count, batch)
        assert tokens_n == trained
        np.testing.assert_allclose(loss_n, loss, rtol=1e-6)
        assert largest_difference(grads, grads_n) < 1e-6


def test_accumulators_are_float32_in_bfloat16_too():
    # 64 times the same row: the sum is exact in float32, and far off in bfloat16's 8 bits.
    row = random_batch(8, 24)
    batch = {name: np.repeat(rows[7:], 64, axis=0) for name, rows in row.items()}
    _, tokens, grads = accumulated(64, batch, "bfloat16")
    _, tokens_1, grads_1 = accumulated(1, {n: r[:1] for n, r in batch.items()}, "bfloat16")
    assert tokens == 64 * tokens_1
    assert {leaf.dtype for leaf in jax.tree.leaves(grads)} == {jnp.dtype("float32")}
    assert largest_difference(grads, jax.tree.map(lambda g: 64 * g, grads_1)) < 1e-6


@pytest.mark.parametrize("clip_norm", [1e-2, 1e3])
def test_a_step_clips_by_global_norm_and_reports_the_norm_before(clip_norm):
    # A large epsilon keeps Adam linear enough for entries near zero to be compared.
    config = configuration(optimizer__clip_norm=clip_norm, optimizer__epsilon=1e-2,
                           optimizer__weight_decay=0.5, schedule__learning_rate=0.125,
                           schedule__warmup_steps=2)
    mesh = make_mesh(ParallelConfig(), jax.devices()[:1])
    state = init_state(config, mesh)
    batch = random_batch(8, 24)
    loss, tokens, grads = jax.tree.map(
        np.asarray, loss_and_gradients(config, state.params, batch))
    before = jax.tree.map(np.array, state.params)  # copies: the step takes the buffers
    after, metrics = jax.jit(functools.partial(steps.train_step, config, FLOAT32))(state, batch)

    grads = jax.tree.map(lambda g: g / tokens, grads)
    norm = math.sqrt(sum(float((g.astype(np.float64) ** 2).sum()) for g in jax.tree.leaves(grads)))
    assert 1e-2 < norm < 1e3
    np.testing.assert_allclose(metrics["grad_norm"], norm, rtol=1e-5)
    np.testing.assert_allclose(metrics["loss"], loss / tokens, rtol=1e-6)
    assert metrics["tokens"] == batch["weights"].sum()
    assert metrics["learning_rate"] == 0.0625  # the first of two steps of warm-up
    assert after.step == 1

    def expected(path, p, g):
        g = g * min(1.0, clip_norm / norm)
        update = g / (np.abs(g) + 1e-2)  # the first step of Adam, bias corrected
        decay = 0.0 if "norm" in jax.tree_util.keystr(path) else 0.5
        return p - 0.0625 * (update + decay * p)

    wanted = jax.tree_util.tree_map_with_path(expected, before, grads)
    assert largest_difference(wanted, after.params) < 1e-6


@pytest.mark.parametrize("tied", [True, False])
def test_the_first_loss_is_near_ln_of_the_vocabulary(tied):
    model = dataclasses.replace(MODEL, tie_embeddings=tied, vocab_size=4096, embed_dim=128)
    batch = random_batch(8, 24)
    loss, count = jax.jit(lambda p: transformer.loss(p, batch, model, FLOAT32))(
        transformer.init_params(model, 3))
    assert abs(float(loss / count) / math.log(4096) - 1) < 0.02


def test_a_fixed_batch_is_memorised():
    config = configuration(run__steps=300, schedule__learning_rate=1e-2, schedule__name="constant",
                           schedule__warmup_steps=10, optimizer__weight_decay=0)
    mesh = make_mesh(ParallelConfig(), jax.devices()[:1])
    rng = np.random.default_rng(0)
    text = rng.integers(0, 96, (4, 33)).astype(np.int32)
    batch = random_batch(4, 32) | {
        "tokens": text[:, :-1], "targets": text[:, 1:], "segment_ids": np.ones((4, 32), np.int32),
        "weights": np.ones((4, 32), np.float32)}
    step = jax.jit(functools.partial(steps.train_step, config, FLOAT32), donate_argnums=0)
    state = init_state(config, mesh)
    for _ in range(300):
        state, metrics = step(state, batch)
        if metrics["loss"] < 0.1:
            break
    assert metrics["loss"] < 0.1


MESHES = {
    "fsdp 8": ParallelConfig(data=1, fsdp=8),
    "tensor 2 x fsdp 4": ParallelConfig(data=1, fsdp=4, tensor=2),
    "data 2 x fsdp 2 x tensor 2": ParallelConfig(data=2, fsdp=2, tensor=2),
}


def trained(parallel: ParallelConfig, devices, count: int, **settings) -> tuple[list[float], dict]:
    """Losses of the first steps, and the batches as they lay on the devices."""
    config = training_runs.config(run__steps=count, **settings)
    mesh = make_mesh(parallel, devices)
    placement = BatchPlacement(mesh, logical_rules(config.parallel), config.data.batch_size,
                               config.run.accumulation_steps)
    plan = Plan.build(config.data, config.run.seed)
    state = init_state(config, mesh)
    step = steps.compile_train_step(config, mesh, abstract_state(config, mesh),
                                    placement.abstract(config.data.sequence_length))
    losses, batches = [], []
    for number in range(count):
        batch = placement.put(plan.rows(number, placement.local_rows))
        batches.append({name: np.asarray(rows) for name, rows in batch.items()})
        state, metrics = step(state, batch)
        losses.append(float(metrics["loss"]))
    return losses, batches


@functools.cache
def one_device() -> tuple[list[float], list]:
    return trained(ParallelConfig(), jax.devices()[:1], 20)


@pytest.mark.parametrize("mesh", MESHES)
def test_twenty_steps_on_a_mesh_equal_one_device(mesh):
    losses, batches = one_device()
    assert losses[-1] < losses[0] - 0.1  # it learns; otherwise equal losses would show little
    losses_here, batches_here = trained(MESHES[mesh], jax.devices(), 20)
    np.testing.assert_allclose(losses_here, losses, rtol=0, atol=1e-5)
    for there, here in zip(batches, batches_here, strict=True):
        for name in BATCH_DTYPES:
            np.testing.assert_array_equal(here[name], there[name])


def test_accumulation_on_a_mesh_equals_one_device():
    losses, _ = trained(ParallelConfig(data=2, fsdp=2, tensor=2), jax.devices(), 6,
                        run__accumulation_steps=2)
    wanted, _ = trained(ParallelConfig(), jax.devices()[:1], 6)
    np.testing.assert_allclose(losses, wanted, rtol=0, atol=1e-5)


