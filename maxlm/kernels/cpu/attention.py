"""Causal attention in blocks of queries, for XLA on CPU: keys above the diagonal block are never
touched, and the T x T scores never exist.

The forward pass keeps only the output and the log of each softmax sum; the backward pass computes
the scores of a block again (as FlashAttention does, arXiv:2205.14135, equations of its appendix B).
Rows of the batch are taken one at a time (one per device where the batch is split), so that the
scores of a block stay in cache. Numbers in docs/benchmarks.md.

Shape legend: B rows of the batch, T tokens, H query heads, G key/value heads, R = H/G query heads
of each, K head width, Q queries of a block, S keys up to the end of the block; M = R * Q.
"""

import functools

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from maxlm.kernels.cpu.matmul import materialize
from maxlm.kernels.description import AttentionDescription, AttentionInputs
from maxlm.kernels.masks import MASKED, segment_starts
from maxlm.parallel.execution import Execution
from maxlm.precision.policy import matmul_precision

BLOCK = 128  # queries; 64 and 256 were slower


class Blocked:
    """Causal rows of whole documents in blocks of queries, with or without a window."""

    def lacks(self, description: AttentionDescription, inputs: AttentionInputs) -> str | None:
        if not description.causal:
            return "computes causal attention only"
        if description.logit_cap is not None or description.alibi:
            return "has no logit cap and no ALiBi"
        if description.segment_bias is not None:
            return "never lets documents see each other (segment_bias)"
        return None

    def __call__(self, query_BTHK: jax.Array, key_BTGK: jax.Array, value_BTGK: jax.Array,
                 segments_BT: jax.Array, description: AttentionDescription, how: Execution
                 ) -> jax.Array:
        # The first key that each query sees.
        starts_BT = segment_starts(segments_BT)
        B, T, H, K = query_BTHK.shape
        if description.window is not None:
            starts_BT = jnp.maximum(starts_BT, jnp.arange(T) - (description.window - 1))
        G = key_BTGK.shape[2]
        turn = how.parts("batch")
        if B % turn:
            turn = B

        def by_turn(x_B: jax.Array) -> jax.Array:
            # Row i goes to turn i mod (B / turn): each device takes rows that it already holds.
            return x_B.reshape(turn, B // turn, *x_B.shape[1:]).swapaxes(0, 1)

        query_BGRTK = query_BTHK.reshape(B, T, G, H // G, K).transpose(0, 2, 3, 1, 4)
        out: jax.Array = _turns(description.scale_of(K), *(by_turn(x) for x in (
            query_BGRTK, key_BTGK.swapaxes(1, 2), value_BTGK.swapaxes(1, 2), starts_BT)))
        out_BGRTK = out.swapaxes(0, 1).reshape(query_BGRTK.shape)
        return out_BGRTK.transpose(0, 3, 1, 2, 4).reshape(B, T, H, K)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _turns(scale, query, key, value, starts):
    return _turns_forward(scale, query, key, value, starts)[0]


def _turns_forward(scale, query, key, value, starts):
    forward = functools.partial(_forward, scale)
    out, log_sum = jax.lax.map(lambda turn: _each_row(forward, turn), (query, key, value, starts))
    out = checkpoint_name(out, "attention")
    log_sum = checkpoint_name(log_sum, "attention_log_sum")
    return out, (query, key, value, starts, out, log_sum)


def _turns_backward(scale, residuals, d_out):
    backward = functools.partial(_backward, scale)
    d_query_GKRT, d_key, d_value = jax.lax.map(
        lambda turn: _each_row(backward, turn), (*residuals, d_out))
    return jnp.moveaxis(d_query_GKRT, -3, -1), d_key, d_value, None


_turns.defvjp(_turns_forward, _turns_backward)


def _each_row(function, arrays):
    if arrays[0].shape[0] == 1:  # what vmap would do, but for axes of size 1 that slow XLA:CPU
        return jax.tree.map(lambda x: x[None], function(*(x[0] for x in arrays)))
    return jax.vmap(function)(*arrays)


def _blocks(T: int) -> list[tuple[int, int]]:
    return [(start, min(T, start + BLOCK)) for start in range(0, T, BLOCK)]


def _dot(a: jax.Array, b: jax.Array, axes: tuple[int, int], dtype=jnp.float32) -> jax.Array:
    """Matmul of [G, ., .] and [G, ., .] for each of G, contracting these axes."""
    return jax.lax.dot_general(a, b, (((axes[0],), (axes[1],)), ((0,), (0,))),
                               precision=matmul_precision(a.dtype), preferred_element_type=dtype)


def _seen(starts_T, start: int, stop: int) -> jax.Array:
    """Whether queries start..stop see keys 0..stop: [Q, S]."""
    key_index_S, query_index_Q1 = jnp.arange(stop), jnp.arange(start, stop)[:, None]
    return (key_index_S <= query_index_Q1) & (key_index_S >= starts_T[start:stop, None])


def _forward(scale, query_GRTK, key_GTK, value_GTK, starts_T):
    """Output [G, R, T, K], and log of the softmax sums [G, R, T, 1], float32, of one row."""
    G, R, T, K = query_GRTK.shape
    dtype = query_GRTK.dtype
    outs, log_sums = [], []
    for start, stop in _blocks(T):
        query_GMK = query_GRTK[:, :, start:stop].reshape(G, -1, K)
        scores_GMS = jnp.where(jnp.tile(_seen(starts_T, start, stop), (R, 1)),
                               _dot(query_GMK, key_GTK[:, :stop], (2, 2)) * scale, MASKED)
        highest_GM1 = scores_GMS.max(axis=-1, keepdims=True)
        weights_GMS = jnp.exp(scores_GMS - highest_GM1)
        sum_GM1 = weights_GMS.sum(axis=-1, keepdims=True)
        out_GMK = _dot(weights_GMS.astype(dtype), value_GTK[:, :stop], (2, 1)) / sum_GM1
        outs.append(out_GMK.astype(dtype).reshape(G, R, -1, K))
        log_sums.append((highest_GM1 + jnp.log(sum_GM1)).reshape(G, R, -1, 1))
    return jnp.concatenate(outs, axis=2), jnp.concatenate(log_sums, axis=2)


def _backward(scale, query_GRTK, key_GTK, value_GTK, starts_T, out_GRTK, log_sum_GRT1,
              d_out_GRTK):
    """Gradients of query, as [G, K, R, T], key and value of one row, in their dtype.

    Scores are stored keys first, [G, S, M], and the keys are also stored transposed. Each matmul
    but the two of the scores is then rows by columns, which is twice as fast.
    """
    G, R, T, K = query_GRTK.shape
    dtype = query_GRTK.dtype
    key_GKT = materialize(key_GTK.swapaxes(1, 2)) if G > 1 else key_GTK.swapaxes(1, 2)
    delta_GRT1 = (out_GRTK.astype(jnp.float32) * d_out_GRTK.astype(jnp.float32)).sum(
        axis=-1, keepdims=True)
    d_query = []
    d_key_GTK = jnp.zeros((G, T, K), jnp.float32)
    d_value_GTK = jnp.zeros((G, T, K), jnp.float32)
    for start, stop in _blocks(T):
        query_GMK, d_out_GMK = (x[:, :, start:stop].reshape(G, -1, K)
                                for x in (query_GRTK, d_out_GRTK))
        log_sum_G1M, delta_G1M = (x[:, :, start:stop].reshape(G, 1, -1)
                                  for x in (log_sum_GRT1, delta_GRT1))
        seen_SM = jnp.tile(_seen(starts_T, start, stop).T, (1, R))
        scores_GSM = jnp.where(seen_SM, _dot(key_GTK[:, :stop], query_GMK, (2, 2)) * scale,
                               MASKED)
        weights_GSM = jnp.exp(scores_GSM - log_sum_G1M)
        d_weights_GSM = _dot(value_GTK[:, :stop], d_out_GMK, (2, 2))
        d_scores_GSM = (weights_GSM * (d_weights_GSM - delta_G1M) * scale).astype(dtype)
        d_query.append(_dot(key_GKT[:, :, :stop], d_scores_GSM, (2, 1), dtype).reshape(G, K, R, -1))
        d_key_GTK = d_key_GTK.at[:, :stop].add(_dot(d_scores_GSM, query_GMK, (2, 1)))
        d_value_GTK = d_value_GTK.at[:, :stop].add(
            _dot(weights_GSM.astype(dtype), d_out_GMK, (2, 1)))
    return jnp.concatenate(d_query, axis=-1), d_key_GTK.astype(dtype), d_value_GTK.astype(dtype)
