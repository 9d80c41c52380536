"""Which keys each query sees in a packed row."""

import jax
import jax.numpy as jnp

from maxlm.kernels.description import AttentionDescription

# Score of a key that is not seen. Finite, so that no row can become NaN; its exponential is exactly
# 0 because each query sees at least itself.
MASKED = -1e30


def distance(query_index: jax.Array, keys: int) -> jax.Array:
    """Place of each query less that of each key: [T, S] or [B, T, S]."""
    return query_index[..., None] - jnp.arange(keys)


def seen(query_segments_BT: jax.Array, key_segments_BS: jax.Array, query_index: jax.Array,
         description: AttentionDescription) -> jax.Array:
    """Whether a query sees a key.

    Args:
      query_segments_BT, key_segments_BS: int32 document number within the row; 0 is padding, which
        sees other padding.
      query_index: place of each query among the keys, [T] or [B, T].

    Returns:
      bool [B, T, S].
    """
    away = distance(query_index, key_segments_BS.shape[1])
    near = jnp.ones(away.shape, bool)
    if description.causal:
        near &= away >= 0
    if description.window is not None:
        near &= jnp.abs(away) < description.window
    if description.segment_bias is not None:
        return jnp.broadcast_to(near, (*query_segments_BT.shape, key_segments_BS.shape[1]))
    return near & (query_segments_BT[:, :, None] == key_segments_BS[:, None, :])


def segment_starts(segments_BT: jax.Array) -> jax.Array:
    """Where in the row the segment of each token starts, int32 [B, T].

    A token sees the tokens from there up to itself. In packed rows, whose documents are contiguous,
    this is the mask of `seen`, but it compares positions only, which XLA:CPU can vectorize.
    """
    before_BT = jnp.pad(segments_BT, ((0, 0), (1, 0)), constant_values=-1)[:, :-1]
    index_T = jnp.arange(segments_BT.shape[1], dtype=jnp.int32)
    return jax.lax.cummax(jnp.where(segments_BT != before_BT, index_T, 0), axis=1)
