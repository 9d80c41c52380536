"""Held-out numbers against every document scored alone, in numpy, from the logits."""

import dataclasses
import hashlib
import math

import jax
import numpy as np
import pytest
import sentencepiece

from maxlm.config import ConfigError, EvalsConfig, ModelConfig, ParallelConfig
from maxlm.evals import EvaluatedRun
from maxlm.evals.held_out import HeldOut, evaluation_plan, summarise
from maxlm.models import transformer
from maxlm.parallel.batches import BatchPlacement
from maxlm.parallel.execution import Execution
from maxlm.parallel.mesh import make_mesh
from maxlm.parallel.rules import logical_rules
from maxlm.training.state import abstract_state
from tests import training_runs
from tests.token_corpora import BOS, EOS, tiny_tokenizer, write_split

TEXTS = {"prose": ["word1 word2 文字", "word3", "word4 文字 word5 word6 word7", "é ü 😀 word8"],
         "code": ["def word9():\n\treturn 1", "x = 1"]}
MODEL = ModelConfig(vocab_size=400, num_layers=2, embed_dim=32, num_heads=4, num_kv_heads=2,
                    head_dim=8, mlp_dim=48, init_std=0.3)

RULES = logical_rules(ParallelConfig())


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    processor = sentencepiece.SentencePieceProcessor(model_proto=tiny_tokenizer())
    encoded = {name: [[np.array([BOS, *processor.encode(text), EOS], np.uint16) for text in texts]]
               for name, texts in TEXTS.items()}
    directory = tmp_path_factory.mktemp("texts")
    write_split(directory, "train", encoded)
    write_split(directory, "validation", encoded)
    return directory, encoded


def config(directory, batches: int):
    base = training_runs.config(data__tokens=str(directory), data__batch_size=2)
    return dataclasses.replace(base, model=MODEL, evals=EvalsConfig(every_steps=1, batches=batches))


TOKENIZER = hashlib.sha256(tiny_tokenizer()).hexdigest()


def plan(settings):
    return evaluation_plan(settings, TOKENIZER)


def params():
    return transformer.init_params(MODEL, 5)


def by_hand(encoded) -> dict[str, float]:
    """Nats and counts of each source: every token but BOS is predicted from those before it."""
    sums = {}
    for name, [documents] in encoded.items():
        nats = count = 0.0
        for document in documents:
            ids = document.astype(np.int32)[None]
            logits = np.asarray(transformer.logits(
                params(), ids, np.ones_like(ids), np.arange(ids.shape[1], dtype=np.int32)[None],
                MODEL, Execution()), np.float64)[0]
            log_probabilities = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
            nats -= log_probabilities[np.arange(len(document) - 1), document[1:]].sum()
            count += len(document) - 1
        sums[name] = (nats, count, sum(len(text.encode()) for text in TEXTS[name]))
    sums[""] = tuple(map(sum, zip(*sums.values(), strict=True)))
    return {f"eval{name and '/' + name}/{key}": value for name, (nats, count, size) in sums.items()
            for key, value in [("loss", nats / count), ("perplexity", math.exp(nats / count)),
                               ("bits_per_byte", nats / math.log(2) / size), ("tokens", count)]}


@pytest.mark.parametrize(("parallel", "devices", "batches"), [
    (ParallelConfig(), 1, 3),
    (ParallelConfig(), 1, 40),  # far more batches than the split has rows
    (ParallelConfig(data=2, tensor=2), 4, 5),
])
def test_loss_perplexity_and_bits_per_byte(tokens, parallel, devices, batches):
    directory, encoded = tokens
    settings = config(directory, batches)
    mesh = make_mesh(parallel, jax.devices()[:devices])
    abstract = abstract_state(settings, mesh).params
    held_out = HeldOut(EvaluatedRun(
        settings, mesh, BatchPlacement(mesh, RULES, 2), abstract, plan(settings)))
    weights = jax.tree.map(lambda leaf, a: jax.device_put(leaf, a.sharding), params(), abstract)
    wanted = by_hand(encoded)
    for _ in range(2):  # the same rows again
        found = held_out.score(weights)
        assert set(found) == set(wanted)
        for name, value in wanted.items():
            np.testing.assert_allclose(found[name], value, rtol=2e-6, err_msg=name)


def test_a_model_that_knows_nothing_has_the_perplexity_of_the_vocabulary(tokens):
    directory, _ = tokens
    settings = config(directory, 3)
    mesh = make_mesh(ParallelConfig(), jax.devices()[:1])
    zeros = jax.tree.map(lambda leaf: 0 * leaf, params())
    run = EvaluatedRun(settings, mesh, BatchPlacement(mesh, RULES, 2), zeros, plan(settings))
    found = HeldOut(run).score(zeros)
    np.testing.assert_allclose(found["eval/perplexity"], 400, rtol=1e-5)


@pytest.mark.parametrize(("nats", "perplexity"), [
    (0.0, 1.0), (7090.0, math.exp(709.0)), (7100.0, math.inf), (math.inf, math.inf)])
def test_a_perplexity_past_the_largest_float_is_infinite(nats, perplexity):
    assert summarise(nats, 10, 10, "eval")["eval/perplexity"] == pytest.approx(perplexity)


def test_a_split_without_a_trained_token_is_refused():
    with pytest.raises(ConfigError, match=r"config\.evals\.split: every token"):
        summarise(0, 0, 12, "eval")


def test_ids_the_model_does_not_know_are_refused(tokens):
    directory, _ = tokens
    settings = config(directory, 1)
    with pytest.raises(ConfigError, match=rf"made with tokenizer {TOKENIZER[:12]}, but the model "
                                          r"was trained with 0123456789ab \(sha256\)"):
        evaluation_plan(settings, "0123456789abcdef")
    smaller = dataclasses.replace(settings, model=dataclasses.replace(MODEL, vocab_size=399))
    with pytest.raises(ConfigError, match="vocabulary of 400, but the model one of 399"):
        evaluation_plan(smaller, TOKENIZER)
