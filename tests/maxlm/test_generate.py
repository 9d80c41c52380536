"""`maxlm.evaluate` and `maxlm.generate` on a run of seconds."""

import json
import math
import shutil

import jax
import numpy as np
import pytest

from maxlm import evaluate, generate
from maxlm.config import ConfigError
from maxlm.training.checkpoint_reader import CheckpointError
from maxlm.training.runs import open_run
from tests import training_runs


@pytest.fixture(scope="module")
def workdir():
    path = training_runs.scratch() / "generate"
    assert training_runs.run(path, run__steps=4, evals__every_steps=2, checkpoint__every_steps=2,
                             checkpoint__keep=3) == 0
    return path


def printed(capsys, command, *arguments):
    capsys.readouterr()
    assert command.main(arguments) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("step", [2, 4])
def test_evaluate_prints_what_training_measured(workdir, capsys, step):
    shown = json.loads(printed(capsys, evaluate, f"--workdir={workdir}", f"--step={step}"))
    logged = next(row for row in training_runs.rows(workdir)
                  if row["step"] == step and "eval/loss" in row)
    assert shown.pop("split") == "validation"
    assert shown == logged


def test_evaluate_takes_the_newest_checkpoint_and_another_split(workdir, capsys):
    shown = json.loads(printed(capsys, evaluate, f"--workdir={workdir}",
                               "--config.evals.split=train", "--config.evals.batches=2"))
    assert (shown["step"], shown["split"]) == (4, "train")
    assert math.isclose(shown["eval/perplexity"], math.exp(shown["eval/loss"]))
    sources = ("prose", "code")
    assert shown["eval/tokens"] == sum(shown[f"eval/{name}/tokens"] for name in sources)


def test_generate_continues_each_prompt_and_repeats_itself(workdir, capsys):
    words = [f"--workdir={workdir}", "--prompt=word1 文字", "--prompt=", "--max_tokens=6", "--json"]
    first = [json.loads(line) for line in printed(capsys, generate, *words).splitlines()]
    assert [row["prompt"] for row in first] == ["word1 文字", ""]
    tokenizer = open_run(workdir).tokenizer
    for row in first:
        assert 0 < len(row["tokens"]) <= 6
        assert row["text"] == tokenizer.decode(row["tokens"])
        assert row["ended"] == (len(row["tokens"]) < 6)
        assert not {tokenizer.bos_id, tokenizer.eos_id, tokenizer.pad_id} & set(row["tokens"])
        assert max(row["tokens"]) < tokenizer.vocab_size  # the model's vocabulary is larger
    again = [json.loads(line) for line in printed(capsys, generate, *words).splitlines()]
    assert again == first
    other = printed(capsys, generate, *words, "--seed=1")
    assert [json.loads(line) for line in other.splitlines()] != first


def test_generate_shows_prompt_and_text_together(workdir, capsys):
    out = printed(capsys, generate, f"--workdir={workdir}", "--prompt=word1", "--max_tokens=3",
                  "--temperature=0")
    assert out.startswith("word1") and len(out) > len("word1\n")


def test_weights_read_for_generation_are_those_of_the_checkpoint(workdir):
    run = open_run(workdir, 2)
    saved = training_runs.saved_arrays(workdir, 2)
    flat = dict(jax.tree_util.tree_leaves_with_path(run.params))
    assert len(flat) == sum(name.startswith("['params']") for name in saved)
    for path, leaf in flat.items():
        np.testing.assert_array_equal(
            np.asarray(leaf), saved["['params']" + jax.tree_util.keystr(path)])


def test_a_run_of_many_devices_is_read_on_few(workdir):
    stored = open_run(workdir).config.parallel
    run = open_run(workdir, overrides=[("parallel.data", "1"), ("parallel.fsdp", "4"),
                                       ("parallel.tensor", "2")])
    assert run.config.parallel != stored
    assert dict(run.mesh.shape)["fsdp"] == 4
    with pytest.raises(ConfigError, match=r"config\.parallel.* 8 devices|there are 8"):
        open_run(workdir, overrides=[("parallel.data", "3")])


@pytest.mark.parametrize("words, message", [
    (["--step=3"], r"no checkpoint of step 3 in .*; have: 2, 4"),
    (["--max_tokens=0"], "--max_tokens: must be at least 1"),
    (["--seed=-1"], "--seed: must be at least 0"),
    (["--top_p=2"], "--top_p: must be above 0"),
    (["--config.model.num_layer=2"], "config.model.num_layer: no such field; did you mean"),
])
def test_mistakes_name_the_flag(workdir, words, message):
    with pytest.raises(ConfigError, match=message):
        generate.main([f"--workdir={workdir}", "--prompt=a", *words])


def test_no_run_no_checkpoint_damaged_checkpoint(workdir, tmp_path):
    with pytest.raises(ConfigError, match="holds no run"):
        generate.main([f"--workdir={tmp_path}", "--prompt=a"])
    copy = tmp_path / "copy"
    shutil.copytree(workdir, copy)
    largest = max((copy / "checkpoints" / "4").rglob("*"),
                  key=lambda file: file.stat().st_size if file.is_file() else 0)
    content = bytearray(largest.read_bytes())
    content[len(content) // 2] ^= 1
    largest.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"checkpoint 4 is damaged: file .* has changed"):
        generate.main([f"--workdir={copy}", "--prompt=a"])
    assert generate.main([f"--workdir={copy}", "--prompt=a", "--step=2", "--max_tokens=2"]) == 0
    shutil.rmtree(copy / "checkpoints")
    with pytest.raises(CheckpointError, match="has no checkpoint yet"):
        generate.main([f"--workdir={copy}", "--prompt=a"])
