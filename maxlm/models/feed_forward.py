"""SwiGLU feed-forward layer (arXiv:2002.05202)."""

import jax
from flax import nnx
from jax.ad_checkpoint import checkpoint_name

from maxlm.config.trainer import ModelConfig
from maxlm.kernels.matmul import matmul
from maxlm.models.parameters import Normal, declare
from maxlm.parallel.rules import constrain


class FeedForward(nnx.Module):
    """down(silu(gate(x)) * up(x)).

    Shape legend: B rows, T tokens, D residual width, F inner width.
    """

    def __init__(self, config: ModelConfig, rngs: nnx.Rngs):
        D, F = config.embed_dim, config.mlp_dim
        residual_std = config.init_std / (2 * config.num_layers) ** 0.5
        self.gate = declare(rngs, (D, F), ("embed", "mlp"), Normal(config.init_std))
        self.up = declare(rngs, (D, F), ("embed", "mlp"), Normal(config.init_std))
        self.down = declare(rngs, (F, D), ("mlp", "embed"), Normal(residual_std))

    def __call__(self, x_BTD: jax.Array) -> jax.Array:
        def project(weight: nnx.Param, name: str) -> jax.Array:
            y_BTF = constrain(matmul(x_BTD, weight[...]), ("batch", "length", "mlp"))
            return checkpoint_name(y_BTF, name)

        inner_BTF = jax.nn.silu(project(self.gate, "mlp_gate")) * project(self.up, "mlp_up")
        return matmul(inner_BTF, self.down[...])
