"""Sampling against hand-worked cases, and generation against the full forward pass."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maxlm.config import ConfigError, ModelConfig
from maxlm.models import sampling as sampling_module
from maxlm.models import transformer
from maxlm.models.sampling import Sampling, continue_prompts, filter_logits, sample
from tests.maxlm.models.examples import FLOAT32

MODEL = ModelConfig(vocab_size=61, num_layers=2, embed_dim=32, num_heads=4, num_kv_heads=2,
                    head_dim=8, mlp_dim=64, init_std=0.3)
HOW = FLOAT32
EOS = 2
ALL = np.ones(MODEL.vocab_size, bool)
PROMPTS = [[1, 5, 9, 33, 20], [1], [1, 40, 7]]


@pytest.fixture(scope="module")
def params():
    return transformer.init_params(MODEL, 3)


def kept(probabilities: list[float], **choice: float) -> list[int]:
    logits = filter_logits(jnp.log(jnp.asarray([probabilities])), Sampling(**choice))
    return np.flatnonzero(np.isfinite(np.asarray(logits)[0])).tolist()


def test_top_k_and_top_p_keep_what_a_hand_count_keeps():
    probabilities = [0.1, 0.4, 0.05, 0.25, 0.2]
    assert kept(probabilities) == [0, 1, 2, 3, 4]
    assert kept(probabilities, top_k=2) == [1, 3]
    # 0.4 + 0.25 = 0.65 is not yet 0.7, so the 0.2 is needed too.
    assert kept(probabilities, top_p=0.7) == [1, 3, 4]
    assert kept(probabilities, top_p=0.6) == [1, 3]
    assert kept(probabilities, top_p=1e-6) == [1]
    # Of the two that top_k leaves, 0.4 / 0.65 = 0.615 is the first's share.
    assert kept(probabilities, top_k=2, top_p=0.61) == [1]
    assert kept(probabilities, top_k=2, top_p=0.62) == [1, 3]


def test_temperature_sharpens_as_the_power_law_says():
    # p^(1/T): 0.8 and 0.2 at T = 0.5 are 0.64 and 0.04 over 0.68.
    logits = filter_logits(jnp.log(jnp.asarray([[0.8, 0.2]])), Sampling(temperature=0.5))
    np.testing.assert_allclose(jax.nn.softmax(logits), [[0.64 / 0.68, 0.04 / 0.68]], rtol=1e-6)


def test_draws_have_the_distribution_of_the_logits():
    probabilities = np.array([0.5, 0.3, 0.15, 0.05])
    rows = 20_000
    logits = jnp.tile(jnp.log(jnp.asarray(probabilities, jnp.float32)), (rows, 1))
    drawn = np.asarray(sample(logits, jnp.zeros(rows, jnp.int32), Sampling(seed=1)))
    counts = np.bincount(drawn, minlength=4)
    sigma = np.sqrt(rows * probabilities * (1 - probabilities))
    assert (np.abs(counts - rows * probabilities) < 4 * sigma).all(), counts


def generate(params, prompts, sampling, max_tokens=12, allowed=ALL, eos=EOS):
    texts = [[] for _ in prompts]
    for new in continue_prompts(params, prompts, max_tokens, allowed, eos, sampling, MODEL,
                                HOW):
        for text, token in zip(texts, new, strict=True):
            if token is not None:
                text.append(token)
    return texts


def greedy_without_cache(params, prompt, max_tokens):
    """Every token from a full forward pass; rows are padded so that there is one program."""
    tokens = list(prompt)
    T = len(prompt) + max_tokens
    forward = jax.jit(transformer.logits, static_argnums=(4, 5))
    for _ in range(max_tokens):
        row = np.zeros((1, T), np.int32)
        row[0, :len(tokens)] = tokens
        segments = np.asarray(np.arange(T)[None] < len(tokens), np.int32)
        logits = forward(params, row, segments, np.arange(T)[None] * segments, MODEL, HOW)
        best = int(logits[0, len(tokens) - 1].argmax())
        if best == EOS:
            break
        tokens.append(best)
    return tokens[len(prompt):]


def test_greedy_text_is_that_of_the_full_forward_pass(params):
    expected = [greedy_without_cache(params, prompt, 12) for prompt in PROMPTS]
    assert generate(params, PROMPTS, Sampling(temperature=0)) == expected
    assert len({tuple(text) for text in expected}) == 3


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_long_prompts_go_in_piece_by_piece(params, chunk, monkeypatch):
    expected = generate(params, PROMPTS, Sampling(seed=5))
    monkeypatch.setattr(sampling_module, "PREFILL_CHUNK", chunk)
    assert generate(params, PROMPTS, Sampling(seed=5)) == expected


def test_a_prompt_draws_the_same_whatever_else_is_in_the_batch(params):
    together = generate(params, PROMPTS, Sampling(seed=5))
    other = generate(params, [PROMPTS[0], [1, 2, 3, 4, 5, 6, 7, 8]], Sampling(seed=5))
    assert together[0] == other[0]
    assert generate(params, PROMPTS, Sampling(seed=5)) == together
    assert generate(params, PROMPTS, Sampling(seed=6)) != together


def test_only_allowed_tokens_and_nothing_after_the_end(params):
    allowed = np.zeros(MODEL.vocab_size, bool)
    allowed[[10, 11]] = True
    texts = generate(params, PROMPTS, Sampling(), allowed=allowed)
    assert {token for text in texts for token in text} <= {10, 11}
    # With 10 as the end of text, each text is 11s up to the first 10 of the run above.
    ended = generate(params, PROMPTS, Sampling(), allowed=allowed, eos=10)
    for text, whole in zip(ended, texts, strict=True):
        assert text == whole[:whole.index(10) if 10 in whole else len(whole)]


def test_rows_are_filled_up_to_the_devices(params):
    mesh = jax.make_mesh((2, 2), ("data", "fsdp"), devices=jax.devices()[:4])
    full = jax.sharding.Mesh(mesh.devices.reshape(2, 1, 2, 1, 1, 1),
                             ("data", "stage", "fsdp", "expert", "context", "tensor"))
    expected = generate(params, PROMPTS, Sampling(temperature=0))
    placed = jax.device_put(params, transformer.param_shardings(MODEL, full, HOW.rules))
    with jax.set_mesh(full):
        assert generate(placed, PROMPTS, Sampling(temperature=0)) == expected


@pytest.mark.parametrize("choice", [{"temperature": -1.0}, {"top_k": -1}, {"top_p": 0.0},
                                    {"top_p": 1.5}, {"temperature": float("nan")}])
def test_impossible_choices_are_refused_by_flag(choice):
    with pytest.raises(ConfigError, match=f"--{next(iter(choice))}: must be"):
        Sampling(**choice)
