"""Grouped-query self-attention (arXiv:2305.13245), over a packed row or a KV cache."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jax.ad_checkpoint import checkpoint_name

from maxlm.config.trainer import BlockConfig, ModelConfig
from maxlm.kernels import reference
from maxlm.kernels.attention import KERNELS
from maxlm.kernels.description import AttentionDescription
from maxlm.kernels.matmul import matmul
from maxlm.models.parameters import Normal, declare
from maxlm.models.positions import POSITIONS, positions_of
from maxlm.parallel.execution import Execution


class LayerCache(NamedTuple):
    """Keys and values of one layer, [B, S, G, K] each, and where the next tokens of a row go.

    Attributes:
      index_BT: slot of each new token; a slot at or past S is not written.
    """

    key: jax.Array
    value: jax.Array
    index_BT: jax.Array


class Tokens(NamedTuple):
    """What every layer knows of the tokens of its rows.

    Attributes:
      segment_ids_BT: int32 document number within the row; 0 is padding.
      positions: tables of `maxlm.models.positions`.
    """

    segment_ids_BT: jax.Array
    positions: Any


def describe(config: ModelConfig, block: BlockConfig) -> AttentionDescription:
    """What attention computes in blocks of this kind."""
    return AttentionDescription(
        window=block.window, logit_cap=config.logit_cap, segment_bias=config.segment_bias,
        alibi=POSITIONS[config.positions].alibi, scale=config.attention_scale)


class Attention(nnx.Module):
    """Shape legend: B rows, T tokens, S cache slots, D width, H query heads, G key/value heads,
    K head width."""

    def __init__(self, config: ModelConfig, block: BlockConfig, rngs: nnx.Rngs):
        D, H, G, K = config.embed_dim, config.num_heads, config.num_kv_heads, config.head_dim
        normal = Normal(config.init_std)
        self.description = describe(config, block)
        self.positions = positions_of(config)
        self.query = declare(rngs, (D, H, K), ("embed", "heads", "head_dim"), normal)
        self.key = declare(rngs, (D, G, K), ("embed", "kv_heads", "head_dim"), normal)
        self.value = declare(rngs, (D, G, K), ("embed", "kv_heads", "head_dim"), normal)
        self.out = declare(rngs, (H, K, D), ("heads", "head_dim", "embed"),
                           Normal(config.init_std / (2 * config.num_layers) ** 0.5))

    def __call__(self, x_BTD: jax.Array, tokens: Tokens, how: Execution,
                 cache: LayerCache | None = None) -> tuple[jax.Array, LayerCache | None]:
        """The layer's output [B, T, D], and the cache with the new keys and values written."""
        def project(weight: nnx.Param, heads: str, name: str) -> jax.Array:
            y = how.constrain(matmul(x_BTD, weight[...], how), "batch", "length", heads, "head_dim")
            return checkpoint_name(y, name)

        query_BTHK = self.positions.rotate(project(self.query, "heads", "query"), tokens.positions)
        key_BTGK = self.positions.rotate(project(self.key, "kv_heads", "key"), tokens.positions)
        value_BTGK = project(self.value, "kv_heads", "value")
        if cache is None:
            out_BTHK = KERNELS[how.attention](query_BTHK, key_BTGK, value_BTGK,
                                              tokens.segment_ids_BT, self.description, how)
        else:
            cache = _write(cache, key_BTGK, value_BTGK)
            # A cache row is one document: every slot at or before the query belongs to it.
            out_BTHK = reference.attend(
                query_BTHK, cache.key, cache.value,
                jnp.ones(query_BTHK.shape[:2], jnp.int32), jnp.ones(cache.key.shape[:2], jnp.int32),
                cache.index_BT, self.description)
        return matmul(out_BTHK, self.out[...], how, contract=2), cache


def _write(cache: LayerCache, key_BTGK: jax.Array, value_BTGK: jax.Array) -> LayerCache:
    rows_B1 = jnp.arange(key_BTGK.shape[0])[:, None]

    def put(slots: jax.Array, new: jax.Array) -> jax.Array:
        return slots.at[rows_B1, cache.index_BT].set(new.astype(slots.dtype), mode="drop")

    return LayerCache(put(cache.key, key_BTGK), put(cache.value, value_BTGK), cache.index_BT)
