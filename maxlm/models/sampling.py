"""Choosing the next token from logits, and the loop that continues prompts with a KV cache.

Shape legend: B prompts, T tokens of the longest prompt, V vocabulary.
"""

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from maxlm.config import ConfigError, ModelConfig
from maxlm.models import transformer
from maxlm.parallel.execution import Execution

# Prompts go into the cache in pieces of this many tokens: the memory of attention grows with the
# piece times the text, not with the square of the text.
PREFILL_CHUNK = 256


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How the next token is chosen.

    Attributes:
      temperature: logits are divided by it; 0 takes the most likely token.
      top_k: only the k most likely tokens; 0 for all.
      top_p: only the most likely tokens that together have this probability (nucleus sampling,
        arXiv:1904.09751); 1 for all. Taken after top_k and temperature.
      seed: of the draws. The draws for a prompt depend on the seed, its index in the list and the
        position in its text, not on the other prompts of the batch.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.temperature >= 0:
            raise ConfigError(f"--temperature: must be at least 0, got {self.temperature}")
        if self.top_k < 0:
            raise ConfigError(f"--top_k: must be at least 0 (0 for all), got {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"--top_p: must be above 0 and at most 1, got {self.top_p}")


def filter_logits(logits_BV: jax.Array, sampling: Sampling) -> jax.Array:
    """float32 logits over the temperature, with minus infinity where top_k or top_p exclude.

    Ties at the edge stay in. At least one token is always left.
    """
    logits_BV = logits_BV / sampling.temperature
    V = logits_BV.shape[-1]
    if 0 < sampling.top_k < V:
        kth_B1 = jax.lax.top_k(logits_BV, sampling.top_k)[0][:, -1:]
        logits_BV = jnp.where(logits_BV < kth_B1, -jnp.inf, logits_BV)
    if sampling.top_p < 1:
        sorted_BV = jnp.flip(jnp.sort(logits_BV, axis=-1), axis=-1)
        probability_BV = jax.nn.softmax(sorted_BV, axis=-1)
        before_BV = jnp.cumsum(probability_BV, axis=-1) - probability_BV
        kept_BV = before_BV < sampling.top_p
        lowest_B1 = jnp.where(kept_BV, sorted_BV, jnp.inf).min(axis=-1, keepdims=True)
        logits_BV = jnp.where(logits_BV < lowest_B1, -jnp.inf, logits_BV)
    return logits_BV


def sample(logits_BV: jax.Array, lengths_B: jax.Array, sampling: Sampling) -> jax.Array:
    """The next token of each row, int32 [B].

    Args:
      logits_BV: float32; excluded tokens are minus infinity.
      lengths_B: int32 tokens before the one to be drawn; the draw's place in the random stream.
    """
    if sampling.temperature == 0:
        return jnp.argmax(logits_BV, axis=-1).astype(jnp.int32)
    logits_BV = filter_logits(logits_BV, sampling)

    def draw(row: jax.Array, length: jax.Array, logits_V: jax.Array) -> jax.Array:
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(sampling.seed), row), length)
        return jax.random.categorical(key, logits_V)

    rows_B = jnp.arange(logits_BV.shape[0])
    return jax.vmap(draw)(rows_B, lengths_B, logits_BV).astype(jnp.int32)


@functools.partial(jax.jit, static_argnums=(5, 6, 7), donate_argnums=1)
def _next_tokens(
    params: Any, cache: transformer.KVCache, tokens_BT: jax.Array, counts_B: jax.Array,
    mask_V: jax.Array, sampling: Sampling, config: ModelConfig, how: Execution,
) -> tuple[jax.Array, transformer.KVCache]:
    """Appends tokens to each row and draws the one after them; compiled once per shape."""
    logits_BV, cache = transformer.decode(params, cache, tokens_BT, counts_B, config, how)
    return sample(logits_BV + mask_V, cache.length, sampling), cache


def continue_prompts(
    params: Any,
    prompts: Sequence[Sequence[int]],
    max_tokens: int,
    allowed_V: np.ndarray,
    eos_id: int,
    sampling: Sampling,
    config: ModelConfig,
    how: Execution,
) -> Iterator[list[int | None]]:
    """Continues all prompts together, one token of each at a time.

    Args:
      params: weights of maxlm.models.transformer.
      prompts: token ids, at least one each (BOS, usually).
      max_tokens: most tokens to add to each.
      allowed_V: bool, ids that may be chosen.
      eos_id: ends a text; it is not yielded.

    Yields:
      The new token of each prompt, None for those that have ended. Stops when all have.
    """
    shards = how.parts("batch")
    rows = -(-len(prompts) // shards) * shards  # rows added as padding are not yielded
    lengths = np.array([len(prompt) for prompt in prompts] + [1] * (rows - len(prompts)), np.int32)
    chunk = min(int(lengths.max()), PREFILL_CHUNK)
    tokens_BT = np.zeros((rows, -(-int(lengths.max()) // chunk) * chunk), np.int32)
    for row, prompt in zip(tokens_BT, prompts, strict=False):
        row[: len(prompt)] = prompt
    mask_V = jnp.where(jnp.asarray(allowed_V), 0.0, -jnp.inf).astype(jnp.float32)

    def step(cache: transformer.KVCache, tokens_BT: Any, counts_B: Any
             ) -> tuple[jax.Array, transformer.KVCache]:
        return _next_tokens(params, cache, jnp.asarray(tokens_BT), jnp.asarray(counts_B, jnp.int32),
                            mask_V, sampling, config, how)

    cache = transformer.init_cache(config, rows, tokens_BT.shape[1] + max_tokens, how)
    new_B = jnp.zeros(rows, jnp.int32)
    for start in range(0, tokens_BT.shape[1], chunk):
        counts = np.clip(lengths - start, 0, chunk)
        drawn_B, cache = step(cache, tokens_BT[:, start:start + chunk], counts)
        # The draw that counts is the one after the last token of the prompt.
        new_B = jnp.where(counts > 0, drawn_B, new_B)
    ended = np.arange(rows) >= len(prompts)
    for count in range(1, max_tokens + 1):
        drawn = np.asarray(new_B)
        ended |= drawn == eos_id
        if ended.all():
            return
        yield [None if ended[i] else int(drawn[i]) for i in range(len(prompts))]
        if count < max_tokens:
            new_B, cache = step(cache, new_B[:, None], ~ended)
