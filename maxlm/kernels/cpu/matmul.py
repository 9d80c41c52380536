"""The matmul of a layer on the CPU: activations times a master weight as two matrices.

Shape legend: N rows, K inner width, C columns.
"""

import math

import jax
import jax.numpy as jnp

from maxlm.precision.policy import matmul_precision


def matmul(x: jax.Array, weight: jax.Array, contract: int = 1) -> jax.Array:
    """Contracts the last `contract` dimensions of x with the first ones of weight.

    Both are reshaped to matrices first. The result would be the same without it, but the gradient
    of the weight would then sum over several dimensions, for which XLA:CPU copies both operands
    into another order.

    Args:
      x: [rows..., inner...], compute dtype.
      weight: [inner..., columns...], float32; used in the dtype of x. Its gradient is float32,
        summed in float32.

    Returns:
      [rows..., columns...] in the dtype of x.
    """
    rows, columns = x.shape[:x.ndim - contract], weight.shape[contract:]
    inner = math.prod(weight.shape[:contract])
    y_NC = _matmul(x.reshape(-1, inner), weight.reshape(inner, -1))
    return y_NC.reshape(*rows, *columns)


@jax.custom_vjp
def _matmul(x_NK, weight_KC):
    return jnp.dot(x_NK, weight_KC.astype(x_NK.dtype), precision=matmul_precision(x_NK.dtype))


def _matmul_forward(x_NK, weight_KC):
    return _matmul(x_NK, weight_KC), (x_NK, weight_KC)


def _matmul_backward(residuals, d_y_NC):
    x_NK, weight_KC = residuals
    return input_gradient(d_y_NC, weight_KC), weight_gradient(x_NK, d_y_NC, weight_KC.dtype)


_matmul.defvjp(_matmul_forward, _matmul_backward)


def input_gradient(d_y_NC: jax.Array, weight_KC: jax.Array) -> jax.Array:
    """Gradient [N, K] of a matmul's activations, in the dtype of `d_y_NC`."""
    return jnp.dot(d_y_NC, transposed(weight_KC.astype(d_y_NC.dtype)),
                   precision=matmul_precision(d_y_NC.dtype))


def weight_gradient(x_NK: jax.Array, d_y_NC: jax.Array, dtype: jnp.dtype) -> jax.Array:
    """Gradient [K, C] of a matmul's weight, summed in float32."""
    return jnp.dot(transposed(x_NK), d_y_NC, precision=matmul_precision(x_NK.dtype),
                   preferred_element_type=jnp.float32).astype(dtype)


def transposed(x_NK: jax.Array) -> jax.Array:
    """The transpose, written to memory where that makes the matmul that reads it faster.

    XLA folds a transpose into the dot that reads it. On CPU that dot of bfloat16 then misses the
    fast kernel: 150 instead of 300 GFLOP/s.
    """
    if x_NK.dtype != jnp.bfloat16 or x_NK.shape[1] % 2:
        return x_NK.T

    def by_halves(x_NK: jax.Array) -> jax.Array:
        return materialize(x_NK.T.reshape(2, -1, x_NK.shape[0])).reshape(-1, x_NK.shape[0])

    return jax.lax.platform_dependent(x_NK, cpu=by_halves, default=jnp.transpose)


def materialize(x: jax.Array) -> jax.Array:
    """`x`, written to memory in its own layout, so that XLA:CPU does not fold the operations before
    it into those after it. `x` has at least two rows. With several devices, `x` unchanged.

    XLA:CPU removes an `optimization_barrier` before it folds, but it writes the inputs of a loop to
    memory. The barrier here only keeps JAX from removing the loop, which does nothing.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if not (mesh.empty or mesh.size == 1):
        return x
    return jax.lax.map(jax.lax.optimization_barrier, x)
