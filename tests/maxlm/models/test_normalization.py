"""Norms against their formulas, and at the smallest epsilon."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from maxlm.config import ConfigError, ModelConfig, build
from maxlm.models.normalization import NORMS, RMSNorm

LEAST = 1e-24


def test_smaller_epsilons_are_refused():
    with pytest.raises(ConfigError, match=r"config\.model\.norm_epsilon: must be at least 1e-24"):
        build(ModelConfig, {"norm_epsilon": LEAST / 2}, "config.model")


@pytest.mark.parametrize("scale", [0.0, 1e-38, 1e-20, 1e-12, 1.0])
def test_value_and_gradient_are_finite_at_the_smallest_epsilon(scale):
    norm = RMSNorm(16, LEAST, nnx.Rngs(0))
    x = scale * jnp.asarray(np.random.default_rng(0).normal(size=(3, 16)), jnp.float32)
    value, gradient = jax.jit(jax.value_and_grad(lambda x: jnp.sum(norm(x) ** 2)))(x)
    assert np.isfinite(value) and np.isfinite(gradient).all()


@pytest.mark.parametrize("name", NORMS)
def test_value_is_that_of_the_formula(name):
    norm = NORMS[name](16, 1e-3, nnx.Rngs(0))
    random = np.random.default_rng(1)
    x, scale, bias = random.normal(size=(3, 16)), random.normal(size=16), random.normal(size=16)
    norm.scale[...] = jnp.asarray(scale, jnp.float32)
    if name == "layernorm":
        norm.bias[...] = jnp.asarray(bias, jnp.float32)
        expected = (x - x.mean(1, keepdims=True)) / np.sqrt(
            x.var(1, keepdims=True) + 1e-3) * scale + bias
    else:
        expected = x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-3) * scale
    np.testing.assert_allclose(norm(jnp.asarray(x, jnp.float32)), expected, atol=1e-6)
    low = norm(jnp.asarray(x, jnp.bfloat16))
    assert low.dtype == jnp.bfloat16
