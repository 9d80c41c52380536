"""A trained run and an extended tokenizer become a run that continues, by the real commands."""

import functools
import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from data_beam import extend_tokenizer, tokenize
from maxlm import evaluate, extend_vocabulary, generate
from maxlm.config import ConfigError
from maxlm.data.tokenizer import Tokenizer
from maxlm.models import transformer
from maxlm.training.runs import open_run
from tests import training_runs
from tests.document_corpora import document, write_corpus
from tests.token_corpora import tiny_tokenizer

TERMS = ["急性心肌梗死", "word3 文字", "heart attack"]
STEPS = 6


@functools.cache
def made():
    """A corpus, TOK, TOK2 and the tokens of each."""
    folder = training_runs.scratch() / "extend"
    rows = [document(i, f"word{i % 9} 文字 {TERMS[i % 3]} heart attack word{i % 7}。" * 4,
                     split="validation" if i % 8 == 0 else "train") for i in range(80)]
    write_corpus(folder / "corpus", rows)
    (folder / "TOK").mkdir()
    (folder / "TOK" / "tokenizer.model").write_bytes(tiny_tokenizer())
    (folder / "terms.txt").write_text("\n".join(TERMS), encoding="utf-8")
    assert extend_tokenizer.main([f"--tokenizer={folder / 'TOK'}", f"--add={folder / 'terms.txt'}",
                                  f"--output={folder / 'TOK2'}"]) == 0
    for name in ("TOK", "TOK2"):
        assert tokenize.main([f"--corpus={folder / 'corpus'}", f"--tokenizer={folder / name}",
                              f"--output={folder / f'tokens-{name}'}"]) == 0
    return folder


def settings(tokens, **more):
    return {"data__tokens": str(made() / tokens), "run__steps": STEPS, "evals__batches": 1,
            "schedule__learning_rate": 3e-3, **more}


@functools.cache
def runs(tied):
    """RUN and RUN2."""
    folder = training_runs.scratch() / f"extended-{tied}"
    assert training_runs.run(folder / "RUN", **settings(
        "tokens-TOK", model__tie_embeddings=tied, model__vocab_size=400)) == 0
    assert extend_vocabulary.main([f"--workdir={folder / 'RUN'}", f"--tokenizer={made() / 'TOK2'}",
                                   f"--output={folder / 'RUN2'}"]) == 0
    return folder


TIED = pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])


@TIED
def test_new_rows_are_means_and_all_else_is_as_it_was(tied):
    folder = runs(tied)
    old = training_runs.saved_arrays(folder / "RUN", STEPS)
    new = training_runs.saved_arrays(folder / "RUN2", 0)
    assert old.keys() == new.keys()
    tokenizer = Tokenizer.load(made() / "TOK")
    resized = 0
    for name, array in new.items():
        if name == "['step']":
            assert array == 0
        elif array.shape == old[name].shape:
            np.testing.assert_array_equal(array, old[name])
        else:
            resized += 1
            assert array.shape == (416, 64)  # a multiple of 16, as 400 is
            np.testing.assert_array_equal(array[:400], old[name])
            if "params" in name:
                for number, term in enumerate(TERMS):
                    pieces = [old[name][i].astype(np.float64) for i in tokenizer.encode(term)]
                    mean = sum(pieces) / len(pieces)
                    np.testing.assert_allclose(array[400 + number], mean, rtol=1e-6, atol=1e-9)
                np.testing.assert_array_equal(array[403:], np.tile(old[name][0], (13, 1)))
            else:
                assert not array[400:].any() and array[:400].any()
    assert resized == 3 * (1 if tied else 2)  # weights and two moments of each table


