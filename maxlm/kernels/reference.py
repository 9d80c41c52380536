"""Attention by the formula, all scores at once: what the other kernels are tested against.

Shape legend: B rows, T queries, S keys, H query heads, G key/value heads (each serves H/G query
heads), K head width.
"""

import jax
import jax.numpy as jnp

from maxlm.kernels.description import AttentionDescription, AttentionInputs, alibi_slopes
from maxlm.kernels.masks import MASKED, distance, seen
from maxlm.parallel.execution import Execution
from maxlm.precision.policy import matmul_precision


def attend(
    query_BTHK: jax.Array,
    key_BSGK: jax.Array,
    value_BSGK: jax.Array,
    query_segments_BT: jax.Array,
    key_segments_BS: jax.Array,
    query_index: jax.Array,
    description: AttentionDescription,
) -> jax.Array:
    """The output [B, T, H, K], dtype of the query.

    Args:
      query_BTHK, key_BSGK, value_BSGK: one dtype; H is a multiple of G.
      query_segments_BT, key_segments_BS: int32 document number within the row; 0 is padding.
      query_index: place of each query among the keys, int32 [T] or [B, T].
    """
    B, T, H, K = query_BTHK.shape
    G = key_BSGK.shape[2]
    precision = matmul_precision(query_BTHK.dtype)
    query_BTGRK = query_BTHK.reshape(B, T, G, H // G, K)
    scores_BGRTS = jnp.einsum("BTGRK,BSGK->BGRTS", query_BTGRK, key_BSGK, precision=precision,
                              preferred_element_type=jnp.float32) * description.scale_of(K)
    if description.logit_cap is not None:
        scores_BGRTS = description.logit_cap * jnp.tanh(scores_BGRTS / description.logit_cap)
    if description.alibi:
        slopes_GR11 = jnp.array(alibi_slopes(H), jnp.float32).reshape(G, H // G, 1, 1)
        away = jnp.abs(distance(query_index, key_BSGK.shape[1]))
        scores_BGRTS -= slopes_GR11 * away[..., None, None, :, :]
    if description.segment_bias is not None:
        same_BTS = query_segments_BT[:, :, None] == key_segments_BS[:, None, :]
        scores_BGRTS += jnp.where(same_BTS, 0, description.segment_bias)[:, None, None]
    seen_BTS = seen(query_segments_BT, key_segments_BS, query_index, description)
    scores_BGRTS = jnp.where(seen_BTS[:, None, None], scores_BGRTS, MASKED)
    weights_BGRTS = jax.nn.softmax(scores_BGRTS, axis=-1).astype(value_BSGK.dtype)
    out_BTGRK = jnp.einsum("BGRTS,BSGK->BTGRK", weights_BGRTS, value_BSGK, precision=precision)
    return out_BTGRK.reshape(B, T, H, K)


class Reference:
    """Any description, dtype, head width and platform; memory grows with the square of the length.
    """

    def lacks(self, description: AttentionDescription, inputs: AttentionInputs) -> str | None:
        return None

    def __call__(self, query_BTHK: jax.Array, key_BTGK: jax.Array, value_BTGK: jax.Array,
                 segments_BT: jax.Array, description: AttentionDescription, how: Execution
                 ) -> jax.Array:
        return attend(query_BTHK, key_BTGK, value_BTGK, segments_BT, segments_BT,
                      jnp.arange(query_BTHK.shape[1]), description)
