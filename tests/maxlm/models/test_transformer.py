"""The decoder: packing, padding, first loss, and that no execution choice changes the result."""

import dataclasses
import math

import jax
import numpy as np
import pytest

from maxlm.models import transformer
from tests.maxlm.models.examples import BFLOAT16, FLOAT32, SMALL, packed_batch

BATCH = packed_batch([[30, 18, 16], [64], [7, 40], [1, 2, 3]], 64, SMALL.vocab_size)


def logits(params, batch, config=SMALL):
    return np.asarray(jax.jit(transformer.logits, static_argnums=(4, 5))(
        params, batch["tokens"], batch["segment_ids"], batch["positions"], config, FLOAT32))


def loss_and_grads(config, params, batch=BATCH, precision=FLOAT32):
    (loss, count), grads = jax.jit(jax.value_and_grad(
        lambda p: transformer.loss(p, batch, config, precision), has_aux=True))(params)
    return float(loss), float(count), grads


@pytest.fixture(scope="module")
def params():
    # Larger than initial weights, so that attention is far from uniform and mistakes are seen.
    return jax.tree.map(lambda x: 5 * x if x.ndim > 2 else x, transformer.init_params(SMALL, 0))


@pytest.mark.parametrize("attention", ["blocked", "reference"])
def test_packed_logits_equal_each_document_alone(params, attention):
    config = dataclasses.replace(SMALL, attention=attention)
    packed = logits(params, BATCH, config)
    for row, lengths in enumerate([[30, 18, 16], [64], [7, 40], [1, 2, 3]]):
        start = 0
        for n in lengths:
            alone = {"tokens": BATCH["tokens"][row:row + 1, start:start + n],
                     "segment_ids": np.ones((1, n), np.int32),
                     "positions": np.arange(n, dtype=np.int32)[None]}
            np.testing.assert_allclose(packed[row, start:start + n],
                                       logits(params, alone, config)[0], atol=1e-4)
            start += n


@pytest.mark.parametrize("attention", ["blocked", "reference"])
def test_a_token_changes_only_the_later_logits_of_its_document(params, attention):
    config = dataclasses.replace(SMALL, attention=attention)
    changed = {name: array.copy() for name, array in BATCH.items()}
    changed["tokens"][0, 35] = (changed["tokens"][0, 35] + 1) % SMALL.vocab_size  # document 2
    moved = (logits(params, BATCH, config) != logits(params, changed, config)).any(axis=-1)
    assert moved[0, 35:48].all()
    assert moved.sum() == 13


def test_relabelled_segments_change_nothing(params):
    relabelled = {**BATCH, "segment_ids": BATCH["segment_ids"] * 1000}
    assert loss_and_grads(SMALL, params)[:2] == loss_and_grads(SMALL, params, relabelled)[:2]


def test_padding_is_finite_and_has_no_gradient(params):
    everything = logits(params, BATCH)
    assert np.isfinite(everything).all()
    other = {**BATCH, "tokens": np.where(BATCH["segment_ids"] == 0, 9, BATCH["tokens"])}
    loss, count, grads = loss_and_grads(SMALL, params)
    other_loss, _, other_grads = loss_and_grads(SMALL, params, other)
    assert count == BATCH["weights"].sum() and loss == other_loss
    jax.tree.map(np.testing.assert_array_equal, grads, other_grads)
    empty = {name: np.zeros_like(array) for name, array in BATCH.items()}
    loss, count, grads = loss_and_grads(SMALL, params, empty)
    assert (loss, count) == (0, 0)
    assert all((np.asarray(g) == 0).all() for g in jax.tree.leaves(grads))


@pytest.mark.parametrize("change", [
    {"scan_layers": False}, {"remat": "dots"}, {"remat": "full"},
    {"remat": "dots", "scan_layers": False}, {"attention": "reference"}, {"loss_chunk": 7}],
    ids=str)
def test_computation_settings_do_not_change_the_result(params, change):
    loss, count, grads = loss_and_grads(SMALL, params)
    other_loss, other_count, others = loss_and_grads(dataclasses.replace(SMALL, **change), params)
    assert count == other_count
    np.testing.assert_allclose(other_loss, loss, rtol=1e-6)
    scale = max(float(np.abs(g).max()) for g in jax.tree.leaves(grads))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=3e-6 * scale), others, grads)


def test_remat_keeps_less_for_the_backward_pass():
    def temporary(remat):
        config = dataclasses.replace(SMALL, num_layers=8, remat=remat)
        batch = packed_batch([[256]] * 8, 256, config.vocab_size)
        gradient = jax.grad(lambda p: transformer.loss(p, batch, config, FLOAT32)[0])
        abstract = jax.eval_shape(lambda: transformer.init_params(config, 0))
        return jax.jit(gradient).lower(abstract).compile().memory_analysis().temp_size_in_bytes

    none, dots, full = (temporary(remat) for remat in ("none", "dots", "full"))
    assert full < dots < none


def test_bfloat16_is_near_float32_and_gradients_stay_float32():
    params = transformer.init_params(SMALL, 0)
    loss, count, grads = loss_and_grads(SMALL, params)
    low_loss, low_count, low_grads = loss_and_grads(SMALL, params, precision=BFLOAT16)
    assert count == low_count and low_loss != loss
    np.testing.assert_allclose(low_loss, loss, rtol=2e-3)
    assert {g.dtype.name for g in jax.tree.leaves(low_grads)} == {"float32"}
    for grad, low in zip(jax.tree.leaves(grads), jax.tree.leaves(low_grads), strict=True):
        a, b = np.ravel(grad), np.ravel(low)
        assert a @ b / math.sqrt((a @ a) * (b @ b)) > 0.99


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("vocab_size", "embed_dim"), [(512, 128), (2048, 1024)])
def test_first_loss_is_that_of_guessing(tied, vocab_size, embed_dim):
    """Within 2 % of ln(vocabulary), at any width."""
    config = dataclasses.replace(SMALL, vocab_size=vocab_size, embed_dim=embed_dim,
                                 tie_embeddings=tied)
    batch = packed_batch([[64]] * 4, 64, vocab_size)
    params = transformer.init_params(config, 1)
    loss, count = jax.jit(transformer.loss, static_argnums=(2, 3))(params, batch, config, FLOAT32)
    assert abs(float(loss / count) / math.log(vocab_size) - 1) < 0.02


def test_initial_weights_are_what_the_tree_declares():
    config = dataclasses.replace(SMALL, embed_dim=256, mlp_dim=512)
    abstract, params = transformer.abstract_params(config), transformer.init_params(config, 3)
    assert jax.tree.structure(abstract) == jax.tree.structure(params)
    for declared, array in zip(jax.tree.leaves(abstract), jax.tree.leaves(params), strict=True):
        assert (declared.shape, declared.dtype) == (array.shape, array.dtype)
    down = params["blocks"]["feed_forward"]["down"]
    np.testing.assert_allclose(np.std(down, axis=(1, 2)), 0.02 / math.sqrt(6), rtol=0.02)
    assert len({float(layer[0, 0]) for layer in down}) == config.num_layers  # each its own draw
