"""The optimizer: AdamW from optax transformations, and which parameters have weight decay."""

from typing import Any

import jax
import optax

from maxlm.config import ModelConfig, OptimizerConfig
from maxlm.models import transformer


def decay_mask(model: ModelConfig) -> Any:
    """True for the parameters that weight decay applies to: matrices, not norm scales.

    The `layers` axis stacks the parameters of all layers and does not count as a dimension.
    """
    return jax.tree.map(
        lambda leaf: sum(axis != "layers" for axis in leaf.logical_axes) >= 2,
        transformer.abstract_params(model), is_leaf=lambda leaf: hasattr(leaf, "logical_axes"))


def make_optimizer(
    optimizer: OptimizerConfig, model: ModelConfig
) -> optax.GradientTransformation:
    """Gradient -> update direction, before the learning rate.

    AdamW (arXiv:1711.05101): bias-corrected moments in float32, decay decoupled from them and
    scaled by the learning rate, as in optax and PyTorch. The train step clips by global norm,
    because it computes the norm for the metrics anyway.
    """
    return optax.chain(
        optax.scale_by_adam(b1=optimizer.beta1, b2=optimizer.beta2, eps=optimizer.epsilon),
        optax.add_decayed_weights(optimizer.weight_decay, mask=decay_mask(model)),
    )
