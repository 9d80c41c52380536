"""The feed-forward layer: its own gradient, and what it keeps for it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from maxlm.config import ModelConfig
from maxlm.models.feed_forward import FeedForward

CONFIG = ModelConfig(vocab_size=64, num_layers=1, embed_dim=32, num_heads=4, num_kv_heads=4,
                     head_dim=8, mlp_dim=128)


@pytest.mark.parametrize("dtype, tolerance", [(jnp.float32, 1e-5), (jnp.bfloat16, 3e-2)])
def test_value_and_gradients_are_those_of_the_formula(dtype, tolerance):
    layer = FeedForward(CONFIG, nnx.Rngs(0))
    graph, state = nnx.split(layer)
    # As large as what trained layers give, and rounded so that bfloat16 does not round them again.
    state = jax.tree.map(lambda w: (20 * w).astype(dtype).astype(jnp.float32), state)
    x_BTD, d_y_BTD = jax.random.normal(jax.random.key(1), (2, 2, 16, 32)).astype(dtype)

    def formula(state, x_BTD):
        gate, up, down = (state[name][...] for name in ("gate", "up", "down"))
        with jax.default_matmul_precision("highest"):
            a, b = x_BTD @ gate, x_BTD @ up
            return (a / (1 + jnp.exp(-a)) * b) @ down

    y, pull = jax.vjp(lambda state, x: nnx.merge(graph, state)(x), state, x_BTD)
    truth, pull_truth = jax.vjp(formula, state, x_BTD.astype(jnp.float32))
    assert y.dtype == dtype
    for a, b in zip(jax.tree.leaves((y, pull(d_y_BTD))),
                    jax.tree.leaves((truth, pull_truth(d_y_BTD.astype(jnp.float32)))), strict=True):
        scale = float(np.abs(b).max())
        np.testing.assert_allclose(np.asarray(a, np.float32), b, atol=tolerance * scale)


def test_a_layer_keeps_gate_and_up_and_nothing_else_of_their_size():
    T, D, F = 512, CONFIG.embed_dim, CONFIG.mlp_dim

    def temporary_bytes(layers):
        graph, state = nnx.split([FeedForward(CONFIG, nnx.Rngs(i)) for i in range(layers)])

        def loss(state, x):
            for layer in nnx.merge(graph, state):
                x = x + layer(x)
            return jnp.square(x).sum()

        compiled = jax.jit(jax.grad(loss)).lower(state, jnp.ones((1, T, D))).compile()
        found = compiled.memory_analysis()
        assert found is not None
        return found.temp_size_in_bytes

    a_layer = (temporary_bytes(8) - temporary_bytes(4)) / 4
    assert a_layer <= 4 * T * (2 * F + 2 * D)
