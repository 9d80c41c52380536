"""How a model knows the order of tokens, chosen by `config.model.positions`.

Positions count from the start of each document of a packed row. A class prepares tables once for
all layers and applies them to the queries and keys of each; ALiBi acts on the scores instead, so it
is part of the description of attention.
"""

from typing import Any, Protocol

import jax
import jax.numpy as jnp

from maxlm.config.trainer import ModelConfig
from maxlm.kernels.cpu.rotary import cos_sin
from maxlm.parallel.execution import Execution


class Positions(Protocol):
    """Shape legend: B rows, T tokens, H heads, K head width."""

    alibi: bool  # whether the scores have a bias by distance

    def tables(self, positions_BT: jax.Array, how: Execution) -> Any:
        """What `rotate` of all layers needs, from the int32 position of each token inside its own
        document."""
        ...

    def rotate(self, x_BTHK: jax.Array, tables: Any) -> jax.Array:
        """Queries or keys with their positions."""
        ...


class Rotary:
    """Rotary position embedding (RoPE, arXiv:2104.09864)."""

    alibi = False

    def __init__(self, config: ModelConfig):
        self.head_dim, self.theta = config.head_dim, config.rope_theta

    def tables(self, positions_BT: jax.Array, how: Execution) -> tuple[jax.Array, jax.Array]:
        """Cosine and sine of position times frequency theta^(-2i/K), i < K/2: float32 [B, T, K/2].
        """
        exponents = jnp.arange(0, self.head_dim, 2, dtype=jnp.float32) / self.head_dim
        angles = positions_BT[..., None].astype(jnp.float32) * self.theta**-exponents
        return cos_sin(angles) if how.platform == "cpu" else (jnp.cos(angles), jnp.sin(angles))

    def rotate(self, x_BTHK: jax.Array, tables: tuple[jax.Array, jax.Array]) -> jax.Array:
        """`x` with each pair (i, i + K/2) rotated by its angle, computed in float32.

        Pairs are halves of the head, as in Hugging Face Llama; Meta's original files pair
        neighbours (2i, 2i+1), which maxlm/interop/llama.py converts.
        """
        cos, sin = (table[:, :, None, :] for table in tables)
        low, high = jnp.split(x_BTHK.astype(jnp.float32), 2, axis=-1)
        return jnp.concatenate([low * cos - high * sin, high * cos + low * sin],
                               axis=-1).astype(x_BTHK.dtype)


class NoPositions:
    """None: a causal model can infer the order (arXiv:2305.19466)."""

    alibi = False

    def __init__(self, config: ModelConfig):
        del config

    def tables(self, positions_BT: jax.Array, how: Execution) -> None:
        return None

    def rotate(self, x_BTHK: jax.Array, tables: None) -> jax.Array:
        return x_BTHK


class Alibi(NoPositions):
    """Scores fall with the distance of query and key (arXiv:2108.12409)."""

    alibi = True


POSITIONS = {"rotary": Rotary, "alibi": Alibi, "none": NoPositions}


def positions_of(config: ModelConfig) -> Positions:
    return POSITIONS[config.positions](config)
