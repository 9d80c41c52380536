"""AdamW against a few lines of numpy and against PyTorch; which parameters decay; how the state of
other optimizers is laid out on a mesh."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from maxlm.config import ConfigError, ModelConfig, OptimizerConfig, ParallelConfig, build
from maxlm.models import transformer
from maxlm.models.parameters import AbstractParam, Ones
from maxlm.parallel.mesh import make_mesh
from maxlm.training import optimizer as optimizers
from maxlm.training.optimizer import decay_mask, make_optimizer
from maxlm.training.state import abstract_state
from tests import training_runs

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
    mask = by_name(decay_mask(transformer.abstract_params(MODEL)))
    assert {name for name, decayed in mask.items() if not decayed} == {
        "final_norm/scale", "blocks/attention_norm/scale", "blocks/feed_forward_norm/scale"}
    # The scales of a stack of layers are a matrix [layers, width], and still no matrix to decay.
    assert by_name(random_tree(0))["blocks/attention_norm/scale"].shape == (3, 16)


def test_decay_follows_the_kind_of_a_parameter_not_its_shape():
    kinds = ("weight", "embedding", "norm", "bias", "fp8_scale")
    params = {kind: AbstractParam((4, 4), jnp.float32, ("embed", "mlp"), kind, Ones())
              for kind in kinds}
    assert decay_mask(params) == {"weight": True, "embedding": True, "norm": False, "bias": False,
                                  "fp8_scale": False}


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


# Optimizers that maxlm does not have, written as one would add them. Their state has the shape of
# the parameters (Lion), some of their dimensions (Adafactor), or exists for some of them (Muon).

def lion(config, params):
    return optax.scale_by_lion(b1=config.beta1, b2=config.beta2)


def adafactor(config, params):
    return optax.scale_by_factored_rms(min_dim_size_to_factor=8)


def muon(config, params):
    def matrices(param):
        return param.kind == "weight" and len(param.shape) == 3

    def dimensions(param):
        return optax.contrib.MuonDimensionNumbers(1, 2) if matrices(param) else optax.MaskedNode()

    def leaf(node):
        return isinstance(node, AbstractParam)

    rule = optax.contrib.scale_by_muon(
        weight_dimension_numbers=jax.tree.map(dimensions, params, is_leaf=leaf))
    return optax.partition({"muon": rule, "adam": optax.scale_by_adam()}, jax.tree.map(
        lambda param: "muon" if matrices(param) else "adam", params, is_leaf=leaf))


def layout(builder, monkeypatch, **model) -> dict[str, tuple]:
    """Path of each array of the state -> mesh axis of each dimension."""
    monkeypatch.setitem(optimizers.OPTIMIZERS, "toy", builder)
    config = training_runs.config(optimizer__name="toy", **{
        "model__embed_dim": 64, "model__mlp_dim": 128, "model__vocab_size": 512, **model})
    mesh = make_mesh(ParallelConfig(data=1, fsdp=4, tensor=2))
    return {jax.tree_util.keystr(path, simple=True, separator="."): tuple(leaf.sharding.spec)
            for path, leaf in jax.tree_util.tree_leaves_with_path(
                abstract_state(config, mesh).opt_state)}


WHOLE = {  # rules of maxlm/parallel/rules.py: width over fsdp; heads, mlp, vocabulary over tensor
    "embedding": ("tensor", "fsdp"), "head": ("tensor", "fsdp"), "final_norm.scale": (None,),
    "blocks.attention_norm.scale": (None, None), "blocks.feed_forward_norm.scale": (None, None),
    "blocks.attention.query": (None, "fsdp", "tensor", None),
    "blocks.attention.key": (None, "fsdp", "tensor", None),
    "blocks.attention.value": (None, "fsdp", "tensor", None),
    "blocks.attention.out": (None, "tensor", None, "fsdp"),
    "blocks.feed_forward.gate": (None, "fsdp", "tensor"),
    "blocks.feed_forward.up": (None, "fsdp", "tensor"),
    "blocks.feed_forward.down": (None, "tensor", "fsdp")}


def test_moments_are_laid_out_as_their_parameter(monkeypatch):
    untied = {"model__tie_embeddings": False}
    assert layout(optimizers.adamw, monkeypatch, **untied) == {"0.count": ()} | {
        f"0.{moment}.{name}": axes for moment in ("mu", "nu") for name, axes in WHOLE.items()}
    assert layout(lion, monkeypatch, **untied) == {"count": ()} | {
        f"mu.{name}": axes for name, axes in WHOLE.items()}


def test_factored_moments_are_laid_out_as_the_dimensions_that_remain(monkeypatch):
    found = layout(adafactor, monkeypatch, model__tie_embeddings=False)
    # Factored over the two largest dimensions. Rows: without the largest, columns: without the
    # second largest. [layers 2, width 64, mlp 128]; [vocabulary 512, width 64]; the heads are
    # [layers 2, width 64, heads 4, head width 16] or [2, 4, 16, 64].
    factored = {
        "blocks.feed_forward.gate": ((None, "fsdp"), (None, "tensor")),
        "blocks.feed_forward.down": ((None, "fsdp"), (None, "tensor")),
        "embedding": (("fsdp",), ("tensor",)),
        "blocks.attention.query": ((None, "tensor", None), (None, "fsdp", "tensor")),
        "blocks.attention.out": ((None, "tensor", None), (None, "tensor", "fsdp"))}
    for name, (rows, columns) in factored.items():
        assert found[f"v_row.{name}"] == rows, name
        assert found[f"v_col.{name}"] == columns, name
        assert found[f"v.{name}"] == (), name  # one element, in place of the whole
    for name in ("final_norm.scale", "blocks.attention_norm.scale"):
        assert found[f"v.{name}"] == WHOLE[name] and found[f"v_row.{name}"] == ()


def test_equal_dimensions_are_told_apart_by_bytes_on_a_device(monkeypatch):
    found = layout(adafactor, monkeypatch, model__mlp_dim=64)
    # [layers, 64, 64]: means of rows and of columns have one shape, and fsdp has more devices.
    assert found["v_row.blocks.feed_forward.gate"] == (None, "fsdp")
    assert found["v_col.blocks.feed_forward.gate"] == (None, "fsdp")


def test_state_of_some_parameters_only(monkeypatch):
    found = layout(muon, monkeypatch, model__tie_embeddings=False)
    mlp = {"blocks.feed_forward.gate", "blocks.feed_forward.up", "blocks.feed_forward.down"}
    moments = {f"inner_states.muon.inner_state.mu.{name}": WHOLE[name] for name in mlp}
    moments |= {f"inner_states.adam.inner_state.{moment}.{name}": axes
                for moment in ("mu", "nu") for name, axes in WHOLE.items() if name not in mlp}
    counters = {f"inner_states.{name}": () for name in (
        "adam.inner_state.count", "muon.inner_state.count", "muon.inner_state.ns_coeffs")}
    assert found == moments | counters


def with_state(make):
    """An optimizer that follows the gradient and has `make(params)` as its state."""
    def update(updates, state, params=None):
        return updates, state

    return lambda config, params: optax.GradientTransformation(
        lambda params: {"history": make(params)}, update)


@pytest.mark.parametrize(("make", "named"), [
    (lambda params: jnp.zeros(262145), r"history of the optimizer's state, float32\[262145\]"),
    (lambda params: jnp.zeros((1024, 512), jnp.bfloat16) + 0, None),
    (lambda params: jnp.zeros(262144), None),
    # A parameter's array with a dimension that the parameter lacks.
    (lambda params: jax.tree.map(lambda p: jnp.zeros((40, *p.shape)), params),
     r"history\.blocks\.attention\.key of the optimizer's state, float32\[40, 2, 64, 4, 16\]"),
    (lambda params: jax.tree.map(lambda p: jnp.zeros((3, 5)), params), None),
], ids=["float32", "bfloat16", "exactly the limit", "another dimension", "small"])
def test_a_large_array_of_the_state_without_a_layout_is_refused(monkeypatch, make, named):
    if named is None:
        assert set(layout(with_state(make), monkeypatch).values()) == {()}
    else:
        with pytest.raises(ConfigError, match=f"array {named}, has no layout"):
            layout(with_state(make), monkeypatch)


def test_an_unknown_optimizer_is_refused():
    with pytest.raises(ConfigError, match=r"optimizer\.name: no optimizer 'adam'; did you .*adamw"):
        make_optimizer(OptimizerConfig(name="adam"), MODEL)


def test_an_optimizer_is_added_as_one_function(monkeypatch, tmp_path):
    """Momentum by the formula m <- beta1 m + g, p <- p - rate m, through the command that trains,
    stopped and resumed."""
    def momentum(config, params):
        return optax.trace(decay=config.beta1)

    monkeypatch.setitem(optimizers.OPTIMIZERS, "momentum", momentum)
    settings = {"optimizer__name": "momentum", "optimizer__beta1": 0.5, "parallel__fsdp": 2,
                "schedule__name": "constant", "schedule__learning_rate": 0.1,
                "schedule__warmup_steps": 0, "checkpoint__every_steps": 1, "checkpoint__keep": 9}
    for steps in (2, 4):
        assert training_runs.run(tmp_path, run__steps=steps, **settings) == 0
    saved = [training_runs.saved_arrays(tmp_path, step) for step in (1, 2, 3, 4)]
    names = [name for name in saved[0] if name.startswith("['params']")]
    assert len(names) > 8
    for before, after in itertools.pairwise(saved):
        for name in names:
            trace = "['opt_state']['trace']" + name.removeprefix("['params']")
            assert np.abs(after[trace]).max() > 0
            np.testing.assert_allclose(after[name], before[name] - 0.1 * after[trace], atol=1e-7)
