"""RMSNorm (arXiv:1910.07467), in float32."""

import jax
import jax.numpy as jnp
from flax import nnx

from maxlm.models.parameters import Ones, declare


class RMSNorm(nnx.Module):
    """x / sqrt(mean(x^2) + epsilon) * scale over the last dimension."""

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
