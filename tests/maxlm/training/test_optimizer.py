"""AdamW against a few lines of numpy and against PyTorch; which parameters decay."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from maxlm.config import ConfigError, ModelConfig, OptimizerConfig, build
from maxlm.models import transformer
from maxlm.training.optimizer import decay_mask, make_optimizer

MODEL = ModelConfig(vocab_size=48, num_layers=3, embed_dim=16, num_heads=2, num_kv_heads=2,
                    head_dim=8, mlp_dim=24)
ADAMW = OptimizerConfig(beta1=0.8, beta2=0.93, epsilon=1e-6, weight_decay=0.3)
RATE = 0.01
STEPS = 4


def random_tree(seed: int):
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: rng.normal(size=leaf.shape).astype(np.float32),
                        transformer.abstract_params(MODEL),
                        is_leaf=lambda leaf: hasattr(leaf, "logical_axes"))


def trained() -> dict[str, np.ndarray]:
    optimizer = make_optimizer(ADAMW, MODEL)
    params = random_tree(0)
    state = optimizer.init(params)
    for step in range(STEPS):
        direction, state = optimizer.update(random_tree(step + 1), state, params)
        params = jax.tree.map(lambda p, d: np.asarray(p - RATE * d), params, direction)
    return by_name(params)


def by_name(tree) -> dict[str, np.ndarray]:
    return {jax.tree_util.keystr(path, simple=True, separator="/"): leaf
            for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def decays(name: str) -> bool:
    return "norm" not in name


def test_norms_alone_do_not_decay():
    mask = by_name(decay_mask(MODEL))
    assert {name for name, decayed in mask.items() if not decayed} == {
        "final_norm/scale", "blocks/attention_norm/scale", "blocks/feed_forward_norm/scale"}
    # The scales of a stack of layers are a matrix [layers, width], and still no matrix to decay.
    assert by_name(random_tree(0))["blocks/attention_norm/scale"].shape == (3, 16)


def test_numpy():
    names = by_name(random_tree(0))
    mean = {name: np.zeros(p.shape) for name, p in names.items()}
    square = {name: np.zeros(p.shape) for name, p in names.items()}
    params = {name: p.astype(np.float64) for name, p in names.items()}
    for step in range(1, STEPS + 1):
        for name, g in by_name(random_tree(step)).items():
            mean[name] = 0.8 * mean[name] + 0.2 * g
            square[name] = 0.93 * square[name] + 0.07 * g.astype(np.float64) ** 2
            adam = mean[name] / (1 - 0.8**step) / (
                np.sqrt(square[name] / (1 - 0.93**step)) + 1e-6)
            params[name] = params[name] - RATE * (adam + 0.3 * decays(name) * params[name])
    for name, ours in trained().items():
        np.testing.assert_allclose(ours, params[name], atol=2e-6, err_msg=name)


def test_pytorch():
    torch = pytest.importorskip("torch")
    params = {name: torch.nn.Parameter(torch.tensor(p))
              for name, p in by_name(random_tree(0)).items()}
    reference = torch.optim.AdamW(
        [{"params": [p], "weight_decay": 0.3 * decays(name)} for name, p in params.items()],
        lr=RATE, betas=(0.8, 0.93), eps=1e-6)
    for step in range(1, STEPS + 1):
        for name, g in by_name(random_tree(step)).items():
            params[name].grad = torch.tensor(g)
        reference.step()
    for name, ours in trained().items():
        np.testing.assert_allclose(ours, params[name].detach().numpy(), atol=2e-6, err_msg=name)


TINY = 2.0**-126  # the smallest normal number of float32


@pytest.mark.parametrize("beta2", [0.0, 0.9, 0.95, 0.999, 0.9999999])
def test_the_smallest_epsilon_bounds_the_update_of_gradients_that_underflow(beta2):
    least = math.sqrt(TINY / (1 - beta2))
    with pytest.raises(ConfigError, match=r"optimizer\.epsilon: must be at least"):
        build(OptimizerConfig, {"epsilon": 0.99 * least, "beta2": beta2}, "config.optimizer")
    config = build(OptimizerConfig, {"epsilon": 1.01 * least, "beta2": beta2}, "config.optimizer")
    # Zero as in rows of the embedding whose token is not in the batch; then around the place where
    # the mean square is flushed to 0; then up to where squares would overflow.
    gradients = jnp.concatenate([jnp.zeros(2), jnp.asarray(
        [sign * scale * least for scale in (1e-19, 1e-3, 0.5, 0.99, 1.01, 2, 1e6, 1e12)
         for sign in (1, -1)], jnp.float32), jnp.asarray([1e-38, 1e-20, 1.0, 1e15])])
    rule = optax.scale_by_adam(b1=config.beta1, b2=beta2, eps=config.epsilon)
    state = rule.init(gradients)
    for _ in range(3):
        update, state = jax.jit(rule.update)(gradients, state)
        assert np.isfinite(update).all() and np.abs(update).max() <= 1.1
