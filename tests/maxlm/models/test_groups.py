"""Layers in groups: plain models keep their tree, and every form gives the same numbers."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maxlm.config import ConfigError, build
from maxlm.config.trainer import BlockConfig, GroupConfig, ModelConfig
from maxlm.models import transformer
from maxlm.models.counts import flops_per_token, matmul_param_count, param_count
from tests.maxlm.models.examples import FLOAT32, SMALL, packed_batch

BATCH = packed_batch([[30, 34], [64], [10, 20]], 64, 256)
LOCAL, WIDE = BlockConfig(window=8), BlockConfig(mlp_dim=160)
# One dense layer first, then pairs of a windowed and a full one.
MIXED = dataclasses.replace(SMALL, num_layers=5, groups=(
    GroupConfig(blocks=(WIDE,)), GroupConfig(repeat=2, blocks=(LOCAL, BlockConfig()))))


def loss_and_gradients(config, params):
    return jax.jit(jax.value_and_grad(
        lambda p: transformer.loss(p, BATCH, config, FLOAT32)[0]))(params)


def test_plain_layers_are_one_stack():
    blocks = transformer.abstract_params(SMALL)["blocks"]
    assert blocks["attention"]["query"].shape == (3, 64, 8, 16)
    explicit = dataclasses.replace(SMALL, groups=(GroupConfig(repeat=3),))
    assert transformer.abstract_params(explicit) == transformer.abstract_params(SMALL)


def test_plain_blocks_in_groups_compute_what_one_stack_does():
    plain = dataclasses.replace(SMALL, num_layers=5)
    grouped = dataclasses.replace(plain, groups=(
        GroupConfig(blocks=(BlockConfig(),)), GroupConfig(repeat=2, blocks=(BlockConfig(),) * 2)))
    params = transformer.init_params(plain, 0)
    stack = params["blocks"]
    in_groups = params | {"blocks": {
        "group_0": jax.tree.map(lambda x: x[:1], stack),
        "group_1": {f"block_{j}": jax.tree.map(lambda x, j=j: x[1 + j::2], stack)
                    for j in range(2)}}}
    assert jax.tree.map(jnp.shape, in_groups) == jax.tree.map(
        lambda leaf: leaf.shape, transformer.abstract_params(grouped))
    loss, grads = loss_and_gradients(plain, params)
    loss_here, grads_here = loss_and_gradients(grouped, in_groups)
    np.testing.assert_allclose(loss_here, loss, rtol=1e-6)
    query = grads["blocks"]["attention"]["query"]
    np.testing.assert_allclose(
        grads_here["blocks"]["group_1"]["block_1"]["attention"]["query"], query[2::2], atol=1e-5)
    assert param_count(grouped) == param_count(plain)


@pytest.mark.parametrize("change", [
    {"scan_layers": False}, {"remat": "full"}, {"remat": "dots"},
    {"scan_layers": False, "remat": "full"}])
def test_every_form_gives_the_same_numbers(change):
    params = transformer.init_params(MIXED, 0)
    loss, grads = loss_and_gradients(MIXED, params)
    loss_here, grads_here = loss_and_gradients(dataclasses.replace(MIXED, **change), params)
    np.testing.assert_allclose(loss_here, loss, rtol=1e-6)
    for a, b in zip(jax.tree.leaves(grads_here), jax.tree.leaves(grads), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4 * float(jnp.abs(b).max()))


def test_a_cache_gives_the_logits_of_the_whole_row():
    params = transformer.init_params(MIXED, 0)
    tokens = np.random.default_rng(0).integers(1, 256, (2, 20)).astype(np.int32)
    ones, positions = np.ones_like(tokens), np.tile(np.arange(20, dtype=np.int32), (2, 1))
    whole = transformer.logits(params, tokens, ones, positions, MIXED, FLOAT32)
    cache = transformer.init_cache(MIXED, 2, 20, FLOAT32)
    decode = jax.jit(transformer.decode, static_argnums=(4, 5))
    for start, stop in ((0, 12), (12, 13), (13, 20)):
        logits, cache = decode(params, cache, tokens[:, start:stop],
                               np.full(2, stop - start, np.int32), MIXED, FLOAT32)
        np.testing.assert_allclose(logits, whole[:, stop - 1], atol=2e-5)


def test_a_window_limits_how_far_back_a_token_sees():
    """Two layers of window 4 see 6 tokens back; the model has no other way to look further."""
    config = dataclasses.replace(SMALL, num_layers=2, groups=(
        GroupConfig(repeat=2, blocks=(BlockConfig(window=4),)),))
    params = transformer.init_params(config, 0)
    tokens = np.random.default_rng(0).integers(1, 256, (1, 20)).astype(np.int32)
    positions = np.arange(20, dtype=np.int32)[None]

    def last(tokens):
        return np.asarray(transformer.logits(params, tokens, np.ones_like(tokens), positions,
                                             config, FLOAT32))[0, -1]

    for place, sees in ((12, False), (13, True)):
        changed = tokens.copy()
        changed[0, place] += 1
        assert (last(changed) != last(tokens)).any() == sees


def test_counts_follow_the_groups():
    D, F = 64, 96
    attention = 2 * D * 8 * 16 + 2 * D * 4 * 16
    layers = 5 * attention + 3 * D * 160 + 4 * 3 * D * F
    assert matmul_param_count(MIXED) == layers + 256 * D
    T, width = 64, 8 * 16
    # Scores and values: 2 matmuls, 3 passes, 2 FLOPs; keys: half the row, or the window's share.
    keys = 3 * T / 2 + 2 * (8 - 8 * 8 / (2 * T))
    assert flops_per_token(MIXED, T) == 6 * (layers + 256 * D) + 12 * width * keys


def test_a_wrong_total_is_refused():
    with pytest.raises(ConfigError, match=r"config.model.num_layers: 4, but groups have 6 blocks"):
        build(ModelConfig, {"num_layers": 4, "groups": [{"repeat": 3, "blocks": [{}, {}]}]},
              "config.model")
    with pytest.raises(ConfigError, match="at least one block"):
        build(ModelConfig, {"num_layers": 4, "groups": [{"repeat": 3, "blocks": []}]})
