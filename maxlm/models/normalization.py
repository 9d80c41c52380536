"""RMSNorm (arXiv:1910.07467), in float32."""

import jax
import jax.numpy as jnp
from flax import nnx

from maxlm.models.parameters import Ones, declare


class RMSNorm(nnx.Module):
    """x / sqrt(mean(x^2) + epsilon) * scale over the last dimension."""

    def __init__(self, width: int, epsilon: float, rngs: nnx.Rngs):
        self.epsilon = epsilon
        self.scale = declare(rngs, (width,), ("norm",), Ones())

    def __call__(self, x: jax.Array) -> jax.Array:
        wide = x.astype(jnp.float32)
        mean_square = jnp.mean(wide * wide, axis=-1, keepdims=True)
        return (wide * jax.lax.rsqrt(mean_square + self.epsilon) * self.scale[...]).astype(x.dtype)
