"""Every attention implementation against the formula: values, gradients, packing, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maxlm.config import ConfigError
from maxlm.kernels import attention, blocked_attention

IMPLEMENTATIONS = sorted(attention.IMPLEMENTATIONS)


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


def by_hand(query, key, value, segments):
    """One query at a time, in float64, with numpy."""
    B, T, H, K = query.shape
    G = key.shape[2]
    out = np.zeros(query.shape)
    for b in range(B):
        for h in range(H):
            k, v = (x[b, :, h * G // H].astype(np.float64) for x in (key, value))
            for t in range(T):
                seen = [s for s in range(t + 1) if segments[b, s] == segments[b, t]]
                scores = k[seen] @ query[b, t, h].astype(np.float64) / np.sqrt(K)
                weights = np.exp(scores - scores.max())
                out[b, t, h] = weights @ v[seen] / weights.sum()
    return out


def run(name, query, key, value, segments):
    return attention.IMPLEMENTATIONS[name](query, key, value, query_segments_BT=segments,
                                           key_segments_BS=segments)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
@pytest.mark.parametrize("heads", [(4, 4), (4, 2), (4, 1)])
def test_values_are_those_of_the_formula(name, heads, monkeypatch):
    monkeypatch.setattr(blocked_attention, "BLOCK", 16)  # 40 tokens: two blocks and a half
    arrays = inputs(3, 40, *heads, 8)
    np.testing.assert_allclose(jax.jit(run, static_argnums=0)(name, *arrays), by_hand(*arrays),
                               atol=2e-6)


@pytest.mark.parametrize("T", [1, 127, 128, 300])
@pytest.mark.parametrize("heads", [(4, 4), (4, 2), (4, 1)])
def test_blocked_gradients_are_those_of_the_reference(T, heads):
    query, key, value, segments = inputs(2, max(T, 4), *heads, 8)
    query, key, value, segments = (x[:, :T] for x in (query, key, value, segments))
    weights = np.random.default_rng(1).normal(size=query.shape).astype(np.float32)

    def gradients(name):
        def total(query, key, value):
            return (run(name, query, key, value, segments) * weights).sum()

        return jax.jit(jax.grad(total, argnums=(0, 1, 2)))(query, key, value)

    for ours, truth in zip(gradients("blocked"), gradients("reference"), strict=True):
        np.testing.assert_allclose(ours, truth, atol=5e-6)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_rows_of_padding_only_are_finite_and_so_are_their_gradients(name):
    query, key, value, segments = inputs(2, 64, 2, 2, 8)
    segments = np.zeros_like(segments)
    grads = jax.grad(lambda *x: run(name, *x, segments).sum(), argnums=(0, 1, 2))(query, key, value)
    assert all(np.isfinite(g).all() for g in grads)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_bfloat16_keeps_the_softmax_in_float32(name):
    query, key, value, segments = inputs(1, 256, 2, 2, 16, jnp.bfloat16)
    # One large score among many small ones: a bfloat16 sum of 255 small weights would stall.
    key[:, 1:] *= 0.01
    out = np.asarray(run(name, query, key, value, np.ones_like(segments)), np.float32)
    truth = by_hand(query, key, value, np.ones_like(segments))
    assert out.dtype == np.float32 and np.abs(out - truth).max() < 0.02


def test_blocked_refuses_a_cache():
    query, key, value, segments = inputs(1, 8, 2, 2, 8)
    with pytest.raises(ConfigError, match="same tokens"):
        attention.blocked(query[:, :1], key, value, query_segments_BT=segments[:, :1],
                          key_segments_BS=segments, query_index_BT=np.array([[3]]))
