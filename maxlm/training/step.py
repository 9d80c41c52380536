"""The train step and the evaluation step, and how they are compiled.

Shapes: B rows of the global batch, T tokens of a row, A microbatches.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec

from maxlm.config import Config
from maxlm.kernels.compiler import compiler_options
from maxlm.models import transformer
from maxlm.parallel.execution import Execution
from maxlm.training.execution import make_execution
from maxlm.training.objectives import Batch, Losses, objective_of, step_key
from maxlm.training.optimizer import make_optimizer
from maxlm.training.schedule import learning_rate
from maxlm.training.state import TrainState

Metrics = dict[str, jax.Array]


def split_microbatches(batch: Batch, count: int) -> Batch:
    """[B, ...] -> [A, B/A, ...] with row i in microbatch i mod A.

    Taking every A-th row keeps each row on its device; cutting the batch into consecutive blocks
    would move rows between devices.
    """
    return {
        name: jnp.swapaxes(rows.reshape(rows.shape[0] // count, count, *rows.shape[1:]), 0, 1)
        for name, rows in batch.items()
    }


def loss_and_gradients(
    config: Config, how: Execution, params: Any, batch: Batch, step: jax.Array
) -> tuple[Losses, Any]:
    """The losses of the objective over the whole batch, and the gradient of their weighted sum.

    Sums of the microbatches are added in float32 before the division by the count. So a token has
    the same weight whatever the number of microbatches, and however unevenly the trained tokens are
    distributed over them.

    Returns:
      (sum, count) of each loss, float32; and the gradient, float32, like params, not yet divided by
      the count of the main loss.
    """
    objective = objective_of(config)
    main, *others = objective.weights
    count = config.run.accumulation_steps

    def losses(params: Any, microbatch: Any) -> Losses:
        number, rows = microbatch
        return objective.loss(params, rows, config, step_key(config.run.seed, step, number), how)

    microbatches = (jnp.arange(count), split_microbatches(batch, count)) if count > 1 else (
        0, batch)
    scales = {main: objective.weights[main]}
    if others:  # each sum over its own count, times the main count that is divided by later
        counts = _counts(losses, params, microbatches, count)
        scales |= {name: objective.weights[name] * counts[main] / jnp.maximum(counts[name], 1.0)
                   for name in others}

    def minimised(params: Any, microbatch: Any) -> tuple[jax.Array, Losses]:
        found = losses(params, microbatch)
        terms = [found[name][0] if isinstance(scale, float) and scale == 1 else
                 scale * found[name][0] for name, scale in scales.items()]
        return sum(terms[1:], terms[0]), found

    gradient = jax.value_and_grad(minimised, has_aux=True)
    if count == 1:
        (_, found), grads = gradient(params, microbatches)
        return found, grads

    def add(total: Any, microbatch: Any) -> tuple[Any, None]:
        (_, found), grads = gradient(params, microbatch)
        return jax.tree.map(jnp.add, total, (found, grads)), None

    names = jax.eval_shape(losses, params, jax.tree.map(lambda x: x[0], microbatches))
    zero = ({name: (jnp.float32(0), jnp.float32(0)) for name in names},
            jax.tree.map(jnp.zeros_like, params))
    return jax.lax.scan(add, zero, microbatches)[0]


def _counts(losses: Any, params: Any, microbatches: Any, count: int) -> dict[str, jax.Array]:
    """The count of each loss over all microbatches. Counts depend on the batch only, so nothing of
    the model is left of this program."""
    def of(microbatch: Any) -> dict[str, jax.Array]:
        return {name: count for name, (_, count) in losses(params, microbatch).items()}

    if count == 1:
        return of(microbatches)
    return jax.tree.map(lambda counts: counts.sum(axis=0), jax.lax.map(of, microbatches))


def train_step(config: Config, how: Execution, state: TrainState, batch: Batch
               ) -> tuple[TrainState, Metrics]:
    """One optimizer step.

    Args:
      config, how: static.
      state: donated by `compile_train_step`.
      batch: the whole global batch, as `maxlm.data.plan.Plan.rows` returns it: arrays [B, T].

    Returns:
      The next state, and float32 scalars: loss (what is minimised; for causal_lm the mean over
      trained tokens, nats), loss/NAME of each loss where the objective has several, grad_norm
      (before clipping), update_norm, param_norm (before the update), learning_rate, tokens (trained
      tokens of this step). Norms are global: over all parameters.
    """
    losses, grads = loss_and_gradients(config, how, state.params, batch, state.step)
    weights = objective_of(config).weights
    tokens = losses[next(iter(weights))][1]
    grads = jax.tree.map(lambda g: g / jnp.maximum(tokens, 1.0), grads)
    norm = optax.tree.norm(grads)
    clip = config.optimizer.clip_norm / jnp.maximum(norm, config.optimizer.clip_norm)
    grads = jax.tree.map(lambda g: g * clip, grads)

    optimizer = make_optimizer(config.optimizer, config.model)
    direction, opt_state = optimizer.update(grads, state.opt_state, state.params)
    rate = learning_rate(config.schedule, config.run.steps, state.step)
    params = jax.tree.map(lambda p, d: p - rate * d, state.params, direction)
    means = {name: total / jnp.maximum(count, 1.0) for name, (total, count) in losses.items()}
    loss = sum(weight * means[name] for name, weight in weights.items())
    several = {f"loss/{name}": mean for name, mean in means.items()} if len(means) > 1 else {}
    metrics = {"loss": loss, **several, "grad_norm": norm,
               "update_norm": rate * optax.tree.norm(direction),
               "param_norm": optax.tree.norm(state.params), "learning_rate": rate,
               "tokens": tokens}
    return TrainState(step=state.step + 1, params=params, opt_state=opt_state), metrics


def eval_step(config: Config, how: Execution, params: Any, batch: Batch) -> Metrics:
    """Values for each row of a batch, arrays [B], replicated on every device: nats (float32, the
    sum of the row's losses), tokens (float32, number of scored tokens), source and bytes (int32,
    from the batch).

    The host sums the rows in a fixed order, so the result does not depend on the mesh or the number
    of processes.
    """
    return {"nats": transformer.loss_per_row(params, batch, config.model, how),
            "tokens": batch["weights"].sum(axis=1),
            "source": batch["source"], "bytes": batch["bytes"]}


def lower_train_step(
    config: Config, mesh: jax.sharding.Mesh, state: TrainState, batch: Batch
) -> jax.stages.Lowered:
    """The train step before compilation; arguments may be abstract (ShapeDtypeStruct with
    shardings)."""
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state)
    step = jax.jit(functools.partial(train_step, config, make_execution(config, mesh)),
                   donate_argnums=0, out_shardings=(shardings, None))
    with jax.set_mesh(mesh):
        return step.lower(state, batch)


def compile_train_step(
    config: Config, mesh: jax.sharding.Mesh, state: TrainState, batch: Batch
) -> jax.stages.Compiled:
    """The compiled train step; arguments may be abstract."""
    with jax.set_mesh(mesh):
        return lower_train_step(config, mesh, state, batch).compile(
            compiler_options=compiler_options(config.precision, mesh))


def compile_eval_step(
    config: Config, mesh: jax.sharding.Mesh, params: Any, batch: Batch
) -> jax.stages.Compiled:
    """The compiled evaluation step; arguments may be abstract."""
    step = jax.jit(functools.partial(eval_step, config, make_execution(config, mesh)),
                   out_shardings=NamedSharding(mesh, PartitionSpec()))
    with jax.set_mesh(mesh):
        return step.lower(params, batch).compile()
