"""Transformer blocks, and how groups of them run: scanned or unrolled, rematerialised by policy.

The parameters of a group are stacked along a first axis "layers", one entry a repetition, in
whichever form they run, so that a checkpoint fits both.

Shape legend: B rows, T tokens, D width, S cache slots, G key/value heads, K head width, L layers,
R repetitions of a group.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from maxlm.config.trainer import BlockConfig, GroupConfig, ModelConfig
from maxlm.models.attention import Attention, LayerCache, Tokens
from maxlm.models.feed_forward import FEED_FORWARDS
from maxlm.models.normalization import make_norm
from maxlm.models.parameters import bind
from maxlm.parallel.execution import Execution

# What the "dots" policy saves for the backward pass; everything between is recomputed.
SAVED_BY_DOTS = ("query", "key", "value", "attention", "attention_log_sum", "mlp_gate", "mlp_up")

# Keys and values of some layers, [..., B, S, G, K] each; None without a cache.
Slots = tuple[jax.Array, jax.Array] | None


def layer_groups(config: ModelConfig) -> tuple[GroupConfig, ...]:
    """`groups`, or the one group of plain blocks that an empty list stands for."""
    return config.groups or (GroupConfig(repeat=config.num_layers),)


class Block(nnx.Module):
    """x + attention(norm(x)), then x + feed_forward(norm(x)) (pre-norm, as in Llama)."""

    def __init__(self, config: ModelConfig, block: BlockConfig, rngs: nnx.Rngs):
        self.attention_norm = make_norm(config, rngs)
        self.attention = Attention(config, block, rngs)
        self.feed_forward_norm = make_norm(config, rngs)
        self.feed_forward = FEED_FORWARDS[config.feed_forward](config, block, rngs)

    def __call__(self, x_BTD: jax.Array, tokens: Tokens, how: Execution,
                 cache: LayerCache | None = None) -> tuple[jax.Array, LayerCache | None]:
        attended_BTD, cache = self.attention(self.attention_norm(x_BTD), tokens, how, cache)
        x_BTD = residual(x_BTD + attended_BTD, how)
        x_BTD = residual(x_BTD + self.feed_forward(self.feed_forward_norm(x_BTD), how), how)
        return x_BTD, cache


def residual(x_BTD: jax.Array, how: Execution) -> jax.Array:
    return how.constrain(x_BTD, "batch", "length", "activation_embed")


class Group(nnx.Module):
    """The blocks of one repetition, when there is more than one: block_0, block_1, ..."""

    def __init__(self, config: ModelConfig, blocks: tuple[BlockConfig, ...], rngs: nnx.Rngs):
        for i, block in enumerate(blocks):
            setattr(self, f"block_{i}", Block(config, block, rngs))


class Groups(nnx.Module):
    """Several groups: group_0, group_1, ..."""

    def __init__(self, config: ModelConfig, rngs: nnx.Rngs):
        for i, group in enumerate(layer_groups(config)):
            setattr(self, f"group_{i}", _stack(config, group.blocks, group.repeat, rngs))


def make_blocks(config: ModelConfig, rngs: nnx.Rngs) -> nnx.Module:
    """The modules of all layers. Levels of the tree with one entry are left out: plain blocks are
    one stacked `Block`."""
    groups = layer_groups(config)
    if len(groups) == 1:
        return _stack(config, groups[0].blocks, groups[0].repeat, rngs)
    return Groups(config, rngs)


def _stack(config: ModelConfig, blocks: tuple[BlockConfig, ...], repeat: int, rngs: nnx.Rngs
           ) -> nnx.Module:
    def one(rngs: nnx.Rngs) -> nnx.Module:
        return Block(config, blocks[0], rngs) if len(blocks) == 1 else Group(config, blocks, rngs)

    return nnx.vmap(one, in_axes=0, out_axes=0)(rngs.split(repeat))


@functools.cache
def _structure(config: ModelConfig, block: BlockConfig) -> tuple[nnx.GraphDef, nnx.State]:
    return nnx.split(nnx.eval_shape(lambda: Block(config, block, nnx.Rngs(0))))


def run_layers(params: Any, x_BTD: jax.Array, tokens: Tokens, slots: Slots,
               index_BT: jax.Array | None, config: ModelConfig, how: Execution
               ) -> tuple[jax.Array, Slots]:
    """All layers in order.

    Args:
      params: of the modules of `make_blocks`, stacked.
      slots: keys and values of all layers, [L, B, S, G, K] each; None without a cache.
      index_BT: the slots that the tokens of x go to, as in `LayerCache`.

    Returns:
      The output [B, T, D], and the slots with the new keys and values.
    """
    groups = layer_groups(config)
    done, filled = 0, []
    for i, group in enumerate(groups):
        group_params = params if len(groups) == 1 else params[f"group_{i}"]
        R, count = group.repeat, len(group.blocks)
        blocks = [_form(config, block, tokens, index_BT, how) for block in group.blocks]

        def repetition(x_BTD: jax.Array, layers: tuple[Any, Slots],
                       blocks: list[Any] = blocks) -> tuple[jax.Array, Slots]:
            layer_params, layer_slots = layers  # of one repetition: slots are [blocks, B, S, G, K]
            new = []
            for j, block in enumerate(blocks):
                own = layer_params if len(blocks) == 1 else layer_params[f"block_{j}"]
                x_BTD, block_slots = block(
                    x_BTD, (own, jax.tree.map(lambda slot, j=j: slot[j], layer_slots)))
                new.append(block_slots)
            return x_BTD, jax.tree.map(lambda *slots: jnp.stack(slots), *new)

        group_slots = jax.tree.map(
            lambda slot, done=done, R=R, count=count: slot[done:done + R * count].reshape(
                R, count, *slot.shape[1:]), slots)
        x_BTD, group_slots = _run(repetition, x_BTD, (group_params, group_slots), R, config)
        filled.append(jax.tree.map(lambda slot: slot.reshape(-1, *slot.shape[2:]), group_slots))
        done += R * count
    return x_BTD, jax.tree.map(lambda *slots: jnp.concatenate(slots), *filled)


def _form(config: ModelConfig, block: BlockConfig, tokens: Tokens, index_BT: jax.Array | None,
          how: Execution) -> Callable[..., tuple[jax.Array, Slots]]:
    """The function of one block, rematerialised as the config says."""

    def run(x_BTD: jax.Array, layer: tuple[Any, Slots]) -> tuple[jax.Array, Slots]:
        params, slots = layer
        cache = None if slots is None or index_BT is None else LayerCache(*slots, index_BT)
        x_BTD, cache = bind(_structure(config, block), params)(x_BTD, tokens, how, cache)
        return x_BTD, None if cache is None else (cache.key, cache.value)

    if config.remat == "none":
        return run
    policies = jax.checkpoint_policies
    policy = {"dots": policies.save_only_these_names(*SAVED_BY_DOTS),
              "full": policies.nothing_saveable}[config.remat]
    # Inside a scan XLA cannot merge the recomputation with the forward pass.
    return jax.checkpoint(run, policy=policy, prevent_cse=not config.scan_layers)


def _run(repetition: Callable[..., Any], x_BTD: jax.Array, stacked: Any, repeat: int,
         config: ModelConfig) -> tuple[jax.Array, Any]:
    """The repetitions of a group one after the other, as a loop or unrolled."""
    if config.scan_layers:
        return jax.lax.scan(repetition, x_BTD, stacked)
    results = []
    for layers in unstack(stacked, repeat):
        x_BTD, result = repetition(x_BTD, layers)
        results.append(result)
    return x_BTD, jax.tree.map(lambda *layers: jnp.stack(layers), *results)


def unstack(tree: Any, layers: int) -> list[Any]:
    """The tree of each layer. Uses split, whose gradient is one concatenation; the gradient of
    indexing would be a sum of `layers` arrays of the size of the stack."""
    leaves, structure = jax.tree.flatten(tree)
    parts = [[part[0] for part in jax.lax.split(leaf, (1,) * layers)] for leaf in leaves]
    return [structure.unflatten(layer) for layer in zip(*parts, strict=True)]