@TIED
def test_logits_of_old_tokens_do_not_change(tied):
    folder = runs(tied)
    old, new = open_run(folder / "RUN"), open_run(folder / "RUN2")
    assert new.step == 0 and new.config.model.vocab_size == 416
    ids = old.tokenizer.encode("word1 文字 急性 heart")
    assert new.tokenizer.encode("word1 文字 急性 heart") == ids
    tokens = jnp.asarray([[old.tokenizer.bos_id, *ids]] * 8)
    hidden, logits = [], []
    for run in (old, new):
        for function, results in ((transformer.hidden, hidden), (transformer.logits, logits)):
            with jax.set_mesh(run.mesh):
                results.append(np.asarray(jax.jit(function, static_argnums=(4, 5))(
                    run.params, tokens, jnp.ones_like(tokens),
                    jnp.broadcast_to(jnp.arange(tokens.shape[1]), tokens.shape), run.config.model,
                    run.how)))
    # All that goes into the logits is the same to the bit: these and the rows, see above.
    np.testing.assert_array_equal(hidden[0], hidden[1])
    # The matmul adds 64 products of up to 0.3 in another order where it has other tiles.
    assert logits[0].std() > 0.1
    np.testing.assert_allclose(logits[0], logits[1][..., :400], rtol=0, atol=1e-6)


def test_training_goes_on_from_there(tmp_path, capfd):
    run2 = shutil.copytree(runs(False) / "RUN2", tmp_path / "trained")
    more = settings("tokens-TOK2", model__tie_embeddings=False, model__vocab_size=416,
                    run__steps=8, checkpoint__every_steps=4)
    assert training_runs.run(run2, **more) == 0
    assert "starting from the weights in" in capfd.readouterr().err
    losses = training_runs.losses(run2)
    assert list(losses) == list(range(1, 9))
    # Far below a fresh model's ln 416 = 6.03, and falling.
    assert losses[1] < 5.7 and losses[8] < losses[1] - 0.2
    arrays, first = (training_runs.saved_arrays(folder, step) for folder, step in (
        (run2, 8), (runs(False) / "RUN2", 0)))
    name = "['params']['embedding']"
    assert (arrays[name][400:403] != first[name][400:403]).all(axis=1).all()  # they learn
    # What was stopped goes on with the data order of the new tokens, and only with it.
    shutil.rmtree(run2 / "checkpoints" / "8")
    assert training_runs.run(run2, **more) == 0
    assert training_runs.losses(run2) == losses
    with pytest.raises(ConfigError, match=r"of another run: config\.data\.sequence_length"):
        training_runs.run(run2, **{**more, "run__steps": 9, "data__sequence_length": 32})


def test_the_new_run_generates_and_is_evaluated(capsys):
    folder = runs(False)
    assert generate.main([f"--workdir={folder / 'RUN2'}", "--prompt=word1", "--max_tokens=3"]) == 0
    assert capsys.readouterr().out.startswith("word1")
    assert evaluate.main([f"--workdir={folder / 'RUN2'}",
                          f"--config.data.tokens={made() / 'tokens-TOK2'}"]) == 0
    assert json.loads(capsys.readouterr().out)["step"] == 0
    started = json.loads((folder / "RUN2" / "started_from.json").read_text())
    assert (started["step"], started["new_tokens"], started["vocab_size"]) == (STEPS, 3, 416)
    assert started["tokenizer_sha256"] == Tokenizer.load(made() / "TOK").sha256


def test_what_does_not_fit_is_refused(tmp_path):
    folder = runs(False)
    run2 = shutil.copytree(folder / "RUN2", tmp_path / "RUN2")
    fit = {"model__tie_embeddings": False, "model__vocab_size": 416}
    with pytest.raises(ConfigError, match=r"config\.data\.tokens: made with tokenizer .*, but the "
                                          r"weights to start from are for .*--workdir"):
        training_runs.run(run2, **settings("tokens-TOK", **fit))
    with pytest.raises(ConfigError, match=r"config\.model\.vocab_size: checkpoint 416, this run 4"):
        training_runs.run(run2, **settings("tokens-TOK2", **{**fit, "model__vocab_size": 432}))
    flags = [f"--workdir={folder / 'RUN'}", f"--tokenizer={made() / 'TOK2'}"]
    with pytest.raises(ConfigError, match=r"--output: .* exists; choose"):
        extend_vocabulary.main([*flags, f"--output={folder / 'RUN2'}"])
    with pytest.raises(ConfigError, match="no checkpoint of step 5"):
        extend_vocabulary.main([*flags, f"--output={tmp_path / 'x'}", "--step=5"])
    with pytest.raises(ConfigError, match="adds no ids"):
        extend_vocabulary.main([f"--workdir={folder / 'RUN'}", f"--tokenizer={made() / 'TOK'}",
                                f"--output={tmp_path / 'x'}"])
    assert not (tmp_path / "x").exists()
