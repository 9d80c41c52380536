"""The second half of a gated feed-forward layer on the CPU, with less memory for the backward pass.

Shape legend: B rows, T tokens, N tokens of all rows, D residual width, F inner width.
"""

import functools

import jax

from maxlm.kernels.activations import Activation, gate
from maxlm.kernels.cpu.matmul import input_gradient, matmul, weight_gradient


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def gated_down(activation: Activation, gate_BTF: jax.Array, up_BTF: jax.Array,
               down_FD: jax.Array) -> jax.Array:
    """(activation(gate) * up) @ down, [B, T, D] in the dtype of the gate."""
    return matmul(gate(activation, gate_BTF, up_BTF), down_FD)


def _forward(activation, gate_BTF, up_BTF, down_FD):
    return gated_down(activation, gate_BTF, up_BTF, down_FD), (gate_BTF, up_BTF, down_FD)


def _backward(activation, residuals, d_y_BTD):
    """Recomputes what is between gate and down, whatever the remat policy: a few elementwise
    operations save three arrays of F per token (for SwiGLU sigmoid, silu and product)."""
    gate_BTF, up_BTF, down_FD = residuals
    d_y_ND = d_y_BTD.reshape(-1, d_y_BTD.shape[-1])
    d_inner_BTF = input_gradient(d_y_ND, down_FD).reshape(gate_BTF.shape)
    # Makes the gate depend on the gradient: XLA:CPU would otherwise compute the activations of all
    # layers before the first is needed. It changes the gate only where a gradient is not finite.
    gate_BTF += 0 * d_inner_BTF
    inner_BTF, gradients = jax.vjp(functools.partial(gate, activation), gate_BTF, up_BTF)
    inner_NF = inner_BTF.reshape(-1, inner_BTF.shape[-1])
    return *gradients(d_inner_BTF), weight_gradient(inner_NF, d_y_ND, down_FD.dtype)


gated_down.defvjp(_forward, _backward)
