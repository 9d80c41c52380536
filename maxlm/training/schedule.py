"""The learning-rate schedule, and how it changes when a run gets another length."""

import dataclasses

import jax
import jax.numpy as jnp

from maxlm.config import Config, ScheduleConfig


def learning_rate(schedule: ScheduleConfig, steps: int, step: jax.Array | int) -> jax.Array:
    """Learning rate of optimizer step `step`, counted from 0.

    Warm-up is linear and ends at the peak: step k of w uses peak * (k + 1) / w, so the first step
    already has a positive rate. The cosine (arXiv:1608.03983, without restarts) starts at the last
    step of the warm-up and reaches peak * final_fraction exactly at the last step of the schedule.
    Later steps keep that final rate.

    A re-warmed schedule (arXiv:2403.08763) begins at `schedule.start_step`, and its warm-up rises
    from `schedule.start_rate` instead of 0.

    Args:
      schedule: the section of the config.
      steps: length of the run; used as length of the schedule if `schedule.steps` is None.
      step: int32 scalar or array, schedule.start_step <= step.

    Returns:
      float32, one rate for each step.
    """
    length = (schedule.steps or steps) - schedule.start_step
    k = jnp.asarray(step - schedule.start_step, jnp.float32)
    warmup = jnp.minimum((k + 1) / max(schedule.warmup_steps, 1), 1.0)
    if schedule.name == "constant":
        curve = jnp.float32(1.0)
    else:
        peak_step = max(schedule.warmup_steps - 1, 0)
        progress = jnp.clip((k - peak_step) / max(length - 1 - peak_step, 1), 0.0, 1.0)
        cosine = 0.5 * (1.0 + jnp.cos(jnp.pi * progress))
        curve = schedule.final_fraction + (1.0 - schedule.final_fraction) * cosine
    rise = schedule.learning_rate - schedule.start_rate
    return ((schedule.start_rate + rise * warmup) * curve).astype(jnp.float32)


def resolve_schedule(
    config: Config, saved: Config | None, step: int
) -> tuple[Config, str | None]:
    """The config with the schedule for the steps after `step`, and with its length set.

    A new run plans its schedule for `run.steps`. A resumed run keeps its checkpoint's schedule. If
    `run.steps` has changed, `schedule.if_steps_change` decides. If the command sets
    `schedule.steps` to another length, the schedule is planned for that length from step 0.

    Args:
      config: of this command.
      saved: config in the checkpoint that the run resumes from; None for a new run.
      step: steps done.

    Returns:
      The config, and a line for the user if the rates of the remaining steps differ from those
      planned when the checkpoint was saved or depend on `schedule.if_steps_change`; else None.

    Raises:
      ConfigError: the warm-up is longer than the schedule.
    """
    wanted = config.schedule
    if saved is None:
        return _with(config, dataclasses.replace(
            wanted, steps=wanted.steps or config.run.steps)), None
    old = dataclasses.replace(saved.schedule, steps=saved.schedule.steps or saved.run.steps)
    kept = dataclasses.replace(wanted, steps=old.steps, start_step=old.start_step,
                               start_rate=old.start_rate)
    choices = {
        "hold": kept,
        "rewarm": dataclasses.replace(
            wanted, steps=config.run.steps, start_step=step,
            start_rate=_rate(old, max(step - 1, 0))),
        "replan": dataclasses.replace(
            wanted, steps=config.run.steps, start_step=0, start_rate=0.0),
    }
    resized = config.run.steps != saved.run.steps
    if wanted.steps not in (None, old.steps):
        new = dataclasses.replace(wanted, start_step=0, start_rate=0.0)
    else:
        new = choices[wanted.if_steps_change] if resized else kept
    if step >= config.run.steps:
        return _with(config, new), None
    _with(config, new).check("config")
    line = _describe_change(config, saved, step, old, new, choices if resized else {})
    return _with(config, new), line


def _with(config: Config, schedule: ScheduleConfig) -> Config:
    return dataclasses.replace(config, schedule=schedule)


def _rate(schedule: ScheduleConfig, step: int) -> float:
    return float(learning_rate(schedule, 0, step))


def _describe_change(config: Config, saved: Config, step: int, old: ScheduleConfig,
                     new: ScheduleConfig, choices: dict[str, ScheduleConfig]) -> str | None:
    """One line with the rates before and after, and those of the other choices; None if the
    remaining steps have their planned rates whichever choice is used."""
    last = config.run.steps

    def rates(schedule: ScheduleConfig) -> str:
        return (f"{_rate(schedule, step):.3g} at step {step + 1}, "
                f"{_rate(schedule, last - 1):.3g} at step {last}")

    def same(a: ScheduleConfig, b: ScheduleConfig) -> bool:
        steps = jnp.arange(step, last)
        return bool(jnp.array_equal(learning_rate(a, 0, steps), learning_rate(b, 0, steps)))

    if same(old, new) and all(same(new, choice) for choice in choices.values()):
        return None
    done = f"learning rate: {_rate(old, step - 1):.3g} at step {step}, " if step else (
        "learning rate: ")
    line = done + rates(new)
    if not choices:
        return f"{line}; planned was {rates(old)}"
    used = next((name for name, choice in choices.items() if choice == new), None)
    others = "; ".join(f"{name}: {rates(choice)}" for name, choice in choices.items()
                       if name != used)
    how = f"schedule.if_steps_change={used}" if used else f"schedule.steps={new.steps}"
    return (f"{line} ({how}, because run.steps is now {last} and was {saved.run.steps}). "
            f"Other values of schedule.if_steps_change give {others}")
