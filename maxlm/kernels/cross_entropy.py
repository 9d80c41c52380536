"""Next-token cross-entropy in chunks of tokens: the logits of a batch never exist at once.

The gradient of a chunk is computed while its logits exist, so the backward pass does not recompute
them: three matmuls a chunk (logits, gradient of hidden, gradient of head) where
rematerialisation would take four.

Shape legend: B rows, T tokens, C tokens of a row in a chunk, D width, V vocabulary.
"""

import functools

import jax
import jax.numpy as jnp

from maxlm.kernels.cpu import cross_entropy as cpu
from maxlm.kernels.cpu.matmul import transposed
from maxlm.parallel.execution import Execution
from maxlm.precision.policy import matmul_precision


def cross_entropy(
    hidden_BTD: jax.Array,
    head_VD: jax.Array,
    targets_BT: jax.Array,
    weights_BT: jax.Array,
    chunk: int,
    how: Execution,
) -> tuple[jax.Array, jax.Array]:
    """Weighted sum of -log softmax(hidden head^T)[target], and the sum of weights.

    Args:
      hidden_BTD: output of the last norm, compute dtype; the matmuls are in this dtype.
      head_VD: float32 master weights of the output head.
      targets_BT: int32 token to predict.
      weights_BT: float32; 0 where nothing is to be predicted. Not differentiated.
      chunk: tokens on one device whose logits exist at once; at least one token of each row.

    Returns:
      (loss_sum, weight_sum), float32 scalars. The mean loss is their ratio after both have been
      summed over all microbatches and devices.
    """
    weights_BT = jax.lax.stop_gradient(weights_BT.astype(jnp.float32))
    count, arrays = _pad(hidden_BTD, targets_BT, weights_BT, chunk, how)
    return _sum(arrays[0], head_VD, *arrays[1:], count, how), arrays[2].sum()


def row_losses(
    hidden_BTD: jax.Array,
    head_VD: jax.Array,
    targets_BT: jax.Array,
    weights_BT: jax.Array,
    chunk: int,
    how: Execution,
) -> jax.Array:
    """The loss sum of `cross_entropy` row by row, float32 [B], for evaluation per source."""
    count, (hidden_BTD, targets_BT, weights_BT) = _pad(
        hidden_BTD, targets_BT, weights_BT.astype(jnp.float32), chunk, how)
    return _row_sums(hidden_BTD, head_VD, targets_BT, weights_BT, count, how)


