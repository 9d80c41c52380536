"""Feed-forward layers, chosen by `config.model.feed_forward` and `config.model.activation`.

Shape legend: B rows, T tokens, D residual width, F inner width.
"""

import jax
from flax import nnx
from jax.ad_checkpoint import checkpoint_name

from maxlm.config.trainer import BlockConfig, ModelConfig
from maxlm.kernels.activations import ACTIVATIONS, activate, gate
from maxlm.kernels.cpu import feed_forward as cpu
from maxlm.kernels.matmul import matmul
from maxlm.models.parameters import Normal, declare
from maxlm.parallel.execution import Execution


class FeedForward(nnx.Module):
    """down(activation(up(x)))."""

    names = ("up",)

    def __init__(self, config: ModelConfig, block: BlockConfig, rngs: nnx.Rngs):
        D, F = config.embed_dim, block.mlp_dim or config.mlp_dim
        self.activation = ACTIVATIONS[config.activation]
        residual_std = config.init_std / (2 * config.num_layers) ** 0.5
        for name in self.names:
            setattr(self, name, declare(rngs, (D, F), ("embed", "mlp"), Normal(config.init_std)))
        self.down = declare(rngs, (F, D), ("mlp", "embed"), Normal(residual_std))

    def project(self, name: str, x_BTD: jax.Array, how: Execution) -> jax.Array:
        y_BTF = how.constrain(matmul(x_BTD, getattr(self, name)[...], how),
                              "batch", "length", "mlp")
        return checkpoint_name(y_BTF, f"mlp_{name}")

    def __call__(self, x_BTD: jax.Array, how: Execution) -> jax.Array:
        up_BTF = self.project("up", x_BTD, how)
        return matmul(activate(self.activation, up_BTF), self.down[...], how)


class GatedFeedForward(FeedForward):
    """down(activation(gate(x)) * up(x)): SwiGLU with silu, GeGLU with gelu (arXiv:2002.05202)."""

    names = ("gate", "up")

    def __call__(self, x_BTD: jax.Array, how: Execution) -> jax.Array:
        gate_BTF, up_BTF = (self.project(name, x_BTD, how) for name in self.names)
        if how.uses_cpu_kernels:
            return cpu.gated_down(self.activation, gate_BTF, up_BTF, self.down[...])
        return matmul(gate(self.activation, gate_BTF, up_BTF), self.down[...], how)


FEED_FORWARDS = {"gated": GatedFeedForward, "plain": FeedForward}
