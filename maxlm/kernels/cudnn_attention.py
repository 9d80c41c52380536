"""cuDNN's flash attention on NVIDIA GPUs, through `jax.nn.dot_product_attention`."""

import ctypes.util
import importlib.util

import jax
import jax.numpy as jnp

from maxlm.kernels.description import AttentionDescription, AttentionInputs
from maxlm.kernels.masks import seen
from maxlm.kernels.sharded import by_rows_and_heads
from maxlm.parallel.execution import Execution


class CuDNN:
    """Rows of documents in bfloat16, causal or not, with a window.

    Shape legend: B rows, T tokens, H query heads, G key/value heads, K head width.
    """

    def lacks(self, description: AttentionDescription, inputs: AttentionInputs) -> str | None:
        if inputs.platform != "gpu":
            return "runs on NVIDIA GPUs only"
        if inputs.dtype != "bfloat16":
            return "computes in bfloat16 only (precision.compute)"
        if description.logit_cap is not None or description.alibi:
            return "has no logit cap and no ALiBi"
        if description.segment_bias is not None:
            return "never lets documents see each other (segment_bias)"
        if inputs.head_dim % 8 or inputs.head_dim > 128:
            return "needs heads of a multiple of 8 up to 128 (model.head_dim)"
        if inputs.length % 64:
            return "needs rows of a multiple of 64 tokens (data.sequence_length)"
        if not installed():
            return "needs cuDNN, which is not installed (pip install 'jax[cuda12]')"
        return None

    def __call__(self, query_BTHK: jax.Array, key_BTGK: jax.Array, value_BTGK: jax.Array,
                 segments_BT: jax.Array, description: AttentionDescription, how: Execution
                 ) -> jax.Array:

        def local(query_BTHK: jax.Array, key_BTGK: jax.Array, value_BTGK: jax.Array,
                  segments_BT: jax.Array) -> jax.Array:
            T, K = query_BTHK.shape[1], query_BTHK.shape[3]
            seen_BTS = seen(segments_BT, segments_BT, jnp.arange(T), description)
            return jax.nn.dot_product_attention(
                query_BTHK, key_BTGK, value_BTGK, mask=seen_BTS[:, None],
                scale=description.scale_of(K), is_causal=description.causal,
                implementation="cudnn" if how.platform == "gpu" else "xla")

        return by_rows_and_heads(local, query_BTHK, key_BTGK, value_BTGK, segments_BT, how)


def installed() -> bool:
    """Whether cuDNN is on this machine. JAX asks for its version while it traces, even if the step
    is compiled for a GPU that the machine does not have."""
    wheel = importlib.util.find_spec("nvidia") and importlib.util.find_spec("nvidia.cudnn")
    return bool(wheel or ctypes.util.find_library("cudnn"))
