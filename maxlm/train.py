"""Trains a language model: `python -m maxlm.train --config=configs/tiny.py --workdir=RUN`.

Writes RUN/metrics.jsonl, RUN/checkpoints/, RUN/config.json and the tokenizer. To resume a stopped
run, run the same command again: it continues from the newest complete checkpoint, with the batches
and losses of a run that was never stopped.
"""

if __name__ == "__main__":  # before the imports that take seconds
    from maxlm.cli.host_memory import restart_if_asked
    from maxlm.cli.stop_signals import exit_at_once
    restart_if_asked()
    exit_at_once()

import contextlib
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from maxlm.cli import host_memory
from maxlm.cli.command_line import run_command
from maxlm.cli.stop_signals import StopSignals
from maxlm.cli.train_arguments import parse_arguments
from maxlm.config import Config, ConfigError, to_plain
from maxlm.data.loader import make_loader
from maxlm.data.plan import Plan
from maxlm.evals import EvaluatedRun, Evaluator, build_evaluators
from maxlm.evals.held_out import evaluation_plan
from maxlm.models import counts
from maxlm.parallel import processes
from maxlm.parallel.batches import BatchPlacement
from maxlm.parallel.mesh import make_mesh
from maxlm.parallel.rules import logical_rules
from maxlm.telemetry import RunStart, open_sinks
from maxlm.telemetry.console import duration, log
from maxlm.training import step as steps
from maxlm.training.checkpoint_reader import Meta
from maxlm.training.checkpoints import Checkpointer
from maxlm.training.execution import kernel_note
from maxlm.training.faults import naming_full_disk, naming_no_memory
from maxlm.training.gradient_check import GradientCheck, wrong
from maxlm.training.memory import refuse_too_large
from maxlm.training.resume import refuse_other_run, start_notes
from maxlm.training.runs import sole_user, stored_config, write_run_files
from maxlm.training.schedule import resolve_schedule
from maxlm.training.state import TrainState, abstract_state, init_state
from maxlm.training.stop import AgreedStop, verify_stop


def main(argv: Sequence[str]) -> int:
    arguments, config = parse_arguments(argv, __doc__)
    workdir = arguments.workdir
    with contextlib.ExitStack() as stack:
        signals = stack.enter_context(StopSignals(arguments.grace_seconds))
        processes.start(arguments)
        if jax.process_count() > 1:
            signals.save_first()  # if one process exited alone, the others would wait for it
        if arguments.compilation_cache:
            jax.config.update("jax_compilation_cache_dir", arguments.compilation_cache)
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)
        stack.enter_context(naming_full_disk(workdir))
        stack.enter_context(sole_user(workdir))
        checkpointer = stack.enter_context(Checkpointer(workdir, config.checkpoint))
        return train(config, workdir, checkpointer, signals, stack, arguments.new_evaluation_set)


