"""Activations of feed-forward layers by name, and the product that gates one."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp

Activation = Callable[[jax.Array], jax.Array]

ACTIVATIONS: dict[str, Activation] = {
    "silu": jax.nn.silu,  # x * sigmoid(x), arXiv:1710.05941
    "gelu": functools.partial(jax.nn.gelu, approximate=False),  # arXiv:1606.08415
    "gelu_tanh": functools.partial(jax.nn.gelu, approximate=True),  # GPT-2's
    "relu": jax.nn.relu,
}


def activate(activation: Activation, up: jax.Array) -> jax.Array:
    """activation(up), computed in float32, in the dtype of `up`."""
    return activation(up.astype(jnp.float32)).astype(up.dtype)


def gate(activation: Activation, gate: jax.Array, up: jax.Array) -> jax.Array:
    """activation(gate) * up, computed in float32, in the dtype of `gate`."""
    # Rounding after each bfloat16 operation would double the time on XLA:CPU.
    return (activation(gate.astype(jnp.float32)) * up.astype(jnp.float32)).astype(gate.dtype)
