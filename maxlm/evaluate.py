"""Scores a checkpoint on held-out text: `python -m maxlm.evaluate --workdir=RUN [--step=N]`.

Prints one JSON object on standard output: loss (nats per token), perplexity and bits per byte, over
all and by source. `eval/set` identifies the rows that were scored; the run's metrics.jsonl has the
same value if they are the same. Fields of the run's config that leave the model unchanged can be
overridden, for example --config.data.tokens=OTHER (made with the same tokenizer),
--config.evals.split=test or --config.evals.batches=100.
"""

import json
from collections.abc import Sequence

from maxlm.cli.command_line import Parser, run_command
from maxlm.config import Config, ConfigError, natures, split_overrides
from maxlm.evals.evaluator import EvaluatedRun
from maxlm.evals.held_out import HeldOut, evaluation_plan
from maxlm.parallel.batches import BatchPlacement
from maxlm.telemetry.console import log
from maxlm.telemetry.metrics import finite_row
from maxlm.training.resume import evaluation_differences
from maxlm.training.runs import open_run


def main(argv: Sequence[str]) -> int:
    parser = Parser(prog="python -m maxlm.evaluate", description=__doc__)
    parser.add_argument("--workdir", required=True, help="directory of the training run")
    parser.add_argument("--step", type=int, help="which checkpoint (default: the newest)")
    rest, overrides = split_overrides(argv)
    arguments = parser.parse_args(rest)

    run = open_run(arguments.workdir, arguments.step, overrides)
    placement = BatchPlacement(run.mesh, run.config.data.batch_size)
    try:
        plan = evaluation_plan(run.config, run.tokenizer.sha256)
    except ConfigError as error:
        if "data.tokens" in dict(overrides) or "no directory" not in str(error):
            raise
        raise ConfigError(f"{error}; if the tokens were moved, give "
                          "--config.data.tokens=PATH") from None
    changed = evaluation_differences(run.plan.get("evaluation"), plan.describe())
    if changed and not any("data" in natures(Config)[name] for name, _ in overrides):
        log(f"note: not the evaluation set of the run's metrics.jsonl: {'; '.join(changed)}")
    evaluated = EvaluatedRun(run.config, run.mesh, placement, run.params, plan)
    scores = HeldOut(evaluated).score(run.params)
    assert scores is not None  # nothing interrupts it
    print(json.dumps(finite_row({"step": run.step, "split": run.config.evals.split,
                                 "eval/set": plan.hash[:12], **scores}), indent=2))
    return 0


if __name__ == "__main__":
    run_command(main)
