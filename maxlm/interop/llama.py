"""Llama weights by their names in Hugging Face transformers, both ways, in memory.

transformers stores a projection as [out, in], heads flattened; here it is [in, heads, head_dim],
layers stacked. Rotary pairs are the halves of a head in both. Meta's original files pair
neighbouring entries instead: `interleaved=True` reads and writes those.
"""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from maxlm.config.schema import ConfigError
from maxlm.config.trainer import ModelConfig
from maxlm.models.parameters import AbstractParam
from maxlm.models.transformer import Params, abstract_params

_LAYER = "model.layers.{layer}."
# Path in our tree -> name in transformers.
_TOP = {
    ("embedding",): "model.embed_tokens.weight",
    ("final_norm", "scale"): "model.norm.weight",
    ("head",): "lm_head.weight",
}
_BLOCK: dict[tuple[str, ...], str] = {
    ("attention_norm", "scale"): "input_layernorm.weight",
    ("attention", "query"): "self_attn.q_proj.weight",
    ("attention", "key"): "self_attn.k_proj.weight",
    ("attention", "value"): "self_attn.v_proj.weight",
    ("attention", "out"): "self_attn.o_proj.weight",
    ("feed_forward_norm", "scale"): "post_attention_layernorm.weight",
    ("feed_forward", "gate"): "mlp.gate_proj.weight",
    ("feed_forward", "up"): "mlp.up_proj.weight",
    ("feed_forward", "down"): "mlp.down_proj.weight",
}


# What LlamaConfig has no field for.
_FIXED = {"groups": (), "positions": "rotary", "norm": "rmsnorm", "feed_forward": "gated",
          "activation": "silu", "logit_cap": None, "attention_scale": None, "segment_bias": None}


def _refuse_others(config: ModelConfig) -> None:
    for field, value in _FIXED.items():
        if getattr(config, field) != value:
            raise ConfigError(f"config.model.{field}: {getattr(config, field)!r} has no place in a "
                              f"Llama model, which has {value!r}")


def llama_config(config: ModelConfig, max_positions: int) -> dict[str, Any]:
    """The fields of transformers' `LlamaConfig` (its config.json) for this model.

    Args:
      max_positions: longest sequence it is meant for, tokens.

    Raises:
      ConfigError: the model has something that Llama has not.
    """
    _refuse_others(config)
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": config.vocab_size,
        "hidden_size": config.embed_dim,
        "intermediate_size": config.mlp_dim,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.num_kv_heads,
        "head_dim": config.head_dim,
        "max_position_embeddings": max_positions,
        "rms_norm_eps": config.norm_epsilon,
        "rope_theta": config.rope_theta,  # read by transformers 4
        "rope_parameters": {"rope_type": "default", "rope_theta": config.rope_theta},  # and by 5
        "tie_word_embeddings": config.tie_embeddings,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
    }


def _pair_halves(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows of [heads * K, in] from neighbours (2i, 2i+1) to halves (i, i + K/2)."""
    rows, width = weight.shape
    pairs = weight.reshape(heads, rows // heads // 2, 2, width)
    return pairs.swapaxes(1, 2).reshape(rows, width)


def _pair_neighbours(weight: np.ndarray, heads: int) -> np.ndarray:
    """The inverse of `_pair_halves`."""
    rows, width = weight.shape
    halves = weight.reshape(heads, 2, rows // heads // 2, width)
    return halves.swapaxes(1, 2).reshape(rows, width)


def _rotary_heads(path: tuple[str, ...], config: ModelConfig) -> int:
    """Heads of a projection whose output is rotated, 0 for other parameters."""
    return {"query": config.num_heads, "key": config.num_kv_heads}.get(path[-1], 0)


def to_llama(params: Params, config: ModelConfig, *,
             interleaved: bool = False) -> dict[str, np.ndarray]:
    """Our parameters as transformers' state dict, float32 arrays.

    A tied model has no "lm_head.weight". Store `llama_config` too: rope theta and the epsilon of
    the norms are not in the weights.

    Raises:
      ConfigError: the model has something that Llama has not.
    """
    _refuse_others(config)
    named = {}
    for path, array in _flat(params):
        array = np.asarray(array)
        if path in _TOP:
            named[_TOP[path]] = array
            continue
        for layer in range(config.num_layers):
            weight = array[layer]
            if path[-1] == "out":  # [heads, head_dim, embed] -> [embed, heads * head_dim]
                weight = weight.reshape(-1, config.embed_dim).T
            elif weight.ndim > 1:  # [embed, ...] -> [prod(...), embed]
                weight = weight.reshape(weight.shape[0], -1).T
            heads = _rotary_heads(path, config)
            if interleaved and heads:
                weight = _pair_neighbours(weight, heads)
            named[_LAYER.format(layer=layer) + _BLOCK[path[1:]]] = np.ascontiguousarray(weight)
    return named


def from_llama(weights: Mapping[str, Any], config: ModelConfig, *,
               interleaved: bool = False) -> Params:
    """Our parameters (numpy, float32) from transformers' state dict (numpy arrays by name).

    Raises:
      ConfigError: a weight is missing, has another shape than the model, or has no place in it; the
        model has something that Llama has not.
    """
    _refuse_others(config)
    wanted = set()

    def read(name: str, shape: tuple[int, ...]) -> np.ndarray:
        wanted.add(name)
        if name not in weights:
            raise ConfigError(f"weight {name!r} is missing")
        array = np.asarray(weights[name], np.float32)
        if array.shape != shape:
            raise ConfigError(f"weight {name!r} has shape {array.shape}, the model needs {shape}")
        return array

    def layer_weight(path: tuple[str, ...], shape: tuple[int, ...], layer: int) -> np.ndarray:
        name = _LAYER.format(layer=layer) + _BLOCK[path[1:]]
        if len(shape) == 1:
            return read(name, shape)
        if path[-1] == "out":
            return read(name, (shape[2], shape[0] * shape[1])).T.reshape(shape)
        weight = read(name, (int(np.prod(shape[1:])), shape[0]))
        heads = _rotary_heads(path, config)
        if interleaved and heads:
            weight = _pair_halves(weight, heads)
        return weight.T.reshape(shape)

    def leaf(path: tuple[str, ...], abstract: AbstractParam) -> np.ndarray:
        if path in _TOP:
            return read(_TOP[path], abstract.shape)
        return np.stack([layer_weight(path, abstract.shape[1:], layer)
                         for layer in range(config.num_layers)])

    abstract = abstract_params(config)
    leaves = [leaf(path, declared) for path, declared in _flat(abstract)]
    # transformers' state dict of a tied model lists the one embedding twice.
    repeated = {"lm_head.weight"} if config.tie_embeddings else set()
    extra = sorted(set(weights) - wanted - repeated)
    if extra:
        raise ConfigError(f"weight {extra[0]!r} has no place in the model "
                          f"({len(extra)} such weights)")
    return jax.tree.unflatten(jax.tree.structure(abstract), leaves)


def _flat(tree: Params) -> list[tuple[tuple[str, ...], Any]]:
    return [(tuple(key.key for key in path), leaf)
            for path, leaf in jax.tree_util.tree_leaves_with_path(tree)]
