"""The matmul of a layer: activations times a master weight, in the dtype of the activations."""

import functools

import jax
import jax.numpy as jnp

from maxlm.kernels.cpu import matmul as cpu
from maxlm.parallel.execution import Execution
from maxlm.precision.policy import matmul_precision


def matmul(x: jax.Array, weight: jax.Array, how: Execution, contract: int = 1) -> jax.Array:
    """Contracts the last `contract` dimensions of x with the first ones of weight.

    Args:
      x: [rows..., inner...], compute dtype.
      weight: [inner..., columns...], float32; used in the dtype of x. Its gradient is float32; each
        device sums its rows in float32 and the devices add their sums in the dtype of
        `config.precision.gradients`.

    Returns:
      [rows..., columns...] in the dtype of x.
    """
    if how.uses_cpu_kernels:
        return cpu.matmul(x, weight, contract)
    return _matmul(contract, jnp.dtype(how.precision.gradients), x, weight)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _matmul(contract, gradients, x, weight):
    del gradients
    return _dot(x, weight.astype(x.dtype), range(x.ndim - contract, x.ndim), range(contract))


def _forward(contract, gradients, x, weight):
    return _matmul(contract, gradients, x, weight), (x, weight)


def _backward(contract, gradients, residuals, d_y):
    x, weight = residuals
    rows, columns = x.ndim - contract, weight.ndim - contract
    d_x = _dot(d_y, weight.astype(x.dtype), range(rows, d_y.ndim), range(contract, weight.ndim))
    d_weight = _dot(x, d_y, range(rows), range(rows), jnp.promote_types(gradients, x.dtype))
    assert d_weight.ndim == contract + columns
    return d_x, d_weight.astype(weight.dtype)


_matmul.defvjp(_forward, _backward)


def _dot(a: jax.Array, b: jax.Array, a_axes: range, b_axes: range, dtype=None) -> jax.Array:
    return jax.lax.dot_general(a, b, ((tuple(a_axes), tuple(b_axes)), ((), ())),
                               precision=matmul_precision(a.dtype), preferred_element_type=dtype)
