"""The decoder: its modules, its abstract parameter tree, and the pure functions over it.

Parameters are a plain nested dict of float32 arrays. `config` says what is computed, `how`
(`maxlm.parallel.execution.Execution`) on which devices and in which dtype; both are static.

Shape legend: B rows, T tokens, D width, V vocabulary, L layers.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import Mesh

from maxlm.config.trainer import ModelConfig
from maxlm.kernels.cross_entropy import cross_entropy, row_losses
from maxlm.models.attention import Tokens
from maxlm.models.blocks import make_blocks, residual, run_layers
from maxlm.models.normalization import make_norm
from maxlm.models.parameters import AbstractParam, Normal, bind, declare
from maxlm.models.positions import positions_of
from maxlm.parallel.execution import Execution
from maxlm.parallel.rules import Rules, tree_shardings
from maxlm.precision.policy import matmul_precision

Params = dict[str, Any]

# An output head with entries of this standard deviation over sqrt(D) gives logits of variance
# 0.16 at first, so a loss within 0.08 of ln(V), at any width.
HEAD_LOGIT_STD = 0.4


class Decoder(nnx.Module):
    """Embedding, blocks with stacked parameters, a last norm, and the head if it is not tied."""

    def __init__(self, config: ModelConfig, rngs: nnx.Rngs):
        V, D = config.vocab_size, config.embed_dim
        head = Normal(min(config.init_std, HEAD_LOGIT_STD / D**0.5))
        embedding = head if config.tie_embeddings else Normal(config.init_std)
        self.embedding = declare(rngs, (V, D), ("vocab", "embed"), embedding,
                                 kind="embedding")
        if not config.tie_embeddings:
            self.head = declare(rngs, (V, D), ("vocab", "embed"), head)
        self.final_norm = make_norm(config, rngs)
        self.blocks = make_blocks(config, rngs)


class KVCache(NamedTuple):
    """Keys and values of all layers, and how much of each row is filled.

    Attributes:
      key, value: [L, B, S, G, K], compute dtype.
      length: int32 [B], tokens in each row so far.
    """

    key: jax.Array
    value: jax.Array
    length: jax.Array


@functools.cache
def _structure(config: ModelConfig) -> tuple[nnx.GraphDef, nnx.State]:
    return nnx.split(nnx.eval_shape(lambda: Decoder(config, nnx.Rngs(0))))


@functools.cache
def _norm_structure(config: ModelConfig) -> tuple[nnx.GraphDef, nnx.State]:
    return nnx.split(nnx.eval_shape(lambda: make_norm(config, nnx.Rngs(0))))


def abstract_params(config: ModelConfig) -> Params:
    """The parameter tree, with an `AbstractParam` in place of each array."""
    _, state = _structure(config)
    flat = {}
    for path, variable in nnx.to_flat_state(state):
        metadata = variable.get_metadata()
        axes = metadata["logical_axes"]
        if path[0] == "blocks":
            axes = ("layers", *axes)
        flat[path] = AbstractParam(variable.shape, variable.dtype, axes, metadata["kind"],
                                   metadata["initializer"])
    return nnx.traversals.unflatten_mapping(flat)


def param_shardings(config: ModelConfig, mesh: Mesh, rules: Rules) -> Params:
    """NamedSharding of each parameter.

    Raises:
      ConfigError: a dimension does not divide over its mesh axis; names the parameter.
    """
    return tree_shardings(abstract_params(config), mesh, rules)


def init_params(config: ModelConfig, seed: int | jax.Array) -> Params:
    """Initial weights. The same values under any mesh, so it can run under jit with out_shardings.
    """
    return nnx.to_pure_dict(nnx.state(Decoder(config, nnx.Rngs(jax.random.key(seed)))))


def hidden(
    params: Params,
    tokens_BT: jax.Array,
    segment_ids_BT: jax.Array,
    positions_BT: jax.Array,
    config: ModelConfig,
    how: Execution,
) -> jax.Array:
    """Output of the last norm, [B, T, D] in the compute dtype.

    Args:
      tokens_BT: int32 token ids.
      segment_ids_BT: int32 document number within the row; 0 is padding.
      positions_BT: int32 position of each token in its document.
    """
    x_BTD, _ = _run(params, tokens_BT, segment_ids_BT, positions_BT, config, how, None)
    return x_BTD


def _run(params: Params, tokens_BT: jax.Array, segment_ids_BT: jax.Array,
         positions_BT: jax.Array, config: ModelConfig, how: Execution,
         cache: KVCache | None) -> tuple[jax.Array, KVCache | None]:
    x_BTD = _embed(params["embedding"], tokens_BT, how)
    tokens = Tokens(segment_ids_BT, positions_of(config).tables(positions_BT, how))
    x_BTD, slots = run_layers(
        params["blocks"], x_BTD, tokens, None if cache is None else (cache.key, cache.value),
        positions_BT, config, how)
    x_BTD = bind(_norm_structure(config), params["final_norm"])(x_BTD)
    if cache is None or slots is None:
        return x_BTD, None
    return x_BTD, cache._replace(key=slots[0], value=slots[1])


def _embed(embedding_VD: jax.Array, tokens_BT: jax.Array, how: Execution) -> jax.Array:
    # Rows are gathered in float32 and cast afterwards: their gradients are summed in float32.
    return residual(jnp.take(embedding_VD, tokens_BT, axis=0, mode="clip").astype(how.dtype), how)


def _head(params: Params, config: ModelConfig) -> jax.Array:
    return params["embedding"] if config.tie_embeddings else params["head"]


def _head_logits(params: Params, x_BTD: jax.Array, config: ModelConfig, how: Execution
                 ) -> jax.Array:
    logits_BTV = jnp.einsum("BTD,VD->BTV", x_BTD, _head(params, config).astype(x_BTD.dtype),
                            precision=matmul_precision(x_BTD.dtype),
                            preferred_element_type=jnp.float32)
    return how.constrain(logits_BTV, "batch", "length", "vocab")


def logits(
    params: Params,
    tokens_BT: jax.Array,
    segment_ids_BT: jax.Array,
    positions_BT: jax.Array,
    config: ModelConfig,
    how: Execution,
) -> jax.Array:
    """float32 logits [B, T, V] of the token after each one. Arguments as in `hidden`."""
    x_BTD = hidden(params, tokens_BT, segment_ids_BT, positions_BT, config, how)
    return _head_logits(params, x_BTD, config, how)


def loss(params: Params, batch: dict[str, jax.Array], config: ModelConfig, how: Execution
         ) -> tuple[jax.Array, jax.Array]:
    """(sum of weighted token losses in nats, sum of weights), float32 scalars.

    Args:
      batch: arrays [B, T]: tokens, targets, segment_ids, positions (int32), weights (float32; 0
        for padding, for the last token of a document and wherever nothing is to be learned).
    """
    x_BTD = hidden(params, batch["tokens"], batch["segment_ids"], batch["positions"], config, how)
    return cross_entropy(x_BTD, _head(params, config), batch["targets"], batch["weights"],
                         config.loss_chunk, how)


def loss_per_row(params: Params, batch: dict[str, jax.Array], config: ModelConfig,
                 how: Execution) -> jax.Array:
    """The loss sum of `loss` for each row, float32 [B]; for evaluation, without the fast gradient.
    """
    x_BTD = hidden(params, batch["tokens"], batch["segment_ids"], batch["positions"], config, how)
    return row_losses(x_BTD, _head(params, config), batch["targets"], batch["weights"],
                      config.loss_chunk, how)


def init_cache(config: ModelConfig, batch: int, max_length: int, how: Execution) -> KVCache:
    """An empty cache for `batch` rows of at most `max_length` tokens."""
    shape = (config.num_layers, batch, max_length, config.num_kv_heads, config.head_dim)
    # Two separate arrays, because the caller donates both.
    return KVCache(jnp.zeros(shape, how.dtype), jnp.zeros(shape, how.dtype),
                   jnp.zeros(batch, jnp.int32))


def decode(
    params: Params,
    cache: KVCache,
    tokens_BT: jax.Array,
    counts_B: jax.Array,
    config: ModelConfig,
    how: Execution,
) -> tuple[jax.Array, KVCache]:
    """Appends tokens to each row: whole prompts first (prefill), then one token a call.

    Args:
      tokens_BT: int32; row b continues with its first counts_B[b] tokens, the rest is padding.
      counts_B: int32, 0 to T. A row with 0 stays as it is. The caller keeps
        cache.length + counts within the cache's max_length; tokens past it are not stored.

    Returns:
      float32 logits [B, V] after the last real token of each row (undefined for rows with count
      0), and the cache.
    """
    T = tokens_BT.shape[1]
    positions_BT = cache.length[:, None] + jnp.arange(T)
    x_BTD, new = _run(params, tokens_BT, jnp.ones_like(tokens_BT), positions_BT, config, how,
                      cache)
    assert new is not None
    last_B = jnp.maximum(counts_B - 1, 0)
    x_B1D = jnp.take_along_axis(x_BTD, last_B[:, None, None], axis=1)
    return (_head_logits(params, x_B1D, config, how)[:, 0],
            new._replace(length=cache.length + counts_B))
