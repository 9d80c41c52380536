"""Objectives: several losses over their own counts, random keys, and one of one's own."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maxlm.config import ConfigError
from maxlm.config.trainer import ObjectiveConfig
from maxlm.models import transformer
from maxlm.training import objectives
from maxlm.training import step as steps
from maxlm.training.objectives import step_key
from tests.maxlm.models.examples import FLOAT32
from tests.maxlm.training.test_step import MODEL, configuration, largest_difference, random_batch


class TwoLosses:
    """The usual loss, and the squared output of the first token of each row, per row."""

    weights = {"words": 1.0, "first": 0.25}

    def loss(self, params, batch, config, key, how):
        x_BTD = transformer.hidden(params, batch["tokens"], batch["segment_ids"],
                                   batch["positions"], config.model, how)
        return {"first": (jnp.square(x_BTD[:, 0]).sum(), jnp.float32(len(x_BTD))),
                "words": transformer.loss(params, batch, config.model, how),
                "only_shown": (jax.random.uniform(key), jnp.float32(1))}


@pytest.fixture
def two_losses(monkeypatch):
    monkeypatch.setitem(objectives.OBJECTIVES, "two", TwoLosses())


def configured(count):
    base = configuration(run__accumulation_steps=count, data__batch_size=8)
    return dataclasses.replace(base, objective=ObjectiveConfig(name="two"))


def test_several_losses_are_means_over_the_whole_batch_whatever_the_microbatches(two_losses):
    params, batch = transformer.init_params(MODEL, 0), random_batch(8, 24)

    def whole(params):  # by hand, no microbatches
        losses = TwoLosses().loss(params, batch, configured(1), jax.random.key(0), FLOAT32)
        return losses["words"][0] / losses["words"][1] + 0.25 * losses["first"][0] / 8

    truth = jax.jit(jax.grad(whole))(params)
    for count in (1, 2, 4):
        losses, grads = jax.jit(steps.loss_and_gradients, static_argnums=(0, 1))(
            configured(count), FLOAT32, params, batch, jnp.int32(0))
        tokens = losses["words"][1]
        assert tokens == batch["weights"].sum() and losses["first"][1] == 8
        assert losses["only_shown"][1] == count
        assert largest_difference(truth, jax.tree.map(lambda g, n=tokens: g / n, grads)) < 1e-5


def test_keys_differ_by_seed_step_and_microbatch_and_by_nothing_else():
    keys = {tuple(np.asarray(jax.random.key_data(step_key(*place))))
            for place in [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0)]}
    assert len(keys) == 4


def test_an_unknown_objective_names_the_nearest():
    config = configured(1)
    config = dataclasses.replace(config, objective=ObjectiveConfig(name="causal_ml"))
    with pytest.raises(ConfigError, match=r"config.objective.name: .*did you mean 'causal_lm'"):
        objectives.objective_of(config)
