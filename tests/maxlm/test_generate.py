"""`maxlm.evaluate` and `maxlm.generate` on a run of seconds."""

import hashlib
import json
import math
import re
import shutil

import jax
import numpy as np
import pytest

from maxlm import evaluate, generate
from maxlm.config import ConfigError
from maxlm.training.checkpoint_reader import CheckpointError
from maxlm.training.runs import open_run
from tests import token_corpora, training_runs


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
    assert shown.pop("eval/set") == training_runs.rows(workdir)[0]["eval/set"]
    assert shown == logged


def test_evaluate_notes_another_evaluation_set_than_that_of_training(tmp_path, capsys):
    tokens = shutil.copytree(training_runs.tokens(), tmp_path / "tokens")
    run = tmp_path / "run"
    assert training_runs.run(run, run__steps=1, data__tokens=str(tokens)) == 0
    shutil.rmtree(tokens / "validation")
    shutil.copytree(training_runs.tokens(5) / "validation", tokens / "validation")
    capsys.readouterr()
    assert evaluate.main([f"--workdir={run}"]) == 0
    shown = capsys.readouterr()
    assert "note: not the evaluation set of the run's metrics.jsonl: split 'validation'" in (
        shown.err)
    assert json.loads(shown.out)["eval/set"] != training_runs.rows(run)[0]["eval/set"]
    assert evaluate.main([f"--workdir={run}", "--config.evals.split=train"]) == 0
    assert "note:" not in capsys.readouterr().err


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


def test_long_work_shows_progress(workdir, capsys, monkeypatch):
    words = [f"--workdir={workdir}", "--prompt=word1", "--prompt=文字", "--temperature=0",
             "--max_tokens=5"]
    text = printed(capsys, generate, *words)
    monkeypatch.setattr(generate, "PROGRESS_SECONDS", 0.0)
    assert generate.main(words) == 0
    shown = capsys.readouterr()
    assert shown.out == text  # progress goes to standard error
    lines = [line for line in shown.err.splitlines() if line.startswith("token ")]
    assert 1 <= len(lines) <= 5
    for count, line in enumerate(lines, 1):
        assert re.fullmatch(rf"token {count} of at most 5, [\d.,]+ tokens/s in each text, at most "
                            r"\d+:\d\d left", line), line


@pytest.fixture
def damaged(workdir, tmp_path):
    """The run with a damaged checkpoint of step 4; step 2 is sound."""
    copy = tmp_path / "run"
    shutil.copytree(workdir, copy)
    (copy / "checkpoints" / "4" / "checksums.json").write_text("{")
    return copy


@pytest.mark.parametrize("command", [generate, evaluate])
def test_a_damaged_newest_checkpoint_names_the_one_to_use(damaged, capsys, command):
    words = [f"--workdir={damaged}", *(["--prompt=word1", "--max_tokens=2"]
                                       if command is generate else [])]
    with pytest.raises(ConfigError, match=r"^checkpoint 4 is damaged: file checksums\.json is not "
                                          r"valid JSON; add --step=2 to use the newest sound "
                                          r"checkpoint$"):
        command.main(words)
    assert command.main([*words, "--step=2"]) == 0  # as advised
    (damaged / "checkpoints" / "2" / "checksums.json").write_text("{")
    with pytest.raises(ConfigError, match=r"checkpoint 4 is damaged: .*; there is no sound"):
        command.main(words)


def test_only_fields_that_leave_the_trained_model_alone_are_overridden(workdir):
    free = {"model.attention": "reference", "model.remat": "full", "model.scan_layers": "false",
            "model.loss_chunk": "64", "data.batch_size": "16", "evals.split": "train",
            "precision.compute": "bfloat16", "telemetry.log_every": "2"}
    run = open_run(workdir, overrides=list(free.items()))
    assert run.config.model.remat == "full" and run.config.data.batch_size == 16
    for name, text in {"model.num_layers": "2", "model.rope_theta": "1e6", "run.seed": "5",
                       "run.steps": "9", "optimizer.beta1": "0.8", "schedule.steps": "7"}.items():
        with pytest.raises(ConfigError, match=f"^config.{name}: belongs to the trained run.*what "
                                              r"can: .*config\.model\.remat.*config\.data\.\*"):
            open_run(workdir, overrides=[(name, text)])


