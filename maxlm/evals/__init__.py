"""What is measured during a run. A new evaluator is a subclass of `Evaluator` and an entry in
`EVALUATORS`."""

from maxlm.evals.evaluator import EvaluatedRun, Evaluator
from maxlm.evals.held_out import HeldOut

EVALUATORS: list[type[Evaluator]] = [HeldOut]


def build_evaluators(run: EvaluatedRun) -> list[Evaluator]:
    """The evaluators that the run's config asks for."""
    return [evaluator for kind in EVALUATORS if (evaluator := kind.build(run)) is not None]
