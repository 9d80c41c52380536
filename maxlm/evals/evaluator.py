"""What an evaluator is: something that measures the model at some steps of a run."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from maxlm.config import Config
from maxlm.data.evaluation_plan import EvaluationPlan
from maxlm.parallel.batches import BatchPlacement
from maxlm.telemetry.metrics import read_metrics
from maxlm.training.state import TrainState


@dataclasses.dataclass(frozen=True)
class EvaluatedRun:
    """What an evaluator may need to know of a run.

    Attributes:
      config: of the run.
      mesh, placement: the devices of parameters and rows.
      params: shapes and shardings of the weights, or the weights.
      plan: the held-out rows; None if the config asks for no evaluation of them.
      interrupted: whether a long evaluation should stop. All processes must call it equally often.
    """

    config: Config
    mesh: jax.sharding.Mesh
    placement: BatchPlacement
    params: Any
    plan: EvaluationPlan | None
    interrupted: Callable[[], bool] = lambda: False


class Evaluator:
    """Base class. A new evaluator sets `name`, overrides `due` and `run`, is listed in
    `maxlm.evals.EVALUATORS`, and is then used by each run whose config asks for it.

    Attributes:
      name: the metric that each of its rows has, for example eval/loss.
    """

    name: str

    @classmethod
    def build(cls, run: EvaluatedRun) -> "Evaluator | None":
        """The evaluator for a run, or None if the config does not ask for it."""
        return cls()

    def compile(self) -> None:
        """Compiles what `run` needs, so that a mistake shows before the first step."""

    def due(self, step: int) -> bool:
        """Whether the evaluator runs after the step. Before the first step, each one runs."""
        raise NotImplementedError

    def run(self, state: TrainState) -> dict[str, Any] | None:
        """A row of metrics, in all processes; None if a signal stopped it before the end."""
        raise NotImplementedError

    def summary(self, row: dict[str, Any]) -> str:
        """A few words about a row, for the console."""
        return f"{self.name} {row[self.name]:.4f}"

    def missing(self, step: int, metrics: Path) -> bool:
        """Whether a signal stopped the run after `step` and before the evaluation that follows it.

        Args:
          metrics: the metrics.jsonl of the run.
        """
        rows = read_metrics(metrics) if metrics.exists() else []
        evaluated = {row["step"] for row in rows if self.name in row}
        return self.due(step) and bool(evaluated) and step not in evaluated
