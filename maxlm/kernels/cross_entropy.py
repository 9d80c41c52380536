"""Next-token cross-entropy in chunks of tokens: the logits of a batch never exist at once.

The gradient of a chunk is computed while its logits exist, so the backward pass does not recompute
them: three matmuls a chunk (logits, gradient of hidden, gradient of head) where
rematerialisation would take four.

Each device goes through its own tokens: the head is gathered once, before the first chunk, and the
devices add their gradients of it once, after the last.

Shape legend: B rows, T tokens, C tokens of a row in a chunk, D width, V vocabulary.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from maxlm.kernels.cpu import cross_entropy as cpu
from maxlm.kernels.cpu.matmul import transposed
from maxlm.parallel.execution import Execution
from maxlm.parallel.rules import mesh_axes
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
    return _sum(hidden_BTD, head_VD, targets_BT, weights_BT, chunk, how), weights_BT.sum()


def row_losses(
    hidden_BTD: jax.Array,
    head_VD: jax.Array,
    targets_BT: jax.Array,
    weights_BT: jax.Array,
    chunk: int,
    how: Execution,
) -> jax.Array:
    """The loss sum of `cross_entropy` row by row, float32 [B], for evaluation per source."""
    def local(axes, how, hidden_BTD, head_VD, targets_BT, weights_BT):
        head_DV = transposed(head_VD)

        def add_chunk(total_B, chunk):
            hidden_BCD, targets_BC, weights_BC = chunk
            losses_BC, _ = _token_losses(_logits(hidden_BCD, head_DV, how), targets_BC, how)
            return total_B + (losses_BC * weights_BC).sum(axis=1), None

        chunks = _chunks(chunk, hidden_BTD, targets_BT, weights_BT)
        losses_B, _ = jax.lax.scan(
            add_chunk, jnp.zeros(hidden_BTD.shape[0], jnp.float32), chunks)
        return jax.lax.psum(losses_B, axes.length) if axes.length else losses_B

    return _on_each_device(local, how, lambda axes: PartitionSpec(axes.batch or None))(
        hidden_BTD, head_VD.astype(hidden_BTD.dtype), targets_BT,
        weights_BT.astype(jnp.float32))


@dataclasses.dataclass(frozen=True)
class _Axes:
    """Mesh axes that the tokens are split over, and those of them that the head is split over."""

    batch: tuple[str, ...] = ()
    length: tuple[str, ...] = ()
    embed: tuple[str, ...] = ()


def _on_each_device(local: Callable[..., Any], how: Execution, outputs: Callable[[_Axes], Any]
                    ) -> Callable[..., Any]:
    """local(axes, how, hidden, head, targets, weights) on the tokens of each device and the whole
    width of the head; the vocabulary stays split as the rules say."""
    mesh = jax.sharding.get_abstract_mesh()
    if how.parts("batch") * how.parts("length") == 1:
        return functools.partial(local, _Axes(), how)
    batch, length, embed = (mesh_axes(name, how.rules) for name in ("batch", "length", "embed"))
    split = {*batch, *length}
    axes = _Axes(batch, length, tuple(axis for axis in embed if axis in split))
    rest = tuple(axis for axis in embed if axis not in split)
    inside = dataclasses.replace(
        how, rules=(("batch", None), ("length", None), ("embed", rest), *how.rules))
    tokens = PartitionSpec(batch or None, length or None)
    # `local` adds over the devices itself: JAX's check of how values vary over the mesh is off.
    return jax.shard_map(
        functools.partial(local, axes, inside), mesh=mesh, axis_names=split,
        in_specs=(tokens, PartitionSpec(), tokens, tokens), out_specs=outputs(axes),
        check_vma=False)


def _chunks(chunk: int, *arrays: jax.Array) -> tuple[jax.Array, ...]:
    """Arrays [B, T, ...] as [chunks, B, C, ...], the last chunk filled with zeros."""
    B, T = arrays[0].shape[:2]
    count = min(T, -(-B * T // chunk))
    padding = -T % count

    def split(x: jax.Array) -> jax.Array:
        if padding:
            x = jnp.pad(x, ((0, 0), (0, padding)) + ((0, 0),) * (x.ndim - 2))
        return jnp.moveaxis(x.reshape(B, count, -1, *x.shape[2:]), 1, 0)

    return tuple(map(split, arrays))


def _logits(hidden_BCD: jax.Array, head_DV: jax.Array, how: Execution) -> jax.Array:
    if how.uses_cpu_kernels:
        logits_BCV = jnp.dot(
            hidden_BCD.reshape(-1, hidden_BCD.shape[-1]), head_DV,
            precision=matmul_precision(hidden_BCD.dtype), preferred_element_type=jnp.float32
        ).reshape(*hidden_BCD.shape[:-1], -1)
    else:
        logits_BCV = _dot(hidden_BCD, head_DV)
    return how.constrain(logits_BCV, "batch", "length", "vocab")


@jax.custom_vjp
def _dot(hidden_BCD: jax.Array, head_DV: jax.Array) -> jax.Array:
    """float32. The gradient of the logits goes into the matmuls in the dtype of the operands: with
    the float32 that differentiation gives they would take several passes of the matrix unit."""
    return jnp.dot(hidden_BCD, head_DV, precision=matmul_precision(hidden_BCD.dtype),
                   preferred_element_type=jnp.float32)


def _dot_backward(operands, d_logits_BCV):
    hidden_BCD, head_DV = operands
    d_logits_BCV = d_logits_BCV.astype(hidden_BCD.dtype)
    precision = matmul_precision(hidden_BCD.dtype)
    d_hidden_BCD = jax.lax.dot_general(d_logits_BCV, head_DV, (((2,), (1,)), ((), ())),
                                       precision=precision)
    d_head_DV = jax.lax.dot_general(hidden_BCD, d_logits_BCV, (((0, 1), (0, 1)), ((), ())),
                                    precision=precision, preferred_element_type=jnp.float32)
    return d_hidden_BCD, d_head_DV


_dot.defvjp(lambda hidden, head: (_dot(hidden, head), (hidden, head)), _dot_backward)


def _at_target(logits_BCV: jax.Array, targets_BC: jax.Array, how: Execution) -> jax.Array:
    if how.parts("vocab") == 1:
        return jnp.take_along_axis(logits_BCV, targets_BC[..., None], -1, mode="clip")[..., 0]
    # A masked sum instead of a gather: it needs no communication where the vocabulary is split.
    return jnp.where(_is_target(targets_BC, logits_BCV.shape[-1]), logits_BCV, 0).sum(axis=-1)


def _is_target(targets_BC: jax.Array, vocabulary: int) -> jax.Array:
    return jnp.arange(vocabulary) == targets_BC[..., None]


def _token_losses(logits_BCV: jax.Array, targets_BC: jax.Array, how: Execution
                  ) -> tuple[jax.Array, jax.Array]:
    """-log softmax at the target, and log of the sum of exponentials, [B, C] each."""
    highest_BC = jax.lax.stop_gradient(logits_BCV.max(axis=-1))
    log_sum_BC = highest_BC + jnp.log(jnp.exp(logits_BCV - highest_BC[..., None]).sum(axis=-1))
    return log_sum_BC - _at_target(logits_BCV, targets_BC, how), log_sum_BC


@functools.partial(jax.custom_vjp, nondiff_argnums=(4, 5))
def _sum(hidden_BTD, head_VD, targets_BT, weights_BT, chunk, how):
    return row_losses(hidden_BTD, head_VD, targets_BT, weights_BT, chunk, how).sum()


def _sum_forward(hidden_BTD, head_VD, targets_BT, weights_BT, chunk, how):
    def local(axes, how, hidden_BTD, head_VD, targets_BT, weights_BT):
        head_DV = transposed(head_VD)

        def loss_sum(hidden_BCD, head_DV, targets_BC, weights_BC):
            logits_BCV = _logits(hidden_BCD, head_DV, how)
            losses_BC, log_sum_BC = _token_losses(logits_BCV, targets_BC, how)
            return (losses_BC * weights_BC).sum(), (logits_BCV, log_sum_BC)

        def add_chunk(carry, chunk):
            total, d_head_DV = carry
            hidden_BCD, targets_BC, weights_BC = chunk
            if how.uses_cpu_kernels:
                loss, (logits_BCV, log_sum_BC) = loss_sum(
                    hidden_BCD, head_DV, targets_BC, weights_BC)
                d_hidden_BCD, d_chunk_DV = cpu.gradients(
                    hidden_BCD, head_VD, logits_BCV, log_sum_BC,
                    _is_target(targets_BC, logits_BCV.shape[-1]), weights_BC)
            else:
                (loss, _), (d_hidden_BCD, d_chunk_DV) = jax.value_and_grad(
                    loss_sum, argnums=(0, 1), has_aux=True)(
                        hidden_BCD, head_DV, targets_BC, weights_BC)
            d_head_DV = how.constrain(d_head_DV + d_chunk_DV, "embed", "vocab")
            return (total + loss, d_head_DV), d_hidden_BCD

        chunks = _chunks(chunk, hidden_BTD, targets_BT, weights_BT)
        (total, d_head_DV), d_hidden = jax.lax.scan(
            add_chunk, (jnp.float32(0), jnp.zeros(head_DV.shape, jnp.float32)), chunks)
        B, T, D = hidden_BTD.shape
        d_hidden_BTD = jnp.moveaxis(d_hidden, 0, 1).reshape(B, -1, D)[:, :T]
        if axes.batch or axes.length:
            total = jax.lax.psum(total, (*axes.batch, *axes.length))
            d_head_DV = d_head_DV.astype(jnp.promote_types(how.precision.gradients, how.dtype))
            if axes.embed:
                d_head_DV = jax.lax.psum_scatter(d_head_DV, axes.embed, tiled=True)
            if others := tuple(a for a in (*axes.batch, *axes.length) if a not in axes.embed):
                d_head_DV = jax.lax.psum(d_head_DV, others)
            # Without the barrier XLA delays the sum to the end of the layers' backward pass, and
            # each device holds the whole gradient until then.
            d_hidden_BTD, d_head_DV = jax.lax.optimization_barrier((d_hidden_BTD, d_head_DV))
        return total, d_hidden_BTD, d_head_DV

    total, d_hidden_BTD, d_head_DV = _on_each_device(
        local, how, lambda axes: (PartitionSpec(), PartitionSpec(axes.batch or None,
                                                                 axes.length or None),
                                  PartitionSpec(axes.embed or None)))(
        hidden_BTD, head_VD.astype(hidden_BTD.dtype), targets_BT, weights_BT)
    # XLA:CPU cannot run a bfloat16 dot with a float32 result into which a transpose is folded.
    return total, (d_hidden_BTD, jax.lax.optimization_barrier(d_head_DV).T, head_VD)


def _sum_backward(chunk, how, residuals, cotangent):
    d_hidden_BTD, d_head_VD, head_VD = residuals
    return ((d_hidden_BTD * cotangent).astype(d_hidden_BTD.dtype),
            (d_head_VD * cotangent).astype(head_VD.dtype), None, None)


_sum.defvjp(_sum_forward, _sum_backward)
