"""Parameters and FLOPs against hand computation."""

import dataclasses

import pytest

from maxlm.config import ModelConfig
from maxlm.models.counts import flops_per_token, matmul_param_count, param_count

# Llama 2 7B, arXiv:2307.09288: 6,738,415,616 parameters as published with its weights.
LLAMA_7B = ModelConfig(vocab_size=32000, num_layers=32, embed_dim=4096, num_heads=32,
                       num_kv_heads=32, head_dim=128, mlp_dim=11008)
# Llama 3 8B: 8,030,261,248 as published; grouped-query attention.
LLAMA_8B = dataclasses.replace(LLAMA_7B, vocab_size=128256, num_kv_heads=8, mlp_dim=14336)


@pytest.mark.parametrize(("config", "published"), [(LLAMA_7B, 6_738_415_616),
                                                   (LLAMA_8B, 8_030_261_248)])
def test_parameters_of_published_models(config, published):
    assert param_count(config) == published


def test_flops_by_hand():
    config = ModelConfig(vocab_size=100, num_layers=2, embed_dim=16, num_heads=4, num_kv_heads=2,
                         head_dim=8, mlp_dim=40)
    # per block: query 16*32, key and value 16*16 each, out 32*16, three matrices 16*40
    block = 512 + 2 * 256 + 512 + 3 * 640
    assert matmul_param_count(config) == 2 * block + 100 * 16
    # Forward, a token of a row of 64 meets 32 others on average: 4 heads of 8, two matmuls of two
    # FLOPs each, 2 layers; backward twice that.
    attention = 3 * 2 * 2 * (4 * 8) * 2 * 32
    assert flops_per_token(config, 64) == 6 * (2 * block + 1600) + attention
    tied = dataclasses.replace(config, tie_embeddings=True)
    assert param_count(tied) == param_count(config) - 1600
    assert flops_per_token(tied, 64) == flops_per_token(config, 64)


def test_flops_grow_with_layers():
    one, two, eighty = (
        flops_per_token(dataclasses.replace(LLAMA_7B, num_layers=n), 2048) for n in (1, 2, 80))
    layer = two - one
    assert layer > 6 * 4 * 4096 * 4096
    assert eighty - one == 79 * layer
