"""The decoder: its modules, its abstract parameter tree, and the pure functions over it.

Parameters are a plain nested dict of float32 arrays. Those of the layers are stacked along a first
axis "layers", whether the blocks are scanned or unrolled, so that a checkpoint fits both.

Shape legend: B rows, T tokens, D width, V vocabulary, L layers.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import Mesh

from maxlm.config.trainer import ModelConfig, PrecisionConfig
from maxlm.models.attention import Attention, LayerCache
from maxlm.models.feed_forward import FeedForward
from maxlm.models.losses import cross_entropy, row_losses
from maxlm.models.normalization import RMSNorm
from maxlm.models.parameters import AbstractParam, Normal, declare
from maxlm.models.positions import rope_tables
from maxlm.parallel.rules import LOGICAL_RULES, Rules, constrain, tree_shardings
from maxlm.precision.policy import compute_dtype, matmul_precision

Params = dict[str, Any]

# What the "dots" policy saves for the backward pass; everything between is recomputed.
SAVED_BY_DOTS = ("query", "key", "value", "attention", "attention_log_sum", "mlp_gate", "mlp_up")

# An output head with entries of this standard deviation over sqrt(D) gives logits of variance
# 0.16 at first, so a loss within 0.08 of ln(V), at any width.
HEAD_LOGIT_STD = 0.4


class Block(nnx.Module):
    """x + attention(norm(x)), then x + feed_forward(norm(x)) (pre-norm, as in Llama)."""

    def __init__(self, config: ModelConfig, rngs: nnx.Rngs):
        self.attention_norm = RMSNorm(config.embed_dim, config.norm_epsilon, rngs)
        self.attention = Attention(config, rngs)
        self.feed_forward_norm = RMSNorm(config.embed_dim, config.norm_epsilon, rngs)
        self.feed_forward = FeedForward(config, rngs)

    def __call__(
        self,
        x_BTD: jax.Array,
        *,
        segment_ids_BT: jax.Array,
        rope: tuple[jax.Array, jax.Array],
        cache: LayerCache | None = None,
    ) -> tuple[jax.Array, LayerCache | None]:
        attended_BTD, cache = self.attention(
            self.attention_norm(x_BTD), segment_ids_BT=segment_ids_BT, rope=rope, cache=cache)
        x_BTD = _residual(x_BTD + attended_BTD)
        x_BTD = _residual(x_BTD + self.feed_forward(self.feed_forward_norm(x_BTD)))
        return x_BTD, cache


class Decoder(nnx.Module):
    """Embedding, L blocks with stacked parameters, a last norm, and the head if it is not tied."""

    def __init__(self, config: ModelConfig, rngs: nnx.Rngs):
        V, D = config.vocab_size, config.embed_dim
        head = Normal(min(config.init_std, HEAD_LOGIT_STD / D**0.5))
        embedding = head if config.tie_embeddings else Normal(config.init_std)
        self.embedding = declare(rngs, (V, D), ("vocab", "embed"), embedding,
                                 kind="embedding")
        if not config.tie_embeddings:
            self.head = declare(rngs, (V, D), ("vocab", "embed"), head)
        self.final_norm = RMSNorm(D, config.norm_epsilon, rngs)
        self.blocks = nnx.vmap(lambda rngs: Block(config, rngs), in_axes=0, out_axes=0)(
            rngs.split(config.num_layers))


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
def _block_structure(config: ModelConfig) -> tuple[nnx.GraphDef, nnx.State]:
    return nnx.split(nnx.eval_shape(lambda: Block(config, nnx.Rngs(0))))


def _bind(structure: tuple[nnx.GraphDef, nnx.State], params: Params) -> Any:
    """The module with these arrays as its parameters."""
    graph, state = structure
    state = jax.tree.map(lambda leaf: leaf, state)
    nnx.replace_by_pure_dict(state, params)
    return nnx.merge(graph, state)


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


def param_shardings(config: ModelConfig, mesh: Mesh, rules: Rules = LOGICAL_RULES) -> Params:
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
    precision: PrecisionConfig,
) -> jax.Array:
    """Output of the last norm, [B, T, D] in the compute dtype.

    Args:
      tokens_BT: int32 token ids.
      segment_ids_BT: int32 document number within the row; 0 is padding.
      positions_BT: int32 position of each token in its document.
    """
    x_BTD, _ = _run(params, tokens_BT, segment_ids_BT, positions_BT, config, precision, None)
    return x_BTD


def _run(params: Params, tokens_BT: jax.Array, segment_ids_BT: jax.Array,
         positions_BT: jax.Array, config: ModelConfig, precision: PrecisionConfig,
         cache: KVCache | None) -> tuple[jax.Array, KVCache | None]:
    x_BTD = _embed(params["embedding"], tokens_BT, compute_dtype(precision))
    rope = rope_tables(positions_BT, config.head_dim, config.rope_theta)
    structure = _block_structure(config)

    def block(x_BTD: jax.Array, layer: tuple[Params, Any]) -> tuple[jax.Array, Any]:
        layer_params, slots = layer
        layer_cache = None if slots is None else LayerCache(slots[0], slots[1], positions_BT)
        x_BTD, layer_cache = _bind(structure, layer_params)(
            x_BTD, segment_ids_BT=segment_ids_BT, rope=rope, cache=layer_cache)
        return x_BTD, None if layer_cache is None else layer_cache[:2]

    block = _rematerialised(block, config)
    slots = None if cache is None else (cache.key, cache.value)
    if config.scan_layers:
        x_BTD, slots = jax.lax.scan(block, x_BTD, (params["blocks"], slots))
    else:
        per_layer = []
        for layer in unstack((params["blocks"], slots), config.num_layers):
            x_BTD, layer_slots = block(x_BTD, layer)
            per_layer.append(layer_slots)
        slots = jax.tree.map(lambda *layers: jnp.stack(layers), *per_layer)
    x_BTD = _bind_norm(params["final_norm"], config)(x_BTD)
    return x_BTD, None if cache is None else cache._replace(key=slots[0], value=slots[1])


def _residual(x_BTD: jax.Array) -> jax.Array:
    return constrain(x_BTD, ("batch", "length", "activation_embed"))


def _embed(embedding_VD: jax.Array, tokens_BT: jax.Array, dtype: Any) -> jax.Array:
    # Rows are gathered in float32 and cast afterwards: their gradients are summed in float32.
    return _residual(jnp.take(embedding_VD, tokens_BT, axis=0, mode="clip").astype(dtype))


def _bind_norm(params: Params, config: ModelConfig) -> RMSNorm:
    return _bind(_norm_structure(config), params)


@functools.cache
def _norm_structure(config: ModelConfig) -> tuple[nnx.GraphDef, nnx.State]:
    return nnx.split(nnx.eval_shape(
        lambda: RMSNorm(config.embed_dim, config.norm_epsilon, nnx.Rngs(0))))


def _rematerialised(block: Any, config: ModelConfig) -> Any:
    if config.remat == "none":
        return block
    policies = jax.checkpoint_policies
    policy = {"dots": policies.save_only_these_names(*SAVED_BY_DOTS),
              "full": policies.nothing_saveable}[config.remat]
    # Inside a scan XLA cannot merge the recomputation with the forward pass.
    return jax.checkpoint(block, policy=policy, prevent_cse=not config.scan_layers)


def unstack(tree: Any, layers: int) -> list[Any]:
    """The tree of each layer. Uses split, whose gradient is one concatenation; the gradient of
    indexing would be a sum of `layers` arrays of the size of the stack."""
    leaves, structure = jax.tree.flatten(tree)
    parts = [[part[0] for part in jax.lax.split(leaf, (1,) * layers)] for leaf in leaves]
    return [structure.unflatten(layer) for layer in zip(*parts, strict=True)]


def _head(params: Params, config: ModelConfig) -> jax.Array:
    return params["embedding"] if config.tie_embeddings else params["head"]


def _head_logits(params: Params, x_BTD: jax.Array, config: ModelConfig) -> jax.Array:
    logits_BTV = jnp.einsum("BTD,VD->BTV", x_BTD, _head(params, config).astype(x_BTD.dtype),
                            precision=matmul_precision(x_BTD.dtype),
                            preferred_element_type=jnp.float32)
    return constrain(logits_BTV, ("batch", "length", "vocab"))


def logits(
    params: Params,
    tokens_BT: jax.Array,
    segment_ids_BT: jax.Array,
    positions_BT: jax.Array,
    config: ModelConfig,
    precision: PrecisionConfig,
) -> jax.Array:
    """float32 logits [B, T, V] of the token after each one. Arguments as in `hidden`."""
    x_BTD = hidden(params, tokens_BT, segment_ids_BT, positions_BT, config, precision)
    return _head_logits(params, x_BTD, config)


def loss(params: Params, batch: dict[str, jax.Array], config: ModelConfig,
         precision: PrecisionConfig) -> tuple[jax.Array, jax.Array]:
    """(sum of weighted token losses in nats, sum of weights), float32 scalars.

    Args:
      batch: arrays [B, T]: tokens, targets, segment_ids, positions (int32), weights (float32; 0
        for padding, for the last token of a document and wherever nothing is to be learned).
    """
    x_BTD = hidden(params, batch["tokens"], batch["segment_ids"], batch["positions"], config,
                   precision)
    return cross_entropy(x_BTD, _head(params, config), batch["targets"], batch["weights"],
                         config.loss_chunk)


def loss_per_row(params: Params, batch: dict[str, jax.Array], config: ModelConfig,
                 precision: PrecisionConfig) -> jax.Array:
    """The loss sum of `loss` for each row, float32 [B]; for evaluation, without the fast gradient.
    """
    x_BTD = hidden(params, batch["tokens"], batch["segment_ids"], batch["positions"], config,
                   precision)
    return row_losses(x_BTD, _head(params, config), batch["targets"], batch["weights"],
                      config.loss_chunk)


def init_cache(config: ModelConfig, batch: int, max_length: int,
               precision: PrecisionConfig) -> KVCache:
    """An empty cache for `batch` rows of at most `max_length` tokens."""
    shape = (config.num_layers, batch, max_length, config.num_kv_heads, config.head_dim)
    dtype = compute_dtype(precision)
    # Two separate arrays, because the caller donates both.
    return KVCache(jnp.zeros(shape, dtype), jnp.zeros(shape, dtype), jnp.zeros(batch, jnp.int32))


def decode(
    params: Params,
    cache: KVCache,
    tokens_BT: jax.Array,
    counts_B: jax.Array,
    config: ModelConfig,
    precision: PrecisionConfig,
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
    x_BTD, new = _run(params, tokens_BT, jnp.ones_like(tokens_BT), positions_BT, config, precision,
                      cache)
    assert new is not None
    last_B = jnp.maximum(counts_B - 1, 0)
    x_B1D = jnp.take_along_axis(x_BTD, last_B[:, None, None], axis=1)
    return (_head_logits(params, x_B1D, config)[:, 0],
            new._replace(length=cache.length + counts_B))
