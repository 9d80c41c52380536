"""Which dtype each part of a step is computed in.

Master weights, their gradients and the optimizer are float32. Matmul inputs and the activations
between them have the compute dtype. Norms, softmax and the loss are always float32.
"""

from typing import Any

import jax
import jax.numpy as jnp


def matmul_precision(dtype: Any) -> jax.lax.Precision:
    """Precision of a matmul with inputs of this dtype.

    TPUs and GPUs by default multiply float32 inputs in bfloat16 or TF32; here float32 means
    float32.
    """
    return jax.lax.Precision.HIGHEST if dtype == jnp.float32 else jax.lax.Precision.DEFAULT
