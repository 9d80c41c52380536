"""The feed-forward layers: values, gradients, and what they keep for them."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from maxlm.config import ModelConfig
from maxlm.config.trainer import BlockConfig
from maxlm.models.feed_forward import FEED_FORWARDS
from maxlm.parallel.execution import Execution

CONFIG = ModelConfig(vocab_size=64, num_layers=1, embed_dim=32, num_heads=4, num_kv_heads=4,
                     head_dim=8, mlp_dim=128)
FORMS = {platform: Execution(platform=platform) for platform in ("cpu", "tpu")}
FORMULAS = {
    "silu": lambda x: x / (1 + jnp.exp(-x)),
    "gelu": lambda x: x * (1 + jax.scipy.special.erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + jnp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "relu": lambda x: jnp.maximum(x, 0),
}


def make(kind, activation, seed=0, block=None):
    config = dataclasses.replace(CONFIG, feed_forward=kind, activation=activation)
    return FEED_FORWARDS[kind](config, block or BlockConfig(), nnx.Rngs(seed))


@pytest.mark.parametrize("dtype, tolerance", [(jnp.float32, 1e-5), (jnp.bfloat16, 3e-2)])
@pytest.mark.parametrize("activation", FORMULAS)
@pytest.mark.parametrize("kind", FEED_FORWARDS)
@pytest.mark.parametrize("form", FORMS)
def test_value_and_gradients_are_those_of_the_formula(form, kind, activation, dtype, tolerance):
    graph, state = nnx.split(make(kind, activation))
    # As large as what trained layers give, and rounded so that bfloat16 does not round them again.
    state = jax.tree.map(lambda w: (20 * w).astype(dtype).astype(jnp.float32), state)
    x_BTD, d_y_BTD = jax.random.normal(jax.random.key(1), (2, 2, 16, 32)).astype(dtype)

    def formula(state, x_BTD):
        with jax.default_matmul_precision("highest"):
            up = x_BTD @ state["up"][...]
            inner = FORMULAS[activation](x_BTD @ state["gate"][...]) * up if (
                kind == "gated") else FORMULAS[activation](up)
            return inner @ state["down"][...]

    y, pull = jax.vjp(lambda state, x: nnx.merge(graph, state)(x, FORMS[form]), state, x_BTD)
    truth, pull_truth = jax.vjp(formula, state, x_BTD.astype(jnp.float32))
    assert y.dtype == dtype
    for a, b in zip(jax.tree.leaves((y, pull(d_y_BTD))),
                    jax.tree.leaves((truth, pull_truth(d_y_BTD.astype(jnp.float32)))), strict=True):
        scale = float(np.abs(b).max())
        np.testing.assert_allclose(np.asarray(a, np.float32), b, atol=tolerance * scale)


def test_a_layer_keeps_gate_and_up_and_nothing_else_of_their_size():
    T, D, F = 512, CONFIG.embed_dim, CONFIG.mlp_dim

    def temporary_bytes(layers):
        graph, state = nnx.split([make("gated", "silu", i) for i in range(layers)])

        def loss(state, x):
            for layer in nnx.merge(graph, state):
                x = x + layer(x, FORMS["cpu"])
            return jnp.square(x).sum()

        compiled = jax.jit(jax.grad(loss)).lower(state, jnp.ones((1, T, D))).compile()
        found = compiled.memory_analysis()
        assert found is not None
        return found.temp_size_in_bytes

    a_layer = (temporary_bytes(8) - temporary_bytes(4)) / 4
    assert a_layer <= 4 * T * (2 * F + 2 * D)


def test_a_block_may_have_its_own_width():
    assert make("gated", "silu", block=BlockConfig(mlp_dim=48)).down.shape == (48, 32)
