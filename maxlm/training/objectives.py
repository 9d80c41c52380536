"""What training minimises, chosen by `config.objective.name`.

An objective names one or more losses. The loss of a step is the weighted sum of their means, each
mean taken over the whole global batch: sums and counts are added over microbatches and devices and
divided once. Adding an objective takes one class and one entry of `OBJECTIVES`.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import jax

from maxlm.config import Config, ConfigError
from maxlm.config.schema import suggestion
from maxlm.models import transformer
from maxlm.parallel.execution import Execution

Batch = dict[str, jax.Array]
Losses = dict[str, tuple[jax.Array, jax.Array]]


class Objective(Protocol):
    @property
    def weights(self) -> Mapping[str, float]:
        """Of the losses minimised, by name; the first one is the main loss, whose count is that of
        the trained tokens."""
        ...

    def loss(self, params: Any, batch: Batch, config: Config, key: jax.Array, how: Execution
             ) -> Losses:
        """The losses of one microbatch: name -> (sum, count), float32 scalars.

        Args:
          batch: arrays [rows, tokens] of `maxlm.parallel.batches.BATCH_DTYPES`.
          key: random key of this step and microbatch.

        The counts must depend on the batch only, not on the parameters.
        """
        ...


class CausalLM:
    """Next-token cross-entropy in nats, over the tokens with weight 1."""

    weights = {"loss": 1.0}

    def loss(self, params: Any, batch: Batch, config: Config, key: jax.Array, how: Execution
             ) -> Losses:
        del key
        return {"loss": transformer.loss(params, batch, config.model, how)}


OBJECTIVES: dict[str, Objective] = {"causal_lm": CausalLM()}


def objective_of(config: Config) -> Objective:
    """
    Raises:
      ConfigError: there is no objective of this name.
    """
    name = config.objective.name
    if name not in OBJECTIVES:
        raise ConfigError(f"config.objective.name: no objective {name!r}; "
                          f"{suggestion(name, OBJECTIVES)}")
    return OBJECTIVES[name]


def step_key(seed: int, step: jax.Array, microbatch: jax.Array | int) -> jax.Array:
    """The random key of a microbatch: a function of seed, step and microbatch, no state."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), step), microbatch)
