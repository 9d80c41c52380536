"""Learning rate as a function of the step."""

import jax
import jax.numpy as jnp

from maxlm.config import ScheduleConfig


def learning_rate(schedule: ScheduleConfig, steps: int, step: jax.Array | int) -> jax.Array:
    """Learning rate of optimizer step `step`, the first being 0.

    Warm-up is linear and ends at the peak: step k of w uses peak * (k + 1) / w, so no step is
    wasted at zero. The cosine (arXiv:1608.03983, without restarts) starts at the last step of the
    warm-up and reaches peak * final_fraction exactly at the last step of the run.

    Args:
      schedule: the curve.
      steps: length of the run.
      step: int32 scalar, 0 <= step < steps.

    Returns:
      float32 scalar.
    """
    k = jnp.asarray(step, jnp.float32)
    warmup = jnp.minimum((k + 1) / max(schedule.warmup_steps, 1), 1.0)
    if schedule.name == "constant":
        curve = jnp.float32(1.0)
    else:
        peak_step = max(schedule.warmup_steps - 1, 0)
        progress = jnp.clip((k - peak_step) / max(steps - 1 - peak_step, 1), 0.0, 1.0)
        cosine = 0.5 * (1.0 + jnp.cos(jnp.pi * progress))
        curve = schedule.final_fraction + (1.0 - schedule.final_fraction) * cosine
    return (schedule.learning_rate * warmup * curve).astype(jnp.float32)
