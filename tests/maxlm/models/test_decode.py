"""Decoding with the KV cache gives the logits of the full forward pass."""

import jax
import numpy as np
import pytest

from maxlm.models import transformer
from tests.maxlm.models.examples import BFLOAT16, FLOAT32, SMALL


@pytest.mark.parametrize(("precision", "tolerance"), [(FLOAT32, 2e-5), (BFLOAT16, 2e-2)])
def test_prefill_and_steps_equal_the_full_forward(precision, tolerance):
    random = np.random.default_rng(0)
    params = transformer.init_params(SMALL, 0)
    lengths, steps = np.array([3, 17, 9]), 6
    tokens = random.integers(0, SMALL.vocab_size, (3, 17 + steps)).astype(np.int32)

    # Expected: the full forward pass of each row alone.
    full = []
    for row, length in enumerate(lengths):
        n = int(length) + steps
        ones = np.ones((1, n), np.int32)
        full.append(np.asarray(transformer.logits(
            params, tokens[row:row + 1, :n], ones, np.arange(n, dtype=np.int32)[None], SMALL,
            precision)[0]))

    decode = jax.jit(transformer.decode, static_argnums=(4, 5))
    # 17 + 6 slots: the padding of the short prompts falls on slots the next tokens overwrite.
    cache = transformer.init_cache(SMALL, 3, 17 + steps, precision)
    prompt = np.where(np.arange(17) < lengths[:, None], tokens[:, :17], 7)
    logits, cache = decode(params, cache, prompt, lengths, SMALL, precision)
    for step in range(steps):
        for row, length in enumerate(lengths):
            np.testing.assert_allclose(logits[row], full[row][length - 1 + step], atol=tolerance)
        following = tokens[np.arange(3), lengths + step][:, None]
        logits, cache = decode(params, cache, following, np.ones(3, np.int32), SMALL, precision)
    np.testing.assert_array_equal(cache.length, lengths + steps)


def test_a_row_with_no_new_tokens_is_left_alone():
    params = transformer.init_params(SMALL, 0)
    tokens = np.random.default_rng(1).integers(0, 256, (2, 8)).astype(np.int32)

    def run(pause):
        cache = transformer.init_cache(SMALL, 2, 8, FLOAT32)
        _, cache = transformer.decode(params, cache, tokens[:, :4], np.array([4, 4]), SMALL,
                                      FLOAT32)
        if pause:
            _, cache = transformer.decode(params, cache, tokens[:, 4:5], np.array([1, 0]), SMALL,
                                          FLOAT32)
        return transformer.decode(params, cache, tokens[:, 5:6], np.array([1, 1]), SMALL,
                                  FLOAT32)[0][1]

    np.testing.assert_allclose(run(True), run(False), atol=1e-6)
