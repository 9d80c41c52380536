"""Grouped-query self-attention (arXiv:2305.13245) with RoPE, over a packed row or a KV cache."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jax.ad_checkpoint import checkpoint_name

from maxlm.config.trainer import ModelConfig
from maxlm.kernels import attention as kernels
from maxlm.kernels.matmul import matmul
from maxlm.models.parameters import Normal, declare
from maxlm.models.positions import rotate
from maxlm.parallel.rules import constrain


class LayerCache(NamedTuple):
    """Keys and values of one layer, [B, S, G, K] each, and where the next tokens of a row go.

    Attributes:
      index_BT: slot of each new token; a slot at or past S is not written.
    """

    key: jax.Array
    value: jax.Array
    index_BT: jax.Array


class Attention(nnx.Module):
    """Shape legend: B rows, T tokens, S cache slots, D width, H query heads, G key/value heads,
    K head width."""

    def __init__(self, config: ModelConfig, rngs: nnx.Rngs):
        D, H, G, K = config.embed_dim, config.num_heads, config.num_kv_heads, config.head_dim
        normal = Normal(config.init_std)
        self.implementation = config.attention
        self.query = declare(rngs, (D, H, K), ("embed", "heads", "head_dim"), normal)
        self.key = declare(rngs, (D, G, K), ("embed", "kv_heads", "head_dim"), normal)
        self.value = declare(rngs, (D, G, K), ("embed", "kv_heads", "head_dim"), normal)
        self.out = declare(rngs, (H, K, D), ("heads", "head_dim", "embed"),
                           Normal(config.init_std / (2 * config.num_layers) ** 0.5))

    def __call__(
        self,
        x_BTD: jax.Array,
        *,
        segment_ids_BT: jax.Array,
        rope: tuple[jax.Array, jax.Array],
        cache: LayerCache | None = None,
    ) -> tuple[jax.Array, LayerCache | None]:
        """The layer's output [B, T, D], and the cache with the new keys and values written."""
        def project(weight: nnx.Param, heads: str, name: str) -> jax.Array:
            y = constrain(matmul(x_BTD, weight[...]), ("batch", "length", heads, "head_dim"))
            return checkpoint_name(y, name)

        query_BTHK = rotate(project(self.query, "heads", "query"), rope)
        key_BTGK = rotate(project(self.key, "kv_heads", "key"), rope)
        value_BTGK = project(self.value, "kv_heads", "value")
        if cache is None:
            out_BTHK = kernels.IMPLEMENTATIONS[self.implementation](
                query_BTHK, key_BTGK, value_BTGK,
                query_segments_BT=segment_ids_BT, key_segments_BS=segment_ids_BT)
        else:
            cache = _write(cache, key_BTGK, value_BTGK)
            B, S = cache.key.shape[:2]
            # A cache row is one document: every slot at or before the query belongs to it.
            ones = jnp.ones((B, 1), jnp.int32)
            out_BTHK = kernels.reference(
                query_BTHK, cache.key, cache.value,
                query_segments_BT=jnp.broadcast_to(ones, query_BTHK.shape[:2]),
                key_segments_BS=jnp.broadcast_to(ones, (B, S)), query_index_BT=cache.index_BT)
        return matmul(out_BTHK, self.out[...], contract=2), cache


def _write(cache: LayerCache, key_BTGK: jax.Array, value_BTGK: jax.Array) -> LayerCache:
    rows_B1 = jnp.arange(key_BTGK.shape[0])[:, None]

    def put(slots: jax.Array, new: jax.Array) -> jax.Array:
        return slots.at[rows_B1, cache.index_BT].set(new.astype(slots.dtype), mode="drop")

    return LayerCache(put(cache.key, key_BTGK), put(cache.value, value_BTGK), cache.index_BT)
