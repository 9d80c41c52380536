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

        # Recomputed for the backward pass, whatever the remat policy: three arrays of F a token
        # less to keep (sigmoid, silu and product) for a few elementwise operations.
        return jax.checkpoint(_swiglu_down)(
            project(self.gate, "mlp_gate"), project(self.up, "mlp_up"), self.down[...])


def _swiglu_down(gate_BTF: jax.Array, up_BTF: jax.Array, down_FD: jax.Array) -> jax.Array:
    return matmul(jax.nn.silu(gate_BTF) * up_BTF, down_FD)
