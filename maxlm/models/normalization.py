"""Norms over the last dimension, in float32, chosen by `config.model.norm`."""

import jax
import jax.numpy as jnp
from flax import nnx

from maxlm.config.trainer import ModelConfig
from maxlm.models.parameters import Ones, Zeros, declare


class RMSNorm(nnx.Module):
    """x / sqrt(mean(x^2) + epsilon) * scale (arXiv:1910.07467)."""

    def __init__(self, width: int, epsilon: float, rngs: nnx.Rngs):
        self.epsilon = epsilon
        self.scale = declare(rngs, (width,), ("norm",), Ones(), kind="norm")

    def __call__(self, x: jax.Array) -> jax.Array:
        # Recomputed in the backward pass under every remat policy. Otherwise a float32 copy of a
        # bfloat16 x and the float32 quotient would be kept, six times the size of x.
        return jax.checkpoint(self._normalised)(x, self.scale[...])

    def _normalised(self, x: jax.Array, scale: jax.Array) -> jax.Array:
        wide = x.astype(jnp.float32)
        mean_square = jnp.mean(wide * wide, axis=-1, keepdims=True)
        return (wide * jax.lax.rsqrt(mean_square + self.epsilon) * scale).astype(x.dtype)


class LayerNorm(nnx.Module):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias (arXiv:1607.06450)."""

    def __init__(self, width: int, epsilon: float, rngs: nnx.Rngs):
        self.epsilon = epsilon
        self.scale = declare(rngs, (width,), ("norm",), Ones(), kind="norm")
        self.bias = declare(rngs, (width,), ("norm",), Zeros(), kind="norm")

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.checkpoint(self._normalised)(x, self.scale[...], self.bias[...])

    def _normalised(self, x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
        wide = x.astype(jnp.float32)
        wide -= jnp.mean(wide, axis=-1, keepdims=True)
        variance = jnp.mean(wide * wide, axis=-1, keepdims=True)
        return (wide * jax.lax.rsqrt(variance + self.epsilon) * scale + bias).astype(x.dtype)


NORMS = {"rmsnorm": RMSNorm, "layernorm": LayerNorm}


def make_norm(config: ModelConfig, rngs: nnx.Rngs) -> nnx.Module:
    """A norm over the residual stream."""
    return NORMS[config.norm](config.embed_dim, config.norm_epsilon, rngs)
