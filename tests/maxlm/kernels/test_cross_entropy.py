"""Chunked cross-entropy against the formula, its gradients, and its memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from maxlm.analysis import hlo
from maxlm.analysis.collectives import collectives
from maxlm.config.trainer import ParallelConfig
from maxlm.kernels import cross_entropy as kernel
from maxlm.parallel.execution import Execution
from maxlm.parallel.mesh import make_mesh

B, T, D, V = 3, 20, 16, 50
RANDOM = np.random.default_rng(0)
HIDDEN = RANDOM.normal(size=(B, T, D)).astype(np.float32)
HEAD = RANDOM.normal(size=(V, D)).astype(np.float32)
TARGETS = RANDOM.integers(0, V, (B, T)).astype(np.int32)
WEIGHTS = (RANDOM.random((B, T)) < 0.7).astype(np.float32) * 0.5


# The forms of the CPU and of accelerators.
FORMS = {"cpu": Execution(platform="cpu"), "tpu": Execution(platform="tpu")}


def cross_entropy(hidden, head, targets, weights, chunk, form="cpu"):
    return kernel.cross_entropy(hidden, head, targets, weights, chunk, FORMS[form])


def plain(hidden, head, targets, weights):
    """-sum of weighted log softmax, by jax.nn, all logits at once."""
    log_probabilities = jax.nn.log_softmax(
        jnp.einsum("BTD,VD->BTV", hidden, head, precision="highest"))
    picked = jnp.take_along_axis(log_probabilities, targets[..., None], axis=-1)[..., 0]
    return -(picked * weights).sum(), weights.sum()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("chunk", [1, 7, 16, 60, 1000])
def test_value_and_gradients_equal_the_unchunked_ones(chunk, form):
    def both(function, *extra):
        return jax.jit(jax.value_and_grad(
            lambda h, w: function(h, w, TARGETS, WEIGHTS, *extra), argnums=(0, 1), has_aux=True)
        )(HIDDEN, HEAD)

    (loss, count), grads = both(cross_entropy, chunk, form)
    (truth, truth_count), truth_grads = both(plain)
    np.testing.assert_allclose(loss, truth, rtol=1e-6)
    np.testing.assert_allclose(count, truth_count)
    np.testing.assert_allclose(jax.jit(cross_entropy, static_argnums=(4, 5))(
        HIDDEN, HEAD, TARGETS, WEIGHTS, chunk, form)[0], truth, rtol=1e-6)
    for ours, expected in zip(grads, truth_grads, strict=True):
        np.testing.assert_allclose(ours, expected, atol=3e-6)


def test_scaling_the_loss_scales_its_gradient():
    grad = jax.grad(lambda h: 3 * cross_entropy(h, HEAD, TARGETS, WEIGHTS, 16)[0])(HIDDEN)
    once = jax.grad(lambda h: cross_entropy(h, HEAD, TARGETS, WEIGHTS, 16)[0])(HIDDEN)
    np.testing.assert_allclose(grad, 3 * once, rtol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_bfloat16_hidden_still_gives_a_float32_loss(form):
    # Logits near 300, where bfloat16 steps are 2: losses of a fraction need float32 logits.
    hidden, head = HIDDEN.astype(jnp.bfloat16), (HEAD * 20).astype(jnp.bfloat16)
    loss, _ = cross_entropy(hidden, head.astype(np.float32), TARGETS, WEIGHTS, 16, form)
    truth, _ = plain(hidden.astype(np.float32), head.astype(np.float32), TARGETS, WEIGHTS)
    assert loss.dtype == jnp.float32
    np.testing.assert_allclose(loss, truth, rtol=1e-4)


def test_extreme_logits_stay_finite():
    loss, grads = jax.value_and_grad(
        lambda h: cross_entropy(h, HEAD, TARGETS, WEIGHTS, 16)[0])(HIDDEN * 1e4)
    assert np.isfinite(loss) and np.isfinite(grads).all()


@pytest.mark.parametrize("form", FORMS)
def test_memory_does_not_grow_with_tokens_times_vocabulary(form):
    """Temporary bytes of the compiled gradient, with 4 and 16 chunks of 64 tokens of 4096 words."""
    def temporary(tokens):
        shapes = (jax.ShapeDtypeStruct((1, tokens, 8), jnp.float32),
                  jax.ShapeDtypeStruct((4096, 8), jnp.float32),
                  jax.ShapeDtypeStruct((1, tokens), jnp.int32),
                  jax.ShapeDtypeStruct((1, tokens), jnp.float32))
        gradient = jax.grad(lambda *x: cross_entropy(*x, 64, form)[0], argnums=(0, 1))
        return jax.jit(gradient).lower(*shapes).compile().memory_analysis().temp_size_in_bytes

    few, many = temporary(256), temporary(1024)
    logits_bytes = 768 * 4096 * 4  # of the tokens added
    assert many - few < 0.05 * logits_bytes


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(jnp.float32, 1e-5), (jnp.bfloat16, 0.05)])
@pytest.mark.parametrize("tensor", [1, 2])
def test_the_gradient_of_the_head_is_added_once(tensor, dtype, tolerance, form):
    """On four devices, with four chunks of tokens: the reduce-scatter is outside the loop, where
    nothing is exchanged but over `tensor`, and the values are those of one device."""
    mesh = make_mesh(ParallelConfig(data=1, fsdp=4 // tensor, tensor=tensor), jax.devices()[:4])
    rows, head = PartitionSpec("fsdp"), PartitionSpec("tensor", "fsdp")
    shards = [NamedSharding(mesh, spec) for spec in (rows, head, rows, rows)]
    arrays = [np.tile(HIDDEN[:1], (4, 1, 1)).astype(dtype), HEAD, np.tile(TARGETS[:1], (4, 1)),
              np.tile(WEIGHTS[:1], (4, 1))]
    gradient = jax.grad(lambda *x: cross_entropy(*x, 5 * tensor, form)[0], argnums=(0, 1))
    with jax.set_mesh(mesh):
        compiled = jax.jit(gradient, in_shardings=shards, out_shardings=tuple(shards[:2])).lower(
            *arrays).compile()
        found = compiled(*jax.device_put(arrays, shards))
    sent = collectives(hlo.parse(compiled.as_text() or "").runs, mesh.shape)
    assert [(each.times, each.axes) for each in sent if each.kind == "reduce-scatter"] == [
        (1, "fsdp")]
    assert {each.axes for each in sent if each.times == 4} <= {"tensor"}
    for ours, expected in zip(found, jax.jit(gradient)(*arrays), strict=True):
        np.testing.assert_allclose(ours.astype(np.float32), expected.astype(np.float32),
                                   atol=tolerance)
