"""Held-out loss, perplexity and bits per byte, in total and by source."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from maxlm.config import Config, ConfigError
from maxlm.data.evaluation_plan import EvaluationPlan
from maxlm.data.loader import make_loader
from maxlm.parallel.batches import BatchPlacement
from maxlm.telemetry.metrics import read_metrics
from maxlm.training.step import compile_eval_step


def summarise(loss_nats: float, tokens: float, bytes_: float, prefix: str) -> dict[str, float]:
    """Loss per token in nats, its exponential, and bits per byte of the scored text.

    Bits per byte is independent of the tokenizer: total nats / (ln 2 * UTF-8 bytes).
    """
    with np.errstate(over="ignore"):
        perplexity = float(np.exp(loss_nats / tokens))  # infinite for losses above 709
    return {
        f"{prefix}/loss": loss_nats / tokens,
        f"{prefix}/perplexity": perplexity,
        f"{prefix}/bits_per_byte": loss_nats / (math.log(2) * bytes_),
        f"{prefix}/tokens": tokens,
    }


def evaluation_plan(config: Config, tokenizer_sha256: str) -> EvaluationPlan:
    """The rows that `config.evals` selects.

    Args:
      tokenizer_sha256: checksum of the tokenizer that the model is trained with.

    Raises:
      ConfigError: there is no such split, or it was made with another tokenizer.
      CorpusError: files are missing or damaged.
    """
    plan = EvaluationPlan(config.data, config.evals.split, config.evals.batches)
    tokens = f"config.data.tokens: split {plan.split!r} beside {plan.tokenizer_path}"
    if plan.tokenizer_sha256 != tokenizer_sha256:
        raise ConfigError(
            f"{tokens} was made with tokenizer {plan.tokenizer_sha256[:12]}, but the model was "
            f"trained with {tokenizer_sha256[:12]} (sha256); tokenize the texts with the model's "
            "(the one in its --workdir)")
    if plan.vocab_size > config.model.vocab_size:
        raise ConfigError(f"{tokens} has a vocabulary of {plan.vocab_size}, but the model one of "
                          f"{config.model.vocab_size}")
    return plan


def evaluation_due(config: Config, step: int) -> bool:
    """Whether an evaluation follows the step."""
    every = config.evals.every_steps
    return bool(every) and (step % every == 0 or step == config.run.steps)


def evaluation_missing(config: Config, step: int, metrics: Path) -> bool:
    """Whether a signal stopped the run after `step` and before the evaluation that follows it.

    Args:
      metrics: the metrics.jsonl of the run.
    """
    rows = read_metrics(metrics) if metrics.exists() else []
    evaluated = {row["step"] for row in rows if "eval/loss" in row}
    return evaluation_due(config, step) and bool(evaluated) and step not in evaluated


class HeldOut:
    """Scores the same rows of a split each time that `run` is called.

    Args:
      config: of the run.
      mesh, placement: the devices of parameters and rows.
      params: weights, or their shapes and shardings; compilation needs no values.
      plan: the rows to score, from `evaluation_plan`.
    """

    def __init__(self, config: Config, mesh: jax.sharding.Mesh, placement: BatchPlacement,
                 params: Any, plan: EvaluationPlan):
        self._plan = plan
        self._placement = placement
        self._step = compile_eval_step(config, mesh, params,
                                       placement.abstract(config.data.sequence_length,
                                                          evaluation=True))

    def run(self, params: Any,
            interrupted: Callable[[], bool] = lambda: False) -> dict[str, float] | None:
        """Scores the split.

        Args:
          interrupted: called before each batch; True ends the evaluation.

        Returns:
          None if interrupted, else eval/loss, eval/perplexity, eval/bits_per_byte and eval/tokens
          over all scored tokens, and the same for each source as eval/SOURCE/...
        """
        plan = self._plan
        sums = np.zeros((len(plan.sources), 3))  # nats, tokens, bytes in float64
        for _, rows in make_loader(plan, 0, plan.batches, self._placement.local_rows):
            if interrupted():
                return None
            scored = jax.device_get(self._step(params, self._placement.put(rows, evaluation=True)))
            values = np.stack([scored[name].astype(np.float64)
                               for name in ("nats", "tokens", "bytes")], axis=1)
            np.add.at(sums, scored["source"], values)
        result = summarise(*sums.sum(axis=0), prefix="eval")
        for source, row in zip(plan.sources, sums, strict=True):
            if row[1]:
                result |= summarise(*row, prefix=f"eval/{source}")
        return result
