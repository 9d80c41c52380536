"""Gradients of a chunk of the cross-entropy on the CPU, by hand."""

import jax
import jax.numpy as jnp

from maxlm.kernels.cpu.matmul import transposed
from maxlm.precision.policy import matmul_precision


def gradients(hidden_BCD: jax.Array, head_VD: jax.Array, logits_BCV: jax.Array,
              log_sum_BC: jax.Array, is_target_BCV: jax.Array, weights_BC: jax.Array
              ) -> tuple[jax.Array, jax.Array]:
    """Gradients of the loss sum of a chunk of C tokens of B rows: of hidden [B, C, D] and, in
    float32, of the transposed head [D, V].

    Args:
      hidden_BCD, head_VD: compute dtype, in which the matmuls are.
      logits_BCV, log_sum_BC: float32, the logits and the log of the sum of their exponentials.
      is_target_BCV: bool.
      weights_BC: float32.
    """
    precision = matmul_precision(hidden_BCD.dtype)
    d_logits_BCV = (jnp.exp(logits_BCV - log_sum_BC[..., None]) - is_target_BCV) * (
        weights_BC[..., None])
    d_logits_NV = d_logits_BCV.astype(hidden_BCD.dtype).reshape(-1, d_logits_BCV.shape[-1])
    d_hidden_ND = jnp.dot(d_logits_NV, head_VD, precision=precision)
    hidden_DN = transposed(hidden_BCD.reshape(d_hidden_ND.shape))
    d_head_DV = jnp.dot(hidden_DN, d_logits_NV, precision=precision,
                        preferred_element_type=jnp.float32)
    return d_hidden_ND.reshape(hidden_BCD.shape), d_head_DV
