"""Same weights, same logits as Hugging Face LlamaForCausalLM: RoPE, GQA, norms and heads."""

import dataclasses

import jax
import numpy as np
import pytest

from maxlm.config import ConfigError, ModelConfig
from maxlm.config.trainer import GroupConfig
from maxlm.interop import llama
from maxlm.models import transformer
from maxlm.models.positions import Rotary
from maxlm.parallel.execution import Execution

torch = pytest.importorskip("torch", reason="pip install torch==2.13.0 transformers")
transformers = pytest.importorskip("transformers", reason="pip install torch==2.13.0 transformers")

GQA = ModelConfig(vocab_size=512, num_layers=3, embed_dim=128, num_heads=8, num_kv_heads=2,
                  head_dim=32, mlp_dim=320, rope_theta=50000.0, norm_epsilon=1e-6)
TIED = dataclasses.replace(GQA, tie_embeddings=True)
LENGTH = 512


def peer(config: ModelConfig):
    """transformers' model with random weights, norm scales included."""
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**llama.llama_config(config, LENGTH)))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.uniform_(0.5, 1.5)
            else:
                parameter.normal_(0, 0.08)  # large enough for attention to be far from uniform
    return model.eval()


def state_dict(model) -> dict[str, np.ndarray]:
    return {name: tensor.detach().numpy() for name, tensor in model.state_dict().items()}


@pytest.mark.parametrize("config", [
    GQA, TIED, dataclasses.replace(GQA, scan_layers=False, attention="reference")])
def test_logits_at_512_tokens(config):
    model = peer(config)
    tokens = np.random.default_rng(0).integers(0, config.vocab_size, (2, LENGTH))
    with torch.no_grad():
        expected = model(torch.from_numpy(tokens)).logits.numpy()
    params = llama.from_llama(state_dict(model), config)
    ones = np.ones_like(tokens, np.int32)
    positions = np.tile(np.arange(LENGTH, dtype=np.int32), (2, 1))
    ours = jax.jit(transformer.logits, static_argnums=(4, 5))(
        params, tokens, ones, positions, config, Execution())
    assert np.abs(expected).max() > 1
    assert np.abs(np.asarray(ours) - expected).max() < 1e-4


@pytest.mark.parametrize("config", [GQA, TIED])
@pytest.mark.parametrize("interleaved", [False, True])
def test_weights_survive_the_round_trip(config, interleaved):
    ours = jax.tree.map(np.asarray, transformer.init_params(config, 0))
    named = llama.to_llama(ours, config, interleaved=interleaved)
    again = llama.from_llama(named, config, interleaved=interleaved)
    jax.tree.map(np.testing.assert_array_equal, again, ours)
    # ... and transformers takes them, all of them, without a shape changed.
    model = peer(config)
    missing, unexpected = model.load_state_dict(
        {name: torch.from_numpy(array.copy()) for name, array in named.items()}, strict=False)
    assert not unexpected
    assert set(missing) <= ({"lm_head.weight"} if config.tie_embeddings else set())


def test_interleaved_pairs_are_metas_permutation():
    """The permutation published in transformers' convert_llama_weights_to_hf.py, written out."""
    heads, width, inputs = 2, 6, 3
    metas = np.arange(heads * width * inputs, dtype=np.float32).reshape(heads * width, inputs)
    published = metas.reshape(heads, width // 2, 2, inputs).transpose(0, 2, 1, 3).reshape(
        heads * width, inputs)
    np.testing.assert_array_equal(llama._pair_halves(metas, heads), published)
    np.testing.assert_array_equal(published[:3], metas[[0, 2, 4]])
    np.testing.assert_array_equal(llama._pair_neighbours(published, heads), metas)


def test_interleaved_rotation_gives_the_same_attention_scores():
    """Neighbour pairs turned by complex numbers (Meta's formula) and halves turned by `rotate`."""
    random = np.random.default_rng(0)
    K, T = 32, 600
    weight_q, weight_k = random.normal(size=(2, K, 16)).astype(np.float32)
    x = random.normal(size=(T, 16)).astype(np.float32)
    angles = np.arange(T)[:, None] * 10000.0 ** (-np.arange(0, K, 2) / K)

    def metas(weight):
        y = (x @ weight.T).astype(np.float64)
        return (y[:, 0::2] + 1j * y[:, 1::2]) * np.exp(1j * angles)

    expected = (metas(weight_q) @ metas(weight_k).conj().T).real

    def ours(weight):
        y = x @ llama._pair_halves(weight, 1).T
        rotary = Rotary(ModelConfig(head_dim=K, rope_theta=10000.0))
        tables = rotary.tables(np.arange(T)[None], Execution())
        return np.asarray(rotary.rotate(y[None, :, None], tables))[0, :, 0]

    np.testing.assert_allclose(ours(weight_q) @ ours(weight_k).T, expected, atol=2e-2, rtol=1e-3)


@pytest.mark.parametrize(("damage", "message"), [
    (lambda w: w.pop("model.norm.weight"), "'model.norm.weight' is missing"),
    (lambda w: w.update({"model.layers.9.mlp.up_proj.weight": 0}), "no place in the model"),
    (lambda w: w.update({"lm_head.weight": np.zeros((3, 3))}), "shape (3, 3)"),
])
def test_weights_that_do_not_fit_are_named(damage, message):
    named = llama.to_llama(transformer.init_params(GQA, 0), GQA)
    damage(named)
    with pytest.raises(ConfigError, match=message.replace("(", r"\(").replace(")", r"\)")):
        llama.from_llama(named, GQA)


@pytest.mark.parametrize("change", [
    {"positions": "none"}, {"norm": "layernorm"}, {"activation": "gelu"},
    {"groups": (GroupConfig(repeat=2),)}])
def test_other_models_are_refused(change):
    [field] = change
    config = dataclasses.replace(GQA, **change)
    for function in (lambda: llama.llama_config(config, 8), lambda: llama.to_llama({}, config),
                     lambda: llama.from_llama({}, config)):
        with pytest.raises(ConfigError, match=f"config.model.{field}: .* has no place in a Llama"):
            function()