def _pad(hidden_BTD: jax.Array, targets_BT: jax.Array, weights_BT: jax.Array,
         chunk: int, how: Execution) -> tuple[int, tuple[jax.Array, ...]]:
    """Number of chunks, and the arrays padded to a multiple of it with tokens of weight 0."""
    B, T = targets_BT.shape
    rows = max(1, B // how.parts("batch"))
    count = min(T, -(-rows * T // chunk))
    arrays = (hidden_BTD, targets_BT, weights_BT)
    if padding := -T % count:
        arrays = tuple(jnp.pad(x, ((0, 0), (0, padding)) + ((0, 0),) * (x.ndim - 2))
                       for x in arrays)
    return count, arrays


def _logits(hidden_BCD: jax.Array, head_DV: jax.Array, how: Execution) -> jax.Array:
    precision = matmul_precision(hidden_BCD.dtype)
    if how.uses_cpu_kernels:
        logits_BCV = jnp.dot(hidden_BCD.reshape(-1, hidden_BCD.shape[-1]), head_DV,
                             precision=precision, preferred_element_type=jnp.float32
                             ).reshape(*hidden_BCD.shape[:-1], -1)
    else:
        logits_BCV = jnp.dot(hidden_BCD, head_DV, precision=precision,
                             preferred_element_type=jnp.float32)
    return how.constrain(logits_BCV, "batch", "length", "vocab")


def _split(x: jax.Array, count: int) -> jax.Array:
    """[B, T, ...] as [count, B, T/count, ...]."""
    parts = x.reshape(x.shape[0], count, x.shape[1] // count, *x.shape[2:])
    return jnp.moveaxis(parts, 1, 0)


def _at_target(logits_BCV: jax.Array, targets_BC: jax.Array) -> jax.Array:
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty or mesh.size == 1:
        return jnp.take_along_axis(logits_BCV, targets_BC[..., None], -1, mode="clip")[..., 0]
    # A masked sum instead of a gather: it needs no communication where the vocabulary is split.
    return jnp.where(_is_target(targets_BC, logits_BCV.shape[-1]), logits_BCV, 0).sum(axis=-1)


def _is_target(targets_BC: jax.Array, vocabulary: int) -> jax.Array:
    return jnp.arange(vocabulary) == targets_BC[..., None]


def _token_losses(logits_BCV: jax.Array, targets_BC: jax.Array) -> tuple[jax.Array, jax.Array]:
    """-log softmax at the target, and log of the sum of exponentials, [B, C] each."""
    highest_BC = jax.lax.stop_gradient(logits_BCV.max(axis=-1))
    log_sum_BC = highest_BC + jnp.log(jnp.exp(logits_BCV - highest_BC[..., None]).sum(axis=-1))
    return log_sum_BC - _at_target(logits_BCV, targets_BC), log_sum_BC


def _row_sums(hidden_BTD, head_VD, targets_BT, weights_BT, count, how):
    head_DV = transposed(head_VD.astype(hidden_BTD.dtype))

    def chunk_loss(total_B, chunk):
        hidden_BCD, targets_BC, weights_BC = chunk
        losses_BC, _ = _token_losses(_logits(hidden_BCD, head_DV, how), targets_BC)
        return total_B + (losses_BC * weights_BC).sum(axis=1), None

    chunks = tuple(_split(x, count) for x in (hidden_BTD, targets_BT, weights_BT))
    return jax.lax.scan(chunk_loss, jnp.zeros(hidden_BTD.shape[0], jnp.float32), chunks)[0]


@functools.partial(jax.custom_vjp, nondiff_argnums=(4, 5))
def _sum(hidden_BTD, head_VD, targets_BT, weights_BT, count, how):
    return _row_sums(hidden_BTD, head_VD, targets_BT, weights_BT, count, how).sum()


def _sum_forward(hidden_BTD, head_VD, targets_BT, weights_BT, count, how):
    narrow_head_VD = head_VD.astype(hidden_BTD.dtype)
    head_DV = transposed(narrow_head_VD)

    def loss_sum(hidden_BCD, head_DV, targets_BC, weights_BC):
        logits_BCV = _logits(hidden_BCD, head_DV, how)
        losses_BC, log_sum_BC = _token_losses(logits_BCV, targets_BC)
        return (losses_BC * weights_BC).sum(), (logits_BCV, log_sum_BC)

    def add_chunk(carry, chunk):
        total, d_head_DV = carry
        hidden_BCD, targets_BC, weights_BC = chunk
        if how.uses_cpu_kernels:
            loss, (logits_BCV, log_sum_BC) = loss_sum(hidden_BCD, head_DV, targets_BC, weights_BC)
            d_hidden_BCD, d_chunk_DV = cpu.gradients(
                hidden_BCD, narrow_head_VD, logits_BCV, log_sum_BC,
                _is_target(targets_BC, logits_BCV.shape[-1]), weights_BC)
        else:
            (loss, _), (d_hidden_BCD, d_chunk_DV) = jax.value_and_grad(
                loss_sum, argnums=(0, 1), has_aux=True)(
                    hidden_BCD, head_DV, targets_BC, weights_BC)
        d_head_DV = how.constrain(d_head_DV + d_chunk_DV, "embed", "vocab")
        return (total + loss, d_head_DV), d_hidden_BCD

    chunks = tuple(_split(x, count) for x in (hidden_BTD, targets_BT, weights_BT))
    (total, d_head_DV), d_hidden = jax.lax.scan(
        add_chunk, (jnp.float32(0), jnp.zeros(head_DV.shape, jnp.float32)), chunks)
    d_hidden_BTD = jnp.moveaxis(d_hidden, 0, 1).reshape(hidden_BTD.shape)
    # XLA:CPU cannot run a bfloat16 dot with a float32 result into which a transpose is folded.
    return total, (d_hidden_BTD, jax.lax.optimization_barrier(d_head_DV).T, head_VD)


def _sum_backward(count, how, residuals, cotangent):
    d_hidden_BTD, d_head_VD, head_VD = residuals
    return ((d_hidden_BTD * cotangent).astype(d_hidden_BTD.dtype),
            (d_head_VD * cotangent).astype(head_VD.dtype), None, None)


_sum.defvjp(_sum_forward, _sum_backward)
