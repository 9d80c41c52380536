"""How a module declares a parameter: shape, dtype, logical axes, kind and initialiser, once.

Everything else (initialisation, sharding, checkpoint layout, counts, export) reads the tree of
these declarations, see `maxlm.models.transformer.abstract_params`.
"""

import dataclasses
from typing import Any, Literal

import jax
import jax.numpy as jnp
from flax import nnx

# What a parameter is for. The optimizer reads it: weight decay applies to weights and embeddings.
Kind = Literal["weight", "embedding", "norm", "bias", "fp8_scale"]


@dataclasses.dataclass(frozen=True)
class Normal:
    """Initialiser: normal with mean 0."""

    std: float

    def __call__(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        return self.std * jax.random.normal(key, shape, jnp.float32)


@dataclasses.dataclass(frozen=True)
class Ones:
    """Initialiser: all ones."""

    def __call__(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        return jnp.ones(shape, jnp.float32)


@dataclasses.dataclass(frozen=True)
class Zeros:
    """Initialiser: all zeros."""

    def __call__(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        return jnp.zeros(shape, jnp.float32)


Initializer = Normal | Ones | Zeros


@dataclasses.dataclass(frozen=True)
class AbstractParam:
    """The declaration of a parameter, without an array.

    Attributes:
      shape, dtype: of the whole (unsharded) array.
      logical_axes: one name per dimension, see maxlm/parallel/rules.py.
      kind: what the parameter is for.
      initializer: gives its first values (per layer where the first axis is "layers").
    """

    shape: tuple[int, ...]
    dtype: Any
    logical_axes: tuple[str, ...]
    kind: Kind
    initializer: Initializer

    @property
    def size(self) -> int:
        size = 1
        for length in self.shape:
            size *= length
        return size


def declare(rngs: nnx.Rngs, shape: tuple[int, ...], logical_axes: tuple[str, ...],
            initializer: Initializer, kind: Kind = "weight") -> nnx.Param:
    """A float32 master weight."""
    assert len(shape) == len(logical_axes), (shape, logical_axes)
    return nnx.Param(initializer(rngs.params(), shape), logical_axes=logical_axes,
                     kind=kind, initializer=initializer)


def bind(structure: tuple[nnx.GraphDef, nnx.State], params: Any) -> Any:
    """A module from its `nnx.split`, with these arrays as its parameters."""
    graph, state = structure
    state = jax.tree.map(lambda leaf: leaf, state)
    nnx.replace_by_pure_dict(state, params)
    return nnx.merge(graph, state)
