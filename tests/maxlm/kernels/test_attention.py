"""Every attention kernel against the formula over a grid of descriptions, or its refusal."""

import dataclasses
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maxlm.config import ConfigError
from maxlm.kernels import attention, cudnn_attention
from maxlm.kernels.cpu import attention as cpu
from maxlm.kernels.description import AttentionDescription, AttentionInputs, alibi_slopes
from maxlm.parallel.execution import Execution

# One of each alone, and mixtures.
DESCRIPTIONS = [AttentionDescription(), *(AttentionDescription(**fields) for fields in (
    {"causal": False}, {"window": 1}, {"window": 7}, {"window": 100}, {"logit_cap": 2.0},
    {"segment_bias": -3.0}, {"segment_bias": 0.0}, {"alibi": True}, {"scale": 0.5},
    {"causal": False, "window": 5}, {"causal": False, "segment_bias": -1.0, "alibi": True},
    {"window": 9, "logit_cap": 1.5, "scale": 2.0}, {"window": 16, "scale": 0.25},
    {"window": 6, "segment_bias": -2.0, "logit_cap": 3.0, "alibi": True}))]


@pytest.fixture(autouse=True)
def with_cudnn(monkeypatch):
    monkeypatch.setattr(cudnn_attention, "installed", lambda: True)


def test_cudnn_that_is_not_installed_is_not_chosen(monkeypatch):
    monkeypatch.setattr(cudnn_attention, "installed", lambda: False)
    gpu = AttentionInputs(128, 4, 4, 64, "bfloat16", "gpu")
    chosen, why = attention.choose("auto", [AttentionDescription()], gpu)
    assert chosen == "reference" and "cudnn needs cuDNN, which is not installed" in why


# Every kernel, and the platform it is for. Splash runs in Pallas's interpreter here, and XLA takes
# cuDNN's place behind the same call.
CASES = [("reference", "cpu"), ("blocked", "cpu"), ("splash", "tpu"), ("cudnn", "gpu")]
# Rows, tokens and head width; splash's blocks have 128 tokens.
SHAPES = {"reference": (2, 40, 8), "blocked": (2, 40, 8), "splash": (1, 256, 64),
          "cudnn": (1, 64, 16)}
HEADS = [(4, 4), (4, 2), (6, 1)]  # ALiBi's slopes differ where heads are no power of two


