"""The matmul of a layer: activations times a master weight, in the dtype of the activations."""

import jax

from maxlm.kernels.cpu import matmul as cpu
from maxlm.parallel.execution import Execution
from maxlm.precision.policy import matmul_precision


def matmul(x: jax.Array, weight: jax.Array, how: Execution, contract: int = 1) -> jax.Array:
    """Contracts the last `contract` dimensions of x with the first ones of weight.

    Args:
      x: [rows..., inner...], compute dtype.
      weight: [inner..., columns...], float32; used in the dtype of x. Its gradient is float32.

    Returns:
      [rows..., columns...] in the dtype of x.
    """
    if how.uses_cpu_kernels:
        return cpu.matmul(x, weight, contract)
    inner = range(contract)
    dimensions = ((tuple(x.ndim - contract + i for i in inner), tuple(inner)), ((), ()))
    return jax.lax.dot_general(x, weight.astype(x.dtype), dimensions,
                               precision=matmul_precision(x.dtype))
