"""Optimizers by name, which parameters have weight decay, and the layout of the optimizer's state.

To add an optimizer, write a function like `adamw` and enter it in `OPTIMIZERS`.
"""

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import optax
from jax.sharding import NamedSharding, PartitionSpec

from maxlm.config import ConfigError, ModelConfig, OptimizerConfig
from maxlm.config.schema import suggestion
from maxlm.models import transformer
from maxlm.models.parameters import AbstractParam

# Kinds of parameters (maxlm/models/parameters.py) that weight decay applies to.
DECAYED = frozenset({"weight", "embedding"})

# The most bytes of an array of the state that belongs to no parameter, because each device holds a
# copy. Counters and coefficients are a few bytes; the moment of a matrix of 512 x 512 is as large
# as this. It is less than a ten-thousandth of the memory of the smallest accelerators (16 GB).
REPLICATED_BYTES = 2**20


def decay_mask(params: Any) -> Any:
    """True for the parameters that weight decay applies to, for a tree of `AbstractParam`."""
    return jax.tree.map(lambda param: param.kind in DECAYED, params,
                        is_leaf=lambda leaf: isinstance(leaf, AbstractParam))


def adamw(config: OptimizerConfig, params: Any) -> optax.GradientTransformation:
    """AdamW (arXiv:1711.05101): bias-corrected moments in float32, decay decoupled from them and
    scaled by the learning rate, as in optax and PyTorch."""
    return optax.chain(
        optax.scale_by_adam(b1=config.beta1, b2=config.beta2, eps=config.epsilon),
        optax.add_decayed_weights(config.weight_decay, mask=decay_mask(params)),
    )


# `optimizer.name` -> a function of the config and the tree of `AbstractParam`. It returns the
# transformation of a clipped gradient to an update direction; the train step multiplies that by
# the learning rate and subtracts it. Its state must be one that `optax.tree_map_params` can map.
OPTIMIZERS: dict[str, Callable[[OptimizerConfig, Any], optax.GradientTransformation]] = {
    "adamw": adamw,
}


def make_optimizer(
    optimizer: OptimizerConfig, model: ModelConfig
) -> optax.GradientTransformation:
    """Gradient -> update direction, before the learning rate.

    The train step clips by global norm, because it computes the norm for the metrics anyway.

    Raises:
      ConfigError: no optimizer has the name.
    """
    if optimizer.name not in OPTIMIZERS:
        raise ConfigError(f"config.optimizer.name: no optimizer {optimizer.name!r}; "
                          f"{suggestion(optimizer.name, OPTIMIZERS)}")
    return OPTIMIZERS[optimizer.name](optimizer, transformer.abstract_params(model))


def abstract_optimizer_state(optimizer: optax.GradientTransformation, params: Any) -> Any:
    """Shapes, dtypes and shardings of the optimizer's state, without allocating arrays.

    `optax.tree_map_params` tells which parameter an array of the state belongs to. An array of the
    parameter's shape has its layout. An array of some of its dimensions, such as Adafactor's mean
    squares of rows and of columns (arXiv:1804.04235), has the layout of those dimensions. Other
    arrays are replicated, and are small.

    Args:
      params: a `jax.ShapeDtypeStruct` with a NamedSharding for each parameter.

    Raises:
      ConfigError: an array of more than REPLICATED_BYTES would be replicated; names it.
    """
    state = jax.eval_shape(optimizer.init, params)
    unknown = object()

    def of_parameter(leaf: Any, param: jax.ShapeDtypeStruct) -> Any:
        # The state of `optax.masked` has empty nodes for parameters that are left out.
        return leaf if isinstance(leaf, optax.MaskedNode) else (
            _remaining_dimensions(leaf, param) or unknown)

    shardings = optax.tree_map_params(
        functools.partial(jax.eval_shape, optimizer.init), of_parameter, state, params,
        transform_non_params=lambda leaf: unknown,
        is_leaf=lambda node: isinstance(node, optax.MaskedNode))
    replicated = NamedSharding(jax.tree.leaves(params)[0].sharding.mesh, PartitionSpec())

    def place(path: Any, leaf: Any, sharding: Any) -> jax.ShapeDtypeStruct:
        size = math.prod(leaf.shape) * leaf.dtype.itemsize
        if sharding is unknown and size > REPLICATED_BYTES:
            raise ConfigError(
                "config.optimizer.name: array "
                f"{jax.tree_util.keystr(path, simple=True, separator='.')} of the optimizer's "
                f"state, {leaf.dtype}{list(leaf.shape)}, has no layout: it belongs to no parameter,"
                " or has a dimension that its parameter lacks. Each device would hold all "
                f"{size:,} bytes of it. Make it with jax.tree.map over the parameters in the "
                "optimizer's init, with dimensions of the parameter")
        return jax.ShapeDtypeStruct(
            leaf.shape, leaf.dtype, sharding=replicated if sharding is unknown else sharding)

    return jax.tree_util.tree_map_with_path(place, state, shardings)


def _remaining_dimensions(leaf: Any, param: jax.ShapeDtypeStruct) -> NamedSharding | None:
    """The layout of an array whose dimensions are some of the parameter's, in their order; None if
    they are not.

    Where several choices of dimensions have these sizes, as in a square matrix, the one with the
    fewest bytes on a device.
    """
    mesh, spec = param.sharding.mesh, param.sharding.spec
    axes = (*spec, *[None] * (len(param.shape) - len(spec)))
    choices = [NamedSharding(mesh, PartitionSpec(*(axes[i] for i in kept)))
               for kept in itertools.combinations(range(len(axes)), len(leaf.shape))
               if tuple(param.shape[i] for i in kept) == leaf.shape]
    return min(choices, key=lambda choice: math.prod(choice.shard_shape(leaf.shape)),
               default=None)
