"""Parameters and FLOPs of a model, from its abstract parameter tree."""

import jax

from maxlm.config.trainer import ModelConfig
from maxlm.models.blocks import layer_groups
from maxlm.models.parameters import AbstractParam
from maxlm.models.transformer import abstract_params


def _leaves(config: ModelConfig) -> list[tuple[tuple[str, ...], AbstractParam]]:
    leaves = jax.tree_util.tree_leaves_with_path(
        abstract_params(config), is_leaf=lambda leaf: isinstance(leaf, AbstractParam))
    return [(tuple(key.key for key in path), leaf) for path, leaf in leaves]


def param_count(config: ModelConfig) -> int:
    """All parameters, a tied embedding once."""
    return sum(leaf.size for _, leaf in _leaves(config))


def matmul_param_count(config: ModelConfig) -> int:
    """Parameters that every token is multiplied with: all matrices of the blocks, and the head
    (the embedding if it is tied). Embedding look-ups and norms do not count."""
    total = 0
    for path, leaf in _leaves(config):
        if path[-1] == "embedding":
            total += leaf.size if config.tie_embeddings else 0
        elif leaf.logical_axes[-1] != "norm":
            total += leaf.size
    return total


def flops_per_token(config: ModelConfig, sequence_length: int) -> float:
    """Training FLOPs per token, forward and backward, without rematerialisation.

    Convention: 6 per matmul parameter (2 forward, 4 backward; arXiv:2001.08361), plus attention's
    two matmuls (scores, and weights times values): 12 * layers * heads * head_dim * T if every
    query met every key, halved because it meets only those before it (the convention of MaxText
    since its pull request 1988). Of T keys a window w leaves w - w^2 / (2 T) instead of T / 2.
    Packing is not subtracted.
    """
    keys = 0.0
    for group in layer_groups(config):
        for block in group.blocks:
            window = min(block.window or sequence_length, sequence_length)
            keys += group.repeat * (window - window**2 / (2 * sequence_length))
    return 6 * matmul_param_count(config) + 12 * config.num_heads * config.head_dim * keys
