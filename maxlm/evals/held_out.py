"""Held-out loss, perplexity and bits per byte, in total and by source."""

import functools
import math
from typing import Any

import jax
import numpy as np

from maxlm.config import Config, ConfigError
from maxlm.data.evaluation_plan import EvaluationPlan
from maxlm.data.loader import make_loader
from maxlm.evals.evaluator import EvaluatedRun, Evaluator
from maxlm.training.state import TrainState
from maxlm.training.step import compile_eval_step


def summarise(loss_nats: float, tokens: float, bytes_: float, prefix: str) -> dict[str, float]:
    """Loss per token in nats, its exponential, and bits per byte of the scored text.

    Bits per byte is independent of the tokenizer: total nats / (ln 2 * UTF-8 bytes).

    Raises:
      ConfigError: no token was scored.
    """
    if not tokens:
        raise ConfigError("config.evals.split: every token of this split is masked, so there is no "
                          "loss; choose another split, or set config.evals.every_steps=0")
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


class HeldOut(Evaluator):
    """Scores the same rows of a split each time.

    Args:
      run: what is evaluated. Its `plan` comes from `evaluation_plan`.
    """

    name = "eval/loss"

    def __init__(self, run: EvaluatedRun):
        assert run.plan is not None
        self._run, self._plan = run, run.plan

    @classmethod
    def build(cls, run: EvaluatedRun) -> "HeldOut | None":
        return cls(run) if run.plan is not None else None

    def compile(self) -> None:
        _ = self._step

    @functools.cached_property
    def _step(self) -> Any:
        run = self._run
        return compile_eval_step(run.config, run.mesh, run.params, run.placement.abstract(
            run.config.data.sequence_length, evaluation=True))

    def due(self, step: int) -> bool:
        config = self._run.config
        return step % config.evals.every_steps == 0 or step == config.run.steps

    def run(self, state: TrainState) -> dict[str, float] | None:
        return self.score(state.params)

    def summary(self, row: dict[str, Any]) -> str:
        return (f"held-out loss {row['eval/loss']:.4f}, perplexity {row['eval/perplexity']:.2f}, "
                f"bits per byte {row['eval/bits_per_byte']:.4f}")

    def score(self, params: Any) -> dict[str, float] | None:
        """Scores the split.

        Returns:
          None if interrupted, else eval/loss, eval/perplexity, eval/bits_per_byte and eval/tokens
          over all scored tokens, and the same for each source as eval/SOURCE/...
        """
        plan, placement = self._plan, self._run.placement
        sums = np.zeros((len(plan.sources), 3))  # nats, tokens, bytes in float64
        for _, rows in make_loader(plan, 0, plan.batches, placement.local_rows):
            if self._run.interrupted():
                return None
            scored = jax.device_get(self._step(params, placement.put(rows, evaluation=True)))
            values = np.stack([scored[name].astype(np.float64)
                               for name in ("nats", "tokens", "bytes")], axis=1)
            np.add.at(sums, scored["source"], values)
        result = summarise(*sums.sum(axis=0), prefix="eval")
        for source, row in zip(plan.sources, sums, strict=True):
            if row[1]:
                result |= summarise(*row, prefix=f"eval/{source}")
        return result
