"""Held-out loss, perplexity and bits per byte, over all and by source."""

import math
from typing import Any

import jax
import numpy as np

from maxlm.config import Config
from maxlm.data.loader import make_loader
from maxlm.data.plan import EvaluationPlan
from maxlm.parallel.batches import BatchPlacement
from maxlm.training.step import compile_eval_step


def summarise(loss_nats: float, tokens: float, bytes_: float, prefix: str) -> dict[str, float]:
    """Loss per token in nats, its exponential, and bits per byte of the scored text.

    Bits per byte is independent of the tokenizer: total nats / (ln 2 * UTF-8 bytes).
    """
    return {
        f"{prefix}/loss": loss_nats / tokens,
        f"{prefix}/perplexity": math.exp(min(loss_nats / tokens, 700.0)),  # below overflow
        f"{prefix}/bits_per_byte": loss_nats / (math.log(2) * bytes_),
        f"{prefix}/tokens": tokens,
    }


class HeldOut:
    """Scores the same rows of a split each time it is run.

    Args:
      config: of the run; `evals` says which split and how many batches.
      mesh, placement: where parameters and rows lie.
      params: weights, or their shapes and shardings, for the one compilation.
      plan: the rows to score, when the caller has it already.
    """

    def __init__(self, config: Config, mesh: jax.sharding.Mesh, placement: BatchPlacement,
                 params: Any, plan: EvaluationPlan | None = None):
        self._plan = plan or EvaluationPlan(
            config.data, config.evals.split, config.evals.batches)
        self._placement = placement
        self._step = compile_eval_step(config, mesh, params,
                                       placement.abstract(config.data.sequence_length))

    def run(self, params: Any) -> dict[str, float]:
        """Scores the split.

        Returns:
          eval/loss, eval/perplexity, eval/bits_per_byte and eval/tokens over all scored tokens, and
          the same as eval/SOURCE/... by source.
        """
        plan = self._plan
        sums = np.zeros((len(plan.sources), 3))  # nats, tokens, bytes in float64
        every_row = range(self._placement.batch_size)
        for _, rows in make_loader(plan, 0, plan.batches, every_row):
            losses = self._step(params, self._placement.put(rows, local=False))
            values = np.stack([np.asarray(jax.device_get(losses), np.float64),
                               rows["weights"].sum(axis=1, dtype=np.float64),
                               rows["bytes"].astype(np.float64)], axis=1)
            np.add.at(sums, rows["source"], values)
        result = summarise(*sums.sum(axis=0), prefix="eval")
        for source, row in zip(plan.sources, sums, strict=True):
            if row[1]:
                result |= summarise(*row, prefix=f"eval/{source}")
        return result