@pytest.mark.parametrize("words, message", [
    (["--step=3"], r"no checkpoint of step 3 in .*; have: 2, 4"),
    (["--max_tokens=0"], "--max_tokens: must be at least 1"),
    (["--seed=-1"], "--seed: must be from 0 to 2147483647"),
    (["--seed=2147483648"], "--seed: must be from 0 to 2147483647"),
    (["--seed=99999999999999999999999"], "--seed: must be from 0 to 2147483647"),
    (["--prompt=a\udcff"], "--prompt: not UTF-8 at character 2 of"),
    # 2 layers, 4 heads of 16, float32: 1 KiB a token, on 8 devices
    (["--max_tokens=999999998"], r"--max_tokens: keys and values of 8 texts of 1000000000 tokens "
                                 r"take 7,629\.4 GiB, but there are .* GiB of memory"),
    (["--max_tokens=" + "9" * 30], "--max_tokens: keys and values"),
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


@pytest.mark.parametrize("file", ["meta/metadata", "state/_METADATA", "checksums.json"])
def test_a_damaged_description_is_one_line_too(workdir, tmp_path, file):
    copy = shutil.copytree(workdir, tmp_path / "copy")
    damaged = copy / "checkpoints" / "4" / file
    damaged.write_bytes(damaged.read_bytes()[:-3])
    for command, words in ((generate, ["--prompt=a"]), (evaluate, [])):
        with pytest.raises(CheckpointError, match=f"checkpoint 4 is damaged: file {file}"):
            command.main([f"--workdir={copy}", *words])


def test_the_model_stays_what_was_trained(workdir, capsys):
    for name, text in [("model.rope_theta", "5"), ("model.norm_epsilon", "0.1"),
                       ("model.num_layers", "1"), ("run.seed", "3")]:
        with pytest.raises(ConfigError, match=f"config.{name}: belongs to the trained") as caught:
            evaluate.main([f"--workdir={workdir}", f"--config.{name}={text}"])
        assert "config.model.attention" in str(caught.value)
    words = [f"--workdir={workdir}"]
    one, other = (json.loads(printed(capsys, evaluate, *words, *more)) for more in (
        [], ["--config.model.attention=reference", "--config.model.scan_layers=true",
             "--config.model.remat=full", "--config.model.loss_chunk=32"]))
    assert one.keys() == other.keys()
    assert math.isclose(one["eval/loss"], other["eval/loss"], abs_tol=1e-5)


def other_tokens(directory, vocab_size):
    tokenizer = token_corpora.tiny_tokenizer(vocab_size)
    documents = [token_corpora.document_tokens(np.random.default_rng(0), 50, vocab_size)]
    token_corpora.write_split(directory, "validation", {"prose": [documents]}, vocab_size,
                              tokenizer=tokenizer)
    return hashlib.sha256(tokenizer).hexdigest()[:12]


@pytest.mark.parametrize("vocab_size", [390, 420])
def test_tokens_of_another_tokenizer_are_not_scored(workdir, tmp_path, vocab_size):
    other = other_tokens(tmp_path / "other", vocab_size)
    mine = hashlib.sha256(token_corpora.tiny_tokenizer()).hexdigest()[:12]
    with pytest.raises(ConfigError, match=f"made with tokenizer {other}.*trained with {mine}"):
        evaluate.main([f"--workdir={workdir}", f"--config.data.tokens={tmp_path / 'other'}"])


def test_another_tokenizer_in_the_run_is_refused(workdir, tmp_path):
    copy = shutil.copytree(workdir, tmp_path / "copy")
    (copy / "tokenizer.model").write_bytes(token_corpora.tiny_tokenizer(390))
    with pytest.raises(CheckpointError, match="not the tokenizer the run was trained with"):
        generate.main([f"--workdir={copy}", "--prompt=a"])


def test_a_run_is_evaluated_from_any_directory_and_its_tokens_may_move(
        tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(training_runs.tokens(), "tokens")
    settings = {"data__tokens": "tokens", "evals__batches": 1}
    assert training_runs.run(tmp_path / "run", run__steps=1, **settings) == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    shown = json.loads(printed(capsys, evaluate, "--workdir=../run"))
    shutil.move(tmp_path / "tokens", tmp_path / "moved")
    with pytest.raises(ConfigError, match=r"no directory .*/tokens.* --config\.data\.tokens=PATH"):
        evaluate.main(["--workdir=../run"])
    assert json.loads(printed(capsys, evaluate, "--workdir=../run",
                              "--config.data.tokens=../moved")) == shown
    # And training goes on: the plan decides, not the place.
    settings["data__tokens"] = "../moved"
    assert training_runs.run(tmp_path / "run", run__steps=2, **settings) == 0
    assert sorted(training_runs.losses(tmp_path / "run")) == [1, 2]


def test_urls_are_not_paths(workdir, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command, words in ((generate, ["--prompt=a"]), (evaluate, [])):
        with pytest.raises(ConfigError, match="--workdir: 'gs://bucket/run' is a URL"):
            command.main(["--workdir=gs://bucket/run", *words])
    with pytest.raises(ConfigError, match=r"config\.data\.tokens: 's3://b/t' is a URL"):
        evaluate.main([f"--workdir={workdir}", "--config.data.tokens=s3://b/t"])
    assert not list(tmp_path.iterdir())
