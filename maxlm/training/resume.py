"""Checks on resume that model, training data and evaluation set are those of the checkpoint.

A checkpoint stores the plan of the run's data (`Plan.describe`) and what its evaluations score
(`EvaluationPlan.describe`), down to the checksum of each file. Training data must be unchanged up
to the step of the checkpoint; later stages of the mixture may differ. The evaluation set must be
unchanged unless the user asks for a new one.
"""

import operator
import typing
from collections.abc import Callable
from typing import Any

from maxlm.config import Config, DataConfig, RunConfig, natures, to_plain
from maxlm.training.checkpoint_reader import CheckpointError, Meta, differences
from maxlm.training.runs import stored_config

_SHOWN = 6  # differences, or files of a source, in one message


def refuse_other_run(config: Config, plan: dict[str, Any], new_evaluation_set: bool = False
                     ) -> Callable[[int, Meta], None]:
    """A check that a checkpoint is of this run: model shape, training data, evaluation set.

    Args:
      config: of this command.
      plan: `Plan.describe()` of this command, with the field `evaluation`:
        `EvaluationPlan.describe()` or None.
      new_evaluation_set: accept a changed evaluation set.

    Returns:
      A function of a checkpoint's step and `Meta`; it raises CheckpointError with the differences.
    """

    def check(step: int, meta: Meta) -> None:
        lines = model_differences(stored_config(meta.config), config)
        advice = "Use another --workdir, or the config it was started with"
        if meta.plan["hash"] is not None:
            found = data_differences(meta.plan, plan, step)
            if any(": weight of " in line or ": added (" in line for line in found):
                advice += (f". To change the mixture after step {step}, leave config.data.tokens "
                           "as it was and set config.data.stages")
            lines += found
        elif meta.plan["tokenizer_sha256"] != plan["tokenizer_sha256"]:
            # Initial weights: any data is allowed that was made with their tokenizer.
            lines.append("config.data.tokens: made with tokenizer "
                         f"{plan['tokenizer_sha256'][:12]}, but the weights to start from are for "
                         f"{meta.plan['tokenizer_sha256'][:12]}, which lies in --workdir; "
                         "tokenize the texts with it")
        if lines:
            raise CheckpointError("--workdir: its checkpoints are of another run: "
                                  f"{_joined(lines)}. {advice}")
        lines = evaluation_differences(meta.plan.get("evaluation"), plan["evaluation"])
        if lines and not new_evaluation_set:
            raise CheckpointError(
                f"--workdir: the evaluation set has changed: {_joined(lines)}. Restore it, or add "
                "--new_evaluation_set to go on with this one; metrics.jsonl then says from which "
                "step it is scored")

    return check


def model_differences(saved: Config, wanted: Config) -> list[str]:
    """How the models of two configs differ, a line for each field."""
    lines = []
    for name, affects in natures(Config).items():
        if "model" in affects:
            value = operator.attrgetter(name)
            lines += differences(to_plain(value(saved)), to_plain(value(wanted)), f"config.{name}")
    return lines


def _plan_settings() -> dict[str, str]:
    """Field of a plan -> name of the setting, for those that a plan stores as they were given.

    A plan is made from the sections run and data. It stores the files that config.data.tokens and
    config.data.stages select and not these settings, whose types hold `TokenSource`.
    """
    return {field: f"config.{section}.{field}"
            for section, kind in (("run", RunConfig), ("data", DataConfig))
            for field, affects in natures(kind).items()
            if "data" in affects and typing.get_type_hints(kind)[field] in (int, str)}


def data_differences(saved: dict[str, Any], wanted: dict[str, Any], step: int) -> list[str]:
    """How the training data of two plans differ in the first `step` steps, one line each."""
    if saved["hash"] == wanted["hash"]:
        return []
    if saved.get("format", 1) != wanted["format"]:
        return [f"its data order has format {saved.get('format', 1)}, this version of maxlm makes "
                f"format {wanted['format']}; finish it with the version it was started with"]
    lines = [line for field, name in _plan_settings().items() if field in wanted
             for line in differences(saved[field], wanted[field], name)]
    lines += differences(saved["tokenizer_sha256"], wanted["tokenizer_sha256"],
                         "tokenizer of config.data.tokens (sha256)")
    if saved["split"] != wanted["split"]:
        return lines  # other files altogether
    plans = (saved, wanted)
    past = [[stage for stage in plan["stages"] if stage["after_step"] < step] for plan in plans]
    names = [{source["name"] for stage in stages for source in stage["sources"]}
             for stages in past]
    before, now = ([source for source in plan["sources"] if source["name"] in read]
                   for plan, read in zip(plans, names, strict=True))
    lines += source_differences(before, now, saved["split"])
    # The rows of a source in a period follow from the fields compared so far.
    return lines or _stage_differences(past[0], past[1], step)


def evaluation_differences(saved: dict[str, Any] | None, wanted: dict[str, Any] | None
                           ) -> list[str]:
    """How two evaluation sets differ, one line each; empty if one of them is None."""
    if saved is None or wanted is None or saved["hash"] == wanted["hash"]:
        return []
    if saved["split"] != wanted["split"]:
        return differences(saved["split"], wanted["split"], "config.evals.split")
    return source_differences(saved["sources"], wanted["sources"], saved["split"]) or differences(
        saved["rows"], wanted["rows"], "rows that are scored (config.evals.batches)")