def inputs(B, T, H, G, K, dtype=np.float32):
    random = np.random.default_rng(0)
    query = random.normal(size=(B, T, H, K)).astype(dtype)
    key, value = (random.normal(size=(B, T, G, K)).astype(dtype) for _ in range(2))
    lengths = random.integers(1, T // 2, (B, 3))
    segments = np.zeros((B, T), np.int32)  # what is left at the end is padding, segment 0
    for row in range(B):
        start = 0
        for number, n in enumerate(lengths[row], 1):
            segments[row, start:start + n] = number
            start += n
    return query, key, value, segments


def by_hand(query, key, value, segments, description):
    """One pair of tokens at a time, in float64, with numpy."""
    B, T, H, K = query.shape
    G = key.shape[2]
    scale = K**-0.5 if description.scale is None else description.scale
    slopes = [2 ** (-8 * (h + 1) / H) for h in range(H)] if H == 4 else (
        [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3])
    out = np.zeros(query.shape)
    for b, h, t in itertools.product(range(B), range(H), range(T)):
        k, v = (x[b, :, h * G // H].astype(np.float64) for x in (key, value))
        scores, seen = [], []
        for s in range(t + 1 if description.causal else T):
            other = segments[b, s] != segments[b, t]
            if (other and description.segment_bias is None) or (
                    description.window and abs(t - s) >= description.window):
                continue
            score = scale * k[s] @ query[b, t, h].astype(np.float64)
            if description.logit_cap:
                score = description.logit_cap * math.tanh(score / description.logit_cap)
            if description.alibi:
                score -= slopes[h] * abs(t - s)
            scores.append(score + (description.segment_bias if other else 0))
            seen.append(s)
        weights = np.exp(np.array(scores) - max(scores))
        out[b, t, h] = weights @ v[seen] / weights.sum()
    return out


def lacks(name, platform, description, heads, T, K, dtype):
    return attention.KERNELS[name].lacks(
        description, AttentionInputs(T, *heads, K, dtype, platform))


def run(name, query, key, value, segments, description):
    return attention.KERNELS[name](query, key, value, segments, description, Execution())


@pytest.mark.parametrize(("description", "heads"), list(zip(DESCRIPTIONS, itertools.cycle(HEADS))),
                         ids=str)
@pytest.mark.parametrize(("name", "platform"), CASES)
def test_values_and_gradients_are_those_of_the_formula(name, platform, description, heads,
                                                       monkeypatch):
    B, T, K = SHAPES[name]
    if lacks(name, platform, description, heads, T, K, "bfloat16"):
        assert name != "reference"
        return
    monkeypatch.setattr(cpu, "BLOCK", 16)  # 40 tokens: two blocks and a half
    arrays = inputs(B, T, *heads, K)
    weights = np.random.default_rng(1).normal(size=arrays[0].shape).astype(np.float32)

    def total(kernel, *arrays):
        out = run(kernel, *arrays, description)
        return (out * weights).sum(), out

    results = {kernel: jax.jit(jax.grad(total, argnums=(1, 2, 3), has_aux=True),
                               static_argnums=0)(kernel, *arrays)
               for kernel in {name, "reference"}}
    np.testing.assert_allclose(results[name][1], by_hand(*arrays, description), atol=5e-6)
    truths = results["reference"][0]
    largest = max(float(np.abs(truth).max()) for truth in truths)
    for ours, truth in zip(results[name][0], truths, strict=True):
        np.testing.assert_allclose(ours, truth, atol=2e-6 * largest)


@pytest.mark.parametrize("T", [1, 127, 128, 300])
def test_blocked_at_the_edges_of_its_blocks(T):
    query, key, value, segments = (x[:, :T] for x in inputs(2, max(T, 4), 4, 2, 8))
    for description in (AttentionDescription(), AttentionDescription(window=130)):
        np.testing.assert_allclose(
            *(run(name, query, key, value, segments, description)
              for name in ("blocked", "reference")), atol=5e-6)


@pytest.mark.parametrize(("name", "platform"), CASES)
def test_rows_of_padding_only_are_finite_and_so_are_their_gradients(name, platform):
    query, key, value, segments = inputs(2, 128, 2, 2, 64)
    grads = jax.grad(lambda *x: run(name, *x, np.zeros_like(segments), AttentionDescription()
                                    ).sum(), argnums=(0, 1, 2))(query, key, value)
    assert all(np.isfinite(g).all() for g in grads)


@pytest.mark.parametrize(("name", "platform"), CASES)
def test_bfloat16_keeps_the_softmax_in_float32(name, platform):
    query, key, value, segments = inputs(1, 256, 2, 2, 64, jnp.bfloat16)
    # One large score among many small ones: a bfloat16 sum of 255 small weights would stall.
    key[:, 1:] *= 0.01
    arrays = query, key, value, np.ones_like(segments)
    out = np.asarray(run(name, *arrays, AttentionDescription()), np.float32)
    assert np.abs(out - by_hand(*arrays, AttentionDescription())).max() < 0.02


def test_published_slopes():
    assert alibi_slopes(8) == [2**-i for i in range(1, 9)]
    # Of 12 heads (the released code's get_slopes): those of 8, then every other one of 16.
    assert alibi_slopes(12) == [2**-i for i in range(1, 9)] + [2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]


# -- which kernel runs --------------------------------------------------------------------------

CPU = AttentionInputs(64, 4, 4, 16, "float32", "cpu")


def test_auto_takes_the_best_that_can_and_says_so():
    assert attention.choose("auto", [AttentionDescription()], CPU) == (
        "blocked", "attention: blocked, chosen for cpu")
    tpu = dataclasses.replace(CPU, platform="tpu", length=256, head_dim=128)
    assert attention.choose("auto", [AttentionDescription(window=3)], tpu)[0] == "splash"
    gpu = dataclasses.replace(tpu, platform="gpu", dtype="bfloat16")
    assert attention.choose("auto", [AttentionDescription(window=3)], gpu)[0] == "cudnn"
    name, note = attention.choose(
        "auto", [AttentionDescription(), AttentionDescription(alibi=True)], CPU)
    assert name == "reference" and "blocked has no logit cap and no ALiBi" in note


def test_a_named_kernel_that_cannot_is_refused():
    with pytest.raises(ConfigError, match="'blocked' never lets documents see each other"):
        attention.choose("blocked", [AttentionDescription(segment_bias=-1.0)], CPU)
    with pytest.raises(ConfigError, match="no kernel 'blockd'; did you mean 'blocked'"):
        attention.choose("blockd", [AttentionDescription()], CPU)


@pytest.mark.parametrize(("kernel", "change", "words"), [
    ("splash", {}, "runs on TPU only"), ("cudnn", {}, "runs on NVIDIA GPUs only"),
    ("splash", {"platform": "tpu", "length": 100}, "multiple of 128 tokens"),
    ("splash", {"platform": "tpu", "length": 128, "head_dim": 80}, "heads of 64 or a multiple"),
    ("cudnn", {"platform": "gpu"}, "bfloat16 only"),
    ("cudnn", {"platform": "gpu", "dtype": "bfloat16", "head_dim": 256}, "up to 128"),
])
def test_what_a_kernel_lacks_on_a_platform(kernel, change, words):
    with pytest.raises(ConfigError, match=words):
        attention.choose(kernel, [AttentionDescription()], dataclasses.replace(CPU, **change))


def test_a_kernel_of_ones_own_takes_one_class(monkeypatch):
    class Average:
        """Ignores scores: the mean of the values of the row."""

        def lacks(self, description, inputs):
            return "needs a full row" if description.causal else None

        def __call__(self, query, key, value, segments, description, how):
            return jnp.broadcast_to(value.mean(axis=1, keepdims=True), query.shape)

    monkeypatch.setitem(attention.KERNELS, "average", Average())
    with pytest.raises(ConfigError, match="'average' needs a full row"):
        attention.choose("average", [AttentionDescription()], CPU)
    assert attention.choose("average", [AttentionDescription(causal=False)], CPU)[0] == "average"
