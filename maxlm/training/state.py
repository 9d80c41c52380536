"""The training state: its shapes and shardings, and its initial value."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from maxlm.config import Config
from maxlm.models import transformer
from maxlm.models.parameters import AbstractParam
from maxlm.parallel.rules import logical_rules
from maxlm.training.optimizer import abstract_optimizer_state, make_optimizer


class TrainState(NamedTuple):
    """Everything that a step changes. Data order and random numbers are functions of `step`."""

    step: jax.Array  # int32 scalar: optimizer steps done
    params: Any  # float32 master weights, the tree of maxlm.models.transformer
    opt_state: Any  # optax state; see maxlm.training.optimizer for its layout


def abstract_state(config: Config, mesh: jax.sharding.Mesh) -> TrainState:
    """Shapes, dtypes and shardings of the state, without allocating arrays.

    Raises:
      ConfigError: a parameter cannot be divided over the mesh as the rules say, or a large array
        of the optimizer's state has no layout.
    """
    params = jax.tree.map(
        lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
        transformer.abstract_params(config.model),
        transformer.param_shardings(config.model, mesh, logical_rules(config.parallel)),
        is_leaf=lambda leaf: isinstance(leaf, AbstractParam))
    step = jax.ShapeDtypeStruct((), jnp.int32, sharding=NamedSharding(mesh, PartitionSpec()))
    optimizer = make_optimizer(config.optimizer, config.model)
    return TrainState(
        step,  # pyright: ignore[reportArgumentType]: not an array
        params, abstract_optimizer_state(optimizer, params))


@jax.jit
def _all_finite(array: jax.Array) -> jax.Array:
    return jnp.isfinite(array).all()


def nonfinite_arrays(state: Any) -> list[str]:
    """Paths of the floating-point arrays of a state that hold NaN or an infinity."""
    finite = {jax.tree_util.keystr(path, simple=True, separator="."): _all_finite(leaf)
              for path, leaf in jax.tree_util.tree_leaves_with_path(state)
              if jnp.issubdtype(leaf.dtype, jnp.floating)}
    return [name for name, value in jax.device_get(finite).items() if not value]


def init_state(config: Config, mesh: jax.sharding.Mesh) -> TrainState:
    """The state at step 0, created on the devices that hold it.

    Values depend on the seed, not on the mesh.
    """
    abstract = abstract_state(config, mesh)
    optimizer = make_optimizer(config.optimizer, config.model)

    def create() -> TrainState:
        params = transformer.init_params(config.model, config.run.seed)
        return TrainState(jnp.int32(0), params, optimizer.init(params))

    with jax.set_mesh(mesh):
        return jax.jit(create, out_shardings=jax.tree.map(lambda a: a.sharding, abstract))()