def source_differences(saved: list[dict[str, Any]], wanted: list[dict[str, Any]], split: str
                       ) -> list[str]:
    """Sources of a split that were added, removed or changed: a line each, with counts or files."""
    before, now = ({source["name"]: source for source in sources} for sources in (saved, wanted))
    lines = []
    for name in dict.fromkeys([*before, *now]):
        old, new = before.get(name), now.get(name)
        place = f"split {split!r}, source {name!r}"
        if old is None or new is None:
            lines.append(f"{place}: {'added' if old is None else 'removed'} ({_size(new or old)})")
        elif old["fingerprint"] != new["fingerprint"]:
            files = [f"{file} {_change(old['files'].get(file), new['files'].get(file))}"
                     for file in sorted({*old["files"], *new["files"]})
                     if old["files"].get(file) != new["files"].get(file)]
            sizes = f"{_size(old)} in the checkpoint, {_size(new)} now; " if (
                _size(old) != _size(new)) else ""
            lines.append(f"{place}: {sizes}{_joined(files, ', ')}")
    return lines


def _change(old: str | None, new: str | None) -> str:
    return "is new" if old is None else "is gone" if new is None else "has another checksum"


def _size(source: dict[str, Any] | None) -> str:
    assert source is not None
    return f"{source['documents']:,} documents, {source['tokens']:,} tokens"


def _joined(lines: list[str], separator: str = "; ") -> str:
    more = f"{separator}and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return separator.join(lines[:_SHOWN]) + more


def _stage_differences(saved: list[dict[str, Any]], wanted: list[dict[str, Any]], step: int
                       ) -> list[str]:
    """How the mixtures before a checkpoint's step differ when their sources are the same."""
    before, now = ({stage["after_step"]: stage["sources"] for stage in stages}
                   for stages in (saved, wanted))
    lines = []
    for after_step in sorted({*before, *now}):
        if after_step not in now:
            lines.append(f"config.data.stages: the run changed its mixture after step {after_step},"
                         " this config does not")
        elif after_step not in before:
            lines.append(f"config.data.stages: after_step {after_step} lies before the checkpoint "
                         f"of step {step}, which was trained without this stage; a stage can begin "
                         f"after step {step} at the earliest")
        elif before[after_step] != now[after_step]:
            old, new = ({source["name"]: source for source in stages[after_step]}
                        for stages in (before, now))
            when = f"mixture after step {after_step}" if after_step else "config.data.tokens"
            changed = [name for name in dict.fromkeys([*old, *new])
                       if old.get(name, {}).get("rows") != new.get(name, {}).get("rows")]
            lines += [f"{when}: weight of source {name!r}: checkpoint {_weight(old, name)}, this "
                      f"run {_weight(new, name)}" for name in changed]
            if not changed and list(old) != list(new):
                lines.append(f"{when}: order of the sources: checkpoint {', '.join(old)}, this run "
                             f"{', '.join(new)}")
    return lines


def _weight(sources: dict[str, dict[str, Any]], name: str) -> str:
    return f"{sources[name]['weight']:.6g}" if name in sources else "0"


def start_notes(step: int, plan: dict[str, Any], saved: dict[str, Any]
                ) -> tuple[list[str], dict[str, Any]]:
    """Describes what the run reads from its next step on, for the console and metrics.jsonl.

    Args:
      step: of the checkpoint, 0 for a new run.
      plan: as in `refuse_other_run`.
      saved: the plan stored in the checkpoint; empty for a new run.

    Returns:
      Lines for the console, and a row for metrics.jsonl with those of
      `data/SOURCE/planned_epochs` and `eval/set` that differ from the checkpoint; an empty row if
      none differs.
    """
    planned = {source["name"]: source["epochs"] for source in plan["sources"]}
    lines = ["epochs planned: " + ", ".join(
        f"{name} {epochs:.2f}" if epochs >= 0.01 else f"{name} under 0.01"
        for name, epochs in sorted(planned.items(), key=lambda item: -item[1]))]
    lines += [f"mixture after step {stage['after_step']}: " + ", ".join(
        f"{source['name']} {source['weight']:.3g}" for source in stage["sources"])
        for stage in plan["stages"][1:]]
    before = {source["name"]: source["epochs"] for source in saved.get("sources", [])}
    row: dict[str, Any] = {f"data/{name}/planned_epochs": epochs
                           for name, epochs in planned.items() if before.get(name) != epochs}
    evaluation, old = plan["evaluation"], saved.get("evaluation")
    if evaluation and (old is None or old["hash"] != evaluation["hash"]):
        row["eval/set"] = evaluation["hash"][:12]
        if old is not None:
            row["eval/previous_set"] = old["hash"][:12]
            lines.append(f"note: evaluations from step {step + 1} on score a new evaluation set: "
                         + _joined(evaluation_differences(old, evaluation)))
    return lines, {"step": step + 1 if step else 0, **row} if row else {}
