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
from maxlm.training.optimizer import make_optimizer
from maxlm.training.schedule import learning_rate
from maxlm.training.state import TrainState

Batch = dict[str, jax.Array]
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
    config: Config, params: Any, batch: Batch
) -> tuple[jax.Array, jax.Array, Any]:
    """Loss summed over trained tokens, their count, and the gradient of that sum.

    The sums of the microbatches are added in float32 before the division by the number of tokens.
    So a token has the same weight whatever the number of microbatches, and however unevenly the
    trained tokens are distributed over them.

    Returns:
      loss sum (float32), trained tokens (float32), gradients (float32, like params).
    """

    def loss_sum(params: Any, rows: Batch) -> tuple[jax.Array, jax.Array]:
        return transformer.loss(params, rows, config.model, config.precision)

    gradient = jax.value_and_grad(loss_sum, has_aux=True)
    count = config.run.accumulation_steps
    if count == 1:
        (loss, tokens), grads = gradient(params, batch)
        return loss, tokens, grads

    def add(total: Any, rows: Batch) -> tuple[Any, None]:
        (loss, tokens), grads = gradient(params, rows)
        return jax.tree.map(jnp.add, total, (loss, tokens, grads)), None

    zero = (jnp.float32(0), jnp.float32(0), jax.tree.map(jnp.zeros_like, params))
    total, _ = jax.lax.scan(add, zero, split_microbatches(batch, count))
    return total


def train_step(config: Config, state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
    """One optimizer step.

    Args:
      config: static.
      state: donated by `compile_train_step`.
      batch: the whole global batch, as `maxlm.data.plan.Plan.rows` returns it: arrays [B, T].

    Returns:
      The next state, and float32 scalars: loss (mean over trained tokens, nats), grad_norm (before
      clipping), update_norm, param_norm (before the update), learning_rate, tokens (trained tokens
      of this step). Norms are global: over all parameters.
    """
    loss, tokens, grads = loss_and_gradients(config, state.params, batch)
    grads = jax.tree.map(lambda g: g / jnp.maximum(tokens, 1.0), grads)
    norm = optax.tree.norm(grads)
    clip = config.optimizer.clip_norm / jnp.maximum(norm, config.optimizer.clip_norm)
    grads = jax.tree.map(lambda g: g * clip, grads)

    optimizer = make_optimizer(config.optimizer, config.model)
    direction, opt_state = optimizer.update(grads, state.opt_state, state.params)
    rate = learning_rate(config.schedule, config.run.steps, state.step)
    params = jax.tree.map(lambda p, d: p - rate * d, state.params, direction)
    metrics = {"loss": loss / jnp.maximum(tokens, 1.0), "grad_norm": norm,
               "update_norm": rate * optax.tree.norm(direction),
               "param_norm": optax.tree.norm(state.params), "learning_rate": rate,
               "tokens": tokens}
    return TrainState(step=state.step + 1, params=params, opt_state=opt_state), metrics


def eval_step(config: Config, params: Any, batch: Batch) -> Metrics:
    """Values for each row of a batch, arrays [B], replicated on every device: nats (float32, the
    sum of the row's losses), tokens (float32, number of scored tokens), source and bytes (int32,
    from the batch).

    The host sums the rows in a fixed order, so the result does not depend on the mesh or the number
    of processes.
    """
    return {"nats": transformer.loss_per_row(params, batch, config.model, config.precision),
            "tokens": batch["weights"].sum(axis=1),
            "source": batch["source"], "bytes": batch["bytes"]}


def lower_train_step(
    config: Config, mesh: jax.sharding.Mesh, state: TrainState, batch: Batch
) -> jax.stages.Lowered:
    """The train step before compilation; arguments may be abstract (ShapeDtypeStruct with
    shardings)."""
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state)
    step = jax.jit(functools.partial(train_step, config), donate_argnums=0,
                   out_shardings=(shardings, None))
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
    step = jax.jit(functools.partial(eval_step, config),
                   out_shardings=NamedSharding(mesh, PartitionSpec()))
    with jax.set_mesh(mesh):
        return step.lower(params, batch).compile()
