"""Rotary position embedding (RoPE, arXiv:2104.09864) from explicit positions."""

import jax
import jax.numpy as jnp


def rope_tables(positions_BT: jax.Array, head_dim: int,
                theta: float) -> tuple[jax.Array, jax.Array]:
    """Cosine and sine of position times frequency theta^(-2i/head_dim), i < head_dim/2.

    Args:
      positions_BT: int32 position of each token inside its own document.

    Returns:
      Two float32 arrays [B, T, head_dim/2].
    """
    exponents = jnp.arange(0, head_dim, 2, dtype=jnp.float32) / head_dim
    angles = positions_BT[..., None].astype(jnp.float32) * theta**-exponents
    # A loop of two iterations instead of two calls: XLA:CPU writes the result of a loop to memory,
    # but would recompute cosines in each fusion that rotates a head (5 % of a step).
    cos, sin = jax.lax.map(lambda second: jnp.where(second, jnp.sin(angles), jnp.cos(angles)),
                           jnp.array([False, True]))
    return cos, sin


def rotate(x_BTHK: jax.Array, tables: tuple[jax.Array, jax.Array]) -> jax.Array:
    """`x` with each pair (i, i + head_dim/2) rotated by its angle, computed in float32.

    Pairs are halves of the head, as in Hugging Face Llama; Meta's original files pair neighbours
    (2i, 2i+1), which maxlm/interop/llama.py converts.
    """
    cos, sin = (table[:, :, None, :] for table in tables)
    low, high = jnp.split(x_BTHK.astype(jnp.float32), 2, axis=-1)
    return jnp.concatenate([low * cos - high * sin, high * cos + low * sin],
                           axis=-1).astype(x_BTHK.dtype)
