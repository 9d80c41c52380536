"""Splash attention on TPU: JAX's Pallas kernel, which skips blocks of scores that nothing sees.

Shape legend: B rows, T tokens, H query heads, G key/value heads, K head width.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.splash_attention import (
    splash_attention_kernel,
    splash_attention_mask,
)

from maxlm.kernels.description import AttentionDescription, AttentionInputs
from maxlm.kernels.sharded import by_rows_and_heads
from maxlm.parallel.execution import Execution

# Tokens of a block of queries and of keys, the largest that divides the row; MaxText's default too.
BLOCKS = (512, 256, 128)


class Splash:
    """Rows of whole documents, causal or not, with a window and a logit cap."""

    def lacks(self, description: AttentionDescription, inputs: AttentionInputs) -> str | None:
        if inputs.platform != "tpu":
            return "runs on TPU only"
        if description.alibi:
            return "has no ALiBi"
        if description.segment_bias is not None:
            return "never lets documents see each other (segment_bias)"
        if inputs.length % BLOCKS[-1]:
            return f"needs rows of a multiple of {BLOCKS[-1]} tokens (data.sequence_length)"
        if inputs.head_dim % 128 and inputs.head_dim != 64:
            return "needs heads of 64 or a multiple of 128 (model.head_dim)"
        return None

    def __call__(self, query_BTHK: jax.Array, key_BTGK: jax.Array, value_BTGK: jax.Array,
                 segments_BT: jax.Array, description: AttentionDescription, how: Execution
                 ) -> jax.Array:
        # The kernel has no factor for the scores.
        scaled_BTHK = (query_BTHK.astype(jnp.float32) * description.scale_of(query_BTHK.shape[-1])
                       ).astype(query_BTHK.dtype)

        def local(query_BTHK: jax.Array, key_BTGK: jax.Array, value_BTGK: jax.Array,
                  segments_BT: jax.Array) -> jax.Array:
            _, T, H, _ = query_BTHK.shape
            kernel = _kernel(T, H, description, how.platform != "tpu")
            out_BHTK: Any = jax.vmap(lambda query, key, value, segments: kernel(
                query, key, value, segment_ids=splash_attention_kernel.SegmentIds(
                    q=segments, kv=segments)))(
                        query_BTHK.swapaxes(1, 2), key_BTGK.swapaxes(1, 2),
                        value_BTGK.swapaxes(1, 2), segments_BT)
            return out_BHTK.swapaxes(1, 2)

        return by_rows_and_heads(local, scaled_BTHK, key_BTGK, value_BTGK, segments_BT, how)


def _kernel(length: int, heads: int, description: AttentionDescription, interpret: bool):
    mask = splash_attention_mask
    shape = (length, length)
    if description.window is None:
        one = mask.CausalMask(shape) if description.causal else mask.FullMask(shape)
    else:
        back = description.window - 1
        one = mask.LocalMask(shape, (back, 0 if description.causal else back), 0)
    block = next(size for size in BLOCKS if length % size == 0)
    sizes = splash_attention_kernel.BlockSizes(**dict.fromkeys((
        "block_q", "block_kv", "block_kv_compute", "block_q_dkv", "block_kv_dkv",
        "block_kv_dkv_compute", "block_q_dq", "block_kv_dq"), block))
    return splash_attention_kernel.make_splash_mha(
        mask.MultiHeadMask([one] * heads), block_sizes=sizes, head_shards=1, q_seq_shards=1,
        attn_logits_soft_cap=description.logit_cap, interpret=interpret,
        # Saved by the remat policy "dots", as the outputs of the matmuls are.
        residual_checkpoint_name="attention")