def train(config: Config, workdir: Path, checkpointer: Checkpointer, signals: StopSignals,
          stack: contextlib.ExitStack, new_evaluation_set: bool) -> int:
    """Runs to the last step, or until a signal. Returns the exit status.

    Args:
      stack: receives the context managers to close when the run ends, even if it fails.
      new_evaluation_set: resume although the evaluation set has changed.
    """
    first_process = jax.process_index() == 0
    report = log if first_process else lambda line: None

    # -- mesh and data -----------------------------------------------------------------------
    mesh = make_mesh(config.parallel)
    placement = BatchPlacement(mesh, logical_rules(config.parallel), config.data.batch_size,
                               config.run.accumulation_steps)
    stack.enter_context(naming_no_memory(refuse_too_large(config, mesh)))
    plan = Plan.build(config.data, config.run.seed, steps=config.run.steps)
    if plan.vocab_size > config.model.vocab_size:
        raise ConfigError(f"config.model.vocab_size: {config.model.vocab_size} is less than the "
                          f"tokenizer's vocabulary of {plan.vocab_size}; set it to "
                          f"{plan.vocab_size} or more")
    evaluation = evaluation_plan(config, plan.tokenizer_sha256) if (
        config.evals.every_steps) else None
    description = plan.describe() | {"evaluation": evaluation and evaluation.describe()}
    processes.require_same(config=json.dumps([to_plain(config), new_evaluation_set]),
                           corpus=plan.hash, evaluation_set=evaluation.hash if evaluation else "")
    report(f"maxlm: {counts.param_count(config.model) / 1e6:.1f} M parameters, "
           f"{config.data.batch_size} x {config.data.sequence_length} tokens a step, "
           f"{config.run.steps} steps, {jax.device_count()} {jax.devices()[0].platform} device(s) "
           f"of {jax.process_count()} process(es)")

    report(kernel_note(config, mesh))
    for line in plan.distorted():
        report(f"note: {line}")

    # -- state -------------------------------------------------------------------------------
    abstract = abstract_state(config, mesh)
    checkpointer.judge_by(evaluation.hash[:12] if evaluation else None)
    with host_memory.trim_after_compile() if checkpointer.steps() else contextlib.nullcontext():
        found = checkpointer.restore_newest(
            abstract, refuse_other_run(config, description, new_evaluation_set), report)
    if found is None:
        start, state, tokens_seen, saved_plan = 0, init_state(config, mesh), 0, {}
    else:
        start, state, tokens_seen, saved_plan = found[0], found[1], found[2].tokens, found[2].plan
        report(f"resuming after step {start} of {config.run.steps}" if start else
               f"starting from the weights in {workdir}")
    config, change = resolve_schedule(
        config, stored_config(found[2].config) if found and saved_plan["hash"] else None, start)
    stop = AgreedStop(signals.asked)
    evaluators = build_evaluators(EvaluatedRun(
        config, mesh, placement, abstract.params, evaluation, interrupted=stop.now))
    evaluated_first = [evaluator for evaluator in evaluators if start == 0 or stop.vote(
        first_process and evaluator.missing(start, workdir / "metrics.jsonl"))]
    if start >= config.run.steps and not evaluated_first:
        report(f"nothing to do: the checkpoint of step {start} is at or past the last step "
               f"({config.run.steps}); to train on, raise --config.run.steps. The learning rate "
               "then stays at the end of its schedule; --config.schedule.if_steps_change has the "
               "other choices")
        return 0
    if change:
        report(f"note: {change}")

    # -- programs ----------------------------------------------------------------------------
    began = time.monotonic()
    train_step = steps.compile_train_step(
        config, mesh, abstract, placement.abstract(config.data.sequence_length))
    for evaluator in evaluators:
        evaluator.compile()
    gradient_check = GradientCheck(
        config, mesh, abstract.params, placement.abstract(config.data.sequence_length)
    ) if config.telemetry.gradient_check_every else None
    if gradient_check and gradient_check.note:
        report(f"note: {gradient_check.note}")
    report(f"compiled in {time.monotonic() - began:.1f} s")

    # -- outputs: a start that was refused has written nothing until here -------------------
    if first_process:
        write_run_files(config, workdir, plan.tokenizer())
    sinks = open_sinks(RunStart(
        config, workdir, (start or -1) if found else None, report)) if first_process else []
    for sink in sinks:
        stack.enter_context(contextlib.closing(sink))

    def write(row: dict[str, Any]) -> None:
        for sink in sinks:
            sink.write(row)

    lines, row = start_notes(start, description, saved_plan)
    for line in lines:
        report(line)
    if row:
        write(row)
    description["evaluation"] = description["evaluation"] or saved_plan.get("evaluation")

    # -- loop --------------------------------------------------------------------------------
    passed_epochs = plan.passed_epochs()
    finished_last = time.monotonic()

    def finish(step: int, metrics: Any, vote: Any, waited: float) -> None:
        """Waits for a dispatched step and reports it."""
        nonlocal tokens_seen, finished_last
        stop.count(vote)
        values = {name: float(value) for name, value in jax.device_get(metrics).items()}
        now = time.monotonic()
        seconds, finished_last = now - finished_last, now
        tokens_seen += int(values["tokens"])
        row = {"step": step} | {name: values[name] for name in (
            "loss", "grad_norm", "update_norm", "param_norm", "learning_rate")}
        row |= {"tokens": tokens_seen, "tokens_per_second": values["tokens"] / seconds,
                "step_seconds": seconds, "data_wait_seconds": waited}
        if step % config.telemetry.log_every == 0 or step == config.run.steps:
            write(row)
        checkpointer.after_step(step, values)
        if step in passed_epochs:
            report(f"step {step}: epochs passed: " + ", ".join(
                f"{name} {epochs}" for name, epochs in passed_epochs[step].items()))
            write({"step": step} | {f"data/{name}/epochs": epochs
                                    for name, epochs in passed_epochs[step].items()})

    def evaluate(due: Sequence[Evaluator], step: int, state: TrainState) -> None:
        nonlocal finished_last, cut_short
        for evaluator in due:
            row = evaluator.run(state)
            if row is None:
                cut_short = True  # the next start repeats the evaluations that are missing
                return
            write({"step": step, **row})
            report(f"step {step}: {evaluator.summary(row)}")
            if "eval/loss" in row:
                checkpointer.after_evaluation(step, row["eval/loss"])
        finished_last = time.monotonic()

    def check_gradient(check: GradientCheck, step: int, state: TrainState, batch: Any) -> None:
        nonlocal finished_last
        began = time.monotonic()
        row = check.run(state.params, batch, step, stop.now)
        if row:
            write({"step": step, **row})
        for line in wrong(row or {}):
            report(f"note: step {step}: {line}")
        finished_last += time.monotonic() - began  # not a part of the step's time

    def save(step: int, state: TrainState) -> None:
        nonlocal finished_last
        for sink in sinks:
            sink.sync()
        checkpointer.save(step, state, Meta(
            config=to_plain(config), plan=description, tokens=tokens_seen))
        finished_last = time.monotonic()

    cut_short = False
    evaluate(evaluated_first, start, state)
    loader = stack.enter_context(contextlib.closing(make_loader(
        plan, start, config.run.steps, placement.local_rows, workers=config.data.workers,
        prefetch=config.data.prefetch)))
    pending: tuple[int, Any, Any, float] | None = None
    finished_last = began = time.monotonic()
    done = saved = start
    for step in range(start + 1, config.run.steps + 1):
        if stop.due():
            break
        last = step == config.run.steps
        due = [evaluator for evaluator in evaluators if evaluator.due(step)]
        save_now = checkpointer.due(step) or last
        check_now = gradient_check is not None and gradient_check.due(step)
        if pending and (due or save_now or check_now):
            # Finish the previous step first, so that the times of the two steps are separate.
            finish(*pending)
            pending = None
        asked = time.monotonic()
        index, rows = next(loader)
        assert index == step - 1, (index, step)
        batch = placement.put(rows)
        waited = time.monotonic() - asked
        if gradient_check and check_now:
            check_gradient(gradient_check, step, state, batch)
        if step == start + 1:
            signals.save_first()
            with host_memory.trim_after_compile():
                state, metrics = jax.block_until_ready(train_step(state, batch))
        else:
            state, metrics = train_step(state, batch)
        done, vote = step, stop.vote()
        # The device computes this step while the metrics of the previous step are fetched.
        if pending:
            finish(*pending)
        pending = (step, metrics, vote, waited)
        if due or save_now:
            finish(*pending)
            pending = None
        if due:
            evaluate(due, step, state)
        if save_now:  # after the evaluation: a run killed between the two repeats the evaluation
            save(step, state)
            saved = step
    if pending:
        finish(*pending)
    if done > saved:
        save(done, state)
    complete = done == config.run.steps and not cut_short
    if complete:
        checkpointer.after_last_step(done)
    checkpointer.close()
    if not complete:
        report(verify_stop(checkpointer, done, start))
        return signals.status
    report(f"done: {config.run.steps} steps, {tokens_seen:,} tokens, "
           f"{duration(time.monotonic() - began)}; {workdir}")
    return 0


if __name__ == "__main__":
    run_command(main)
