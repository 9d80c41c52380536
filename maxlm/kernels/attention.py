"""Causal attention with packed documents: implementations behind one signature.

A query sees the keys of its own segment at or before its own place in the row (see masks.py), so
every row of the softmax has at least one key and every output is finite. Softmax is float32. An
implementation that cannot honour an argument raises ConfigError.

Shape legend: B rows, T queries, S keys, H query heads, G key/value heads (each serves H/G query
heads), K head width.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from maxlm.kernels.blocked_attention import blocked
from maxlm.kernels.masks import MASKED, seen
from maxlm.precision.policy import matmul_precision


def reference(
    query_BTHK: jax.Array,
    key_BSGK: jax.Array,
    value_BSGK: jax.Array,
    *,
    query_segments_BT: jax.Array,
    key_segments_BS: jax.Array,
    query_index_BT: jax.Array | None = None,
) -> jax.Array:
    """Attention by the formula, all scores at once. The others are tested against it.

    Args:
      query_BTHK, key_BSGK, value_BSGK: one dtype; H is a multiple of G.
      query_segments_BT, key_segments_BS: int32 document number within the row; 0 is padding.
      query_index_BT: place of each query among the keys, int32; None when queries and keys are
        the same tokens (T = S and query t is key t).

    Returns:
      [B, T, H, K], dtype of the query.
    """
    B, T, H, K = query_BTHK.shape
    G = key_BSGK.shape[2]
    query_index = jnp.arange(T) if query_index_BT is None else query_index_BT
    precision = matmul_precision(query_BTHK.dtype)
    query_BTGRK = query_BTHK.reshape(B, T, G, H // G, K)
    scores_BGRTS = jnp.einsum("BTGRK,BSGK->BGRTS", query_BTGRK, key_BSGK, precision=precision,
                              preferred_element_type=jnp.float32) * (K**-0.5)
    seen_BTS = seen(query_segments_BT, key_segments_BS, query_index)
    scores_BGRTS = jnp.where(seen_BTS[:, None, None], scores_BGRTS, MASKED)
    weights_BGRTS = jax.nn.softmax(scores_BGRTS, axis=-1).astype(value_BSGK.dtype)
    out_BTGRK = jnp.einsum("BGRTS,BSGK->BTGRK", weights_BGRTS, value_BSGK, precision=precision)
    return out_BTGRK.reshape(B, T, H, K)


IMPLEMENTATIONS: dict[str, Callable[..., jax.Array]] = {
    "blocked": blocked,
    "reference": reference,
}
