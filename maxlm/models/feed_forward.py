"""SwiGLU feed-forward layer (arXiv:2002.05202)."""

import jax
import jax.numpy as jnp
from flax import nnx
from jax.ad_checkpoint import checkpoint_name

from maxlm.config.trainer import ModelConfig
from maxlm.kernels.matmul import input_gradient, matmul, weight_gradient
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

        return _swiglu_down(
            project(self.gate, "mlp_gate"), project(self.up, "mlp_up"), self.down[...])


def _inner(gate_BTF: jax.Array, up_BTF: jax.Array) -> jax.Array:
    # In float32, because rounding after each bfloat16 operation would double the time on XLA:CPU.
    wide = jax.nn.silu(gate_BTF.astype(jnp.float32)) * up_BTF.astype(jnp.float32)
    return wide.astype(gate_BTF.dtype)


@jax.custom_vjp
def _swiglu_down(gate_BTF: jax.Array, up_BTF: jax.Array, down_FD: jax.Array) -> jax.Array:
    return matmul(_inner(gate_BTF, up_BTF), down_FD)


def _forward(gate_BTF, up_BTF, down_FD):
    return _swiglu_down(gate_BTF, up_BTF, down_FD), (gate_BTF, up_BTF, down_FD)


def _backward(residuals, d_y_BTD):
    """Recomputes what is between gate and down, whatever the remat policy: a few elementwise
    operations save three arrays of F per token (sigmoid, silu and product)."""
    gate_BTF, up_BTF, down_FD = residuals
    d_y_ND = d_y_BTD.reshape(-1, d_y_BTD.shape[-1])
    d_inner_BTF = input_gradient(d_y_ND, down_FD).reshape(gate_BTF.shape)
    # Makes the gate depend on the gradient: XLA:CPU would otherwise compute the sigmoids of all
    # layers before the first is needed. It changes the gate only where a gradient is not finite.
    gate_BTF += 0 * d_inner_BTF
    inner_BTF, gradients = jax.vjp(_inner, gate_BTF, up_BTF)
    inner_NF = inner_BTF.reshape(-1, inner_BTF.shape[-1])
    return *gradients(d_inner_BTF), weight_gradient(inner_NF, d_y_ND, down_FD.dtype)


_swiglu_down.defvjp(_forward, _backward)
