"""The tables of rotary positions on the CPU."""

import jax
import jax.numpy as jnp


def cos_sin(angles: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Cosine and sine, each like `angles`.

    A loop of two iterations instead of two calls: XLA:CPU writes the result of a loop to memory,
    but would recompute cosines in each fusion that rotates a head (5 % of a step).
    """
    cos, sin = jax.lax.map(lambda second: jnp.where(second, jnp.sin(angles), jnp.cos(angles)),
                           jnp.array([False, True]))
    return cos, sin
