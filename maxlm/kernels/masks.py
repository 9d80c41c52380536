"""Who sees whom in a packed row."""

import jax
import jax.numpy as jnp

# Score of a key that is not seen. Finite, so that no row can become NaN; its exponential is exactly
# 0 because each query sees at least itself.
MASKED = -1e30


def seen(query_segments_BT: jax.Array, key_segments_BS: jax.Array,
         query_index: jax.Array) -> jax.Array:
    """Whether a query sees a key: same segment, and not after it in the row.

    Args:
      query_segments_BT, key_segments_BS: int32 document number within the row; 0 is padding, which
        sees other padding.
      query_index: place of each query among the keys, [T] or [B, T].

    Returns:
      bool [B, T, S].
    """
    same_BTS = query_segments_BT[:, :, None] == key_segments_BS[:, None, :]
    return same_BTS & (jnp.arange(key_segments_BS.shape[1]) <= query_index[..., None])
