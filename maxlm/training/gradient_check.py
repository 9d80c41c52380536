"""Compares the gradient with finite differences of the loss while a run trains.

The loss f is the mean over the trained tokens of a batch, at the weights of that step, in float32
whatever the run's precision. For each parameter p a random direction v is drawn, normal entries
with the root mean square of p. The gradient g says that f changes along it at the rate g.v; the
finite difference says

    D(h) = (f(p + h v) - f(p - h v)) / 2h,    D = (4 D(h) - D(2h)) / 3

A direction of its own for each parameter, because the largest gradients would hide the others in a
direction over all parameters. The error of a parameter is |D - g.v| over the root mean square of
g.v over such directions, |g| rms(p), or over |D| if that is larger; so a gradient that is missing
has error 1. The check passes up to a limit, the sum of

- TOLERANCE, 1 %: for rounding in the backward pass.
- truncation: D has error h^4 f'''''/30 + ... along v (the central difference of fourth order,
  B. Fornberg, Math. Comp. 51, 1988, table 1). The error of D(h) alone, of order h^2, bounds it, and
  is about |D(h) - D(2h)| / 3.
- rounding: if each f has an error of standard deviation s, that of D is
  sqrt(2 (8^2 + 1^2)) s / 12h = 0.95 s/h. SIGMAS of them are allowed. s is measured, because it
  depends on batch, device and order of sums: from second differences of f at equal steps too small
  for f to bend, sqrt(mean((f0 - 2 f1 + f2)^2) / 6) (J. J. More and S. M. Wild, Estimating
  computational noise, SIAM J. Sci. Comput. 33, 2011).

The sum of both errors is least at h = (0.95 s / 4T)^(1/5) where T h^4 is the truncation error
(the argument of J. Nocedal and S. J. Wright, Numerical Optimization, 2006, section 8.1). f bends
over steps of the size of the weights, so T is about the derivative itself. With a derivative of
1e-3 per relative change of a parameter, and s = 3e-7, half a unit in the last place of a loss of 8,
h is 0.15: STEP is 1/8. There the truncation error is below 1e-3 and rounding 2e-3 of the
derivative. Where a gradient is so small that its limit is above 1, nothing is checked; the limit is
reported with the error.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from maxlm.config import Config, ConfigError
from maxlm.kernels.compiler import compiler_options
from maxlm.parallel.execution import Execution
from maxlm.parallel.rules import logical_rules, parts, path_name
from maxlm.training.execution import make_execution
from maxlm.training.objectives import Batch, Losses, objective_of, step_key
from maxlm.training.step import loss_and_gradients, split_microbatches

STEP = 0.125
TOLERANCE = 0.01
SIGMAS = 6
SMALLEST = 0.01  # entries of a direction for parameters that are zero or almost, as biases at first

NOISE_STEP = 2.0**-20  # a few units in the last place of a weight
NOISE_POINTS = 8
ALL = -1  # in place of a parameter's number


def _directions(params: Any, key: jax.Array) -> list[jax.Array]:
    leaves = jax.tree.leaves(params)
    return [jnp.maximum(jnp.sqrt(jnp.mean(leaf**2)), SMALLEST)
            * jax.random.normal(jax.random.fold_in(key, number), leaf.shape)
            for number, leaf in enumerate(leaves)]


def _loss_sums(config: Config, how: Execution, params: Any, batch: Batch, step: jax.Array,
               key: jax.Array, number: jax.Array, offset: jax.Array) -> Losses:
    """Sum and count of each loss for each microbatch, [A] each, with parameter `number`, or all,
    moved by `offset` times its direction."""
    leaves, structure = jax.tree.flatten(params)
    moved = [leaf + jnp.where((number == i) | (number == ALL), offset, 0) * direction
             for i, (leaf, direction) in enumerate(zip(leaves, _directions(params, key),
                                                       strict=True))]
    moved = structure.unflatten(moved)
    count = config.run.accumulation_steps
    return jax.lax.map(
        lambda microbatch: objective_of(config).loss(
            moved, microbatch[1], config, step_key(config.run.seed, step, microbatch[0]), how),
        (jnp.arange(count), split_microbatches(batch, count)))


def _derivatives(config: Config, how: Execution, params: Any, batch: Batch, step: jax.Array,
                 key: jax.Array) -> jax.Array:
    """[2, parameters]: g.v, and its root mean square over directions."""
    losses, grads = loss_and_gradients(config, how, params, batch, step)
    tokens = losses[next(iter(objective_of(config).weights))][1]
    pairs = [(jnp.sum(grad * direction),
              jnp.linalg.norm(grad) * jnp.sqrt(jnp.mean(direction**2)))
             for grad, direction in zip(jax.tree.leaves(grads), _directions(params, key),
                                        strict=True)]
    return jnp.array(pairs).T / jnp.maximum(tokens, 1.0)


class GradientCheck:
    """Checks the gradient of the train step each time that `run` is called.

    Args:
      config: of the run.
      mesh: of the run.
      params, batch: arrays, or their shapes and shardings; compilation needs no values.

    Attributes:
      note: what the check leaves out, or None.

    Raises:
      ConfigError: `model.attention` names a kernel that cannot compute in float32.
    """

    def __init__(self, config: Config, mesh: Mesh, params: Any, batch: Batch):
        # One row on each device at a time: float32 needs no more memory than the train step, and
        # the host adds the rows in float64, so that fewer bits of the sum are lost.
        rows = config.data.batch_size // parts("batch", logical_rules(config.parallel), mesh)
        kernel = make_execution(config, mesh).attention
        config = dataclasses.replace(
            config, run=dataclasses.replace(config.run, accumulation_steps=rows),
            precision=dataclasses.replace(config.precision, compute="float32"))
        try:
            how = make_execution(config, mesh)
        except ConfigError as error:
            raise ConfigError("config.telemetry.gradient_check_every: the check runs in float32, "
                              f"but {error}") from None
        self.note = None if how.attention == kernel else (
            f"the gradient check runs in float32 with attention {how.attention}; the gradient of "
            f"{kernel} is not checked")
        self._weights = objective_of(config).weights
        self._seed, self._every = config.run.seed, config.telemetry.gradient_check_every
        self.names = [path_name(path) for path, _ in jax.tree_util.tree_leaves_with_path(params)]

        def compiled(function: Callable[..., Any], *scalars: Any) -> jax.stages.Compiled:
            program = jax.jit(functools.partial(function, config, how),
                              out_shardings=NamedSharding(mesh, PartitionSpec()))
            with jax.set_mesh(mesh):
                return program.lower(
                    params, batch, np.int32(0), jax.random.key(0), *scalars).compile(
                    compiler_options=compiler_options(config.precision, mesh))

        self._derivatives = compiled(_derivatives)
        self._loss_sums = compiled(_loss_sums, np.int32(0), np.float32(0))

    def due(self, step: int) -> bool:
        """Whether to check before step `step`, counted from 1."""
        return step % self._every == 0

    def run(self, params: Any, batch: Batch, step: int,
            interrupted: Callable[[], bool] = lambda: False) -> dict[str, float] | None:
        """Checks the gradient of each parameter along a direction that depends on seed and step.

        Args:
          interrupted: called before each evaluation of the loss; True ends the check.

        Returns:
          gradient_check/PARAMETER/error and gradient_check/PARAMETER/limit; None if interrupted.
        """
        key = jax.random.fold_in(jax.random.key(self._seed), step)
        offsets = STEP * np.array([-2, -1, 1, 2])
        points = [(ALL, NOISE_STEP * i) for i in range(NOISE_POINTS)]
        points += [(number, offset) for number in range(len(self.names)) for offset in offsets]
        along, usual = jax.device_get(self._derivatives(
            params, batch, np.int32(step - 1), key))
        losses = []
        for number, offset in points:
            if interrupted():
                return None
            found = jax.device_get(self._loss_sums(
                params, batch, np.int32(step - 1), key, np.int32(number), np.float32(offset)))
            losses.append(sum(
                weight * found[name][0].astype(np.float64).sum() / max(found[name][1].sum(), 1.0)
                for name, weight in self._weights.items()))
        noise, moved = losses[:NOISE_POINTS], np.reshape(losses[NOISE_POINTS:], (-1, 4))
        errors, limits = _compare(along, usual, np.array(noise), moved)
        return {f"gradient_check/{name}/{field}": float(value)
                for i, name in enumerate(self.names)
                for field, value in (("error", errors[i]), ("limit", limits[i]))}


def _compare(along: np.ndarray, usual: np.ndarray, noise: np.ndarray, moved: np.ndarray
             ) -> tuple[np.ndarray, np.ndarray]:
    """Error and limit of each parameter, see the top of this file.

    Args:
      along, usual: g.v and its root mean square, [parameters].
      noise: losses at NOISE_POINTS equal steps.
      moved: losses at -2, -1, 1 and 2 steps along each parameter's direction, [parameters, 4].
    """
    one = (moved[:, 2] - moved[:, 1]) / (2 * STEP)
    two = (moved[:, 3] - moved[:, 0]) / (4 * STEP)
    difference = (4 * one - two) / 3
    scale = np.maximum(np.maximum(usual, np.abs(difference)), np.finfo(np.float32).tiny)
    # At least half a unit in the last place, for sums that happen to be rounded alike.
    sigma = max(np.sqrt(np.mean(np.diff(noise, 2)**2) / 6), 2.0**-25 * noise[0])
    rounding = SIGMAS * np.sqrt(130) / 12 * sigma / STEP
    limits = TOLERANCE + (np.abs(one - two) / 3 + rounding) / scale
    return np.abs(difference - along) / scale, limits


def wrong(row: dict[str, float]) -> list[str]:
    """A line for each parameter whose error is above its limit or is not a number."""
    checked = {name.removesuffix("/error"): value for name, value in row.items()
               if name.endswith("/error")}
    return [f"the gradient of {name.removeprefix('gradient_check/')} differs from finite "
            f"differences of the loss by {error:.2g} of its size (limit {row[f'{name}/limit']:.2g})"
            for name, error in checked.items() if not error <= row[f"{name}/limit"]]
