"""`python -m maxlm.train`: killed and run again, refused, out of space. Signals: test_stop.py."""

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from maxlm import train
from maxlm.cli.command_line import run_command
from tests import training_runs as runs
from tests.token_corpora import tiny_tokenizer, write_split

STEPS = 30  # of 8 rows: six times through the corpus
SPENT = 280.0


def mixture() -> str:
    return json.dumps([{"path": str(runs.tokens()), "source": "prose", "weight": 0.7},
                       {"path": str(runs.tokens()), "source": "code", "weight": 0.3}])


def long_run(**settings) -> dict:
    return {"data__tokens": mixture(), "run__steps": STEPS, "checkpoint__every_steps": 4,
            "evals__every_steps": 7, "telemetry__console_seconds": 0, **settings}


def kill_when(process: subprocess.Popen, happened) -> None:
    """kill -9 at the moment that `happened()` turns true."""
    until = time.monotonic() + SPENT
    while not happened():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < until
        time.sleep(0.0005)
    process.kill()
    process.communicate(timeout=60)  # its workers end too and close the pipes
    assert process.returncode == -signal.SIGKILL


def metrics_lines(workdir: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        return (workdir / "metrics.jsonl").read_bytes().count(b"\n")
    return 0


def saving(workdir: Path) -> bool:
    return any((workdir / "checkpoints").glob("*orbax-checkpoint-tmp*"))


def assert_killed_run_equals_uninterrupted(tmp_path: Path, seed: int, **settings) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    settings = long_run(**settings)
    runs.finish(runs.start(whole, **settings))

    random = np.random.default_rng(seed)
    process = runs.start(killed, **settings)
    kill_when(process, lambda: (killed / "config.json").exists())  # while it compiles
    for low, high in ((2, 10), (12, 20)):
        # Twice in the middle of a step: the checkpoint before it is at most 4 steps back.
        rows = int(random.integers(low, high))
        process = runs.start(killed, **settings)
        kill_when(process, lambda rows=rows: metrics_lines(killed) > rows)
    process = runs.start(killed, **settings)
    kill_when(process, lambda: saving(killed))  # while a checkpoint is written
    errors = runs.finish(runs.start(killed, **settings))
    assert re.search(r"resuming after step \d+ of 30", errors)

    assert runs.rows(killed) == runs.rows(whole)
    steps = [row["step"] for row in runs.rows(whole) if "loss" in row]
    assert steps == list(range(1, STEPS + 1))
    evaluated = [row["step"] for row in runs.rows(whole) if "eval/loss" in row]
    assert evaluated == [0, 7, 14, 21, 28, 30]
    arrays, wanted = (runs.saved_arrays(run, STEPS) for run in (killed, whole))
    assert len(arrays) == len(wanted) > 30  # weights and two moments each
    for name, array in wanted.items():
        assert array.tobytes() == arrays[name].tobytes(), name


def test_killed_at_random_moments_the_run_ends_the_same_bit_for_bit(tmp_path):
    assert_killed_run_equals_uninterrupted(tmp_path, 0, data__packing="best_fit")
    # Across several epochs of both sources, with the mixture asked for.
    saved = json.loads((tmp_path / "whole/checkpoints/30/meta/metadata").read_text())
    assert [source["epochs"] > 2 for source in saved["plan"]["sources"]] == [True, True]
    [stage] = saved["plan"]["stages"]
    np.testing.assert_allclose([source["realised_weight"] for source in stage["sources"]],
                               [0.7, 0.3], atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("settings", [
    {"data__packing": "concat"},
    {"data__packing": "best_fit", "data__workers": 2},
    {"data__packing": "concat", "run__accumulation_steps": 4, "precision__compute": "bfloat16",
     "model__scan_layers": True, "model__remat": "dots"},
], ids=["concat", "workers", "accumulation in bfloat16"])
def test_killed_runs_end_the_same_whatever_the_settings(tmp_path, settings, seed):
    assert_killed_run_equals_uninterrupted(tmp_path, seed, **settings)


# -- what a finished run of four steps looks like, and what may follow it -------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """Checkpoints of steps 2 and 4. Tests copy it."""
    workdir = tmp_path_factory.mktemp("finished") / "run"
    assert runs.run(workdir) == 0
    return workdir


@pytest.fixture
def workdir(finished, tmp_path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def command(argv: list[str], monkeypatch, capfd) -> tuple[int, str]:
    """Exit status and standard error of the command, run in this process."""
    monkeypatch.setattr(sys, "argv", ["maxlm.train", *argv])
    capfd.readouterr()
    with pytest.raises(SystemExit) as caught:
        run_command(train.main)
    return caught.value.code, capfd.readouterr().err


def test_rows_have_the_fields_that_are_promised(finished):
    rows = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()]
    training = [row for row in rows if "loss" in row]
    assert [row["step"] for row in training] == [1, 2, 3, 4]
    for row in training:
        assert list(row) == ["step", "loss", "grad_norm", "update_norm", "param_norm",
                             "learning_rate", "tokens", "tokens_per_second", "step_seconds",
                             "data_wait_seconds"]
        assert row["step_seconds"] > 0 and row["data_wait_seconds"] >= 0
        assert row["data_wait_seconds"] < row["step_seconds"] + 1
    for row in rows:
        if any(name.startswith("eval/") for name in row) and "eval/set" not in row:
            assert {"step", "eval/loss", "eval/perplexity", "eval/bits_per_byte"} < set(row)
    assert list(rows[0]) == ["step", "data/prose/planned_epochs", "data/code/planned_epochs",
                             "eval/set"]
    assert [row["step"] for row in rows if "eval/loss" in row] == [0, 4]
    # Trained tokens: every token of a row but the last of each document, over all steps so far.
    plan_rows = [train.Plan.build(runs.config().data, 0).rows(step) for step in range(4)]
    counts = np.cumsum([(rows["weights"] > 0).sum() for rows in plan_rows])
    assert [row["tokens"] for row in training] == counts.tolist()


def test_a_run_leaves_its_config_and_tokenizer(finished):
    assert json.loads((finished / "config.json").read_text())["run"]["steps"] == 4
    assert (finished / "tokenizer.model").read_bytes() == (
        runs.tokens() / "tokenizer.model").read_bytes()
    assert sorted(p.name for p in (finished / "checkpoints").iterdir()) == ["2", "4"]


@pytest.mark.parametrize("steps", [4, 3, 2])
def test_at_or_past_the_last_step_nothing_is_done(workdir, capfd, steps):
    before = (workdir / "metrics.jsonl").read_bytes()
    assert runs.run(workdir, run__steps=steps) == 0
    assert "nothing to do: the checkpoint of step 4 is at or past the last step" in (
        capfd.readouterr().err)
    assert (workdir / "metrics.jsonl").read_bytes() == before
    assert sorted(p.name for p in (workdir / "checkpoints").iterdir()) == ["2", "4"]


def learning_rates(workdir: Path) -> list[float]:
    return [row["learning_rate"] for row in runs.rows(workdir) if "loss" in row]


@pytest.mark.parametrize(("choice", "golden"), [
    # The miniature warms up in one step to 2e-3 and ends at 2e-4.
    ("hold", [2e-4, 2e-4]), ("rewarm", [2e-3, 2e-4]), ("replan", [3.7188e-4, 2e-4])])
def test_a_finished_run_goes_on_with_the_rates_that_were_told(workdir, capfd, choice, golden):
    assert runs.run(workdir) == 0  # the advice is right: it names what the next line does
    advice = capfd.readouterr().err
    assert "raise --config.run.steps" in advice and "--config.schedule.if_steps_change" in advice
    assert runs.run(workdir, run__steps=6, schedule__if_steps_change=choice) == 0
    [line] = [line for line in capfd.readouterr().err.splitlines() if line.startswith("note: ")]
    assert f"0.0002 at step 4, {golden[0]:.3g} at step 5, 0.0002 at step 6" in line
    assert learning_rates(workdir)[3:] == pytest.approx([2e-4, *golden], rel=1e-4)
    stored = json.loads((workdir / "config.json").read_text())
    saved = json.loads((workdir / "checkpoints/6/meta/metadata").read_text())["config"]
    assert saved["schedule"] == stored["schedule"]
    assert stored["schedule"]["steps"] == (4 if choice == "hold" else 6)


def test_a_shortened_run_keeps_its_schedule_and_says_so(tmp_path, capfd):
    settings = {"run__steps": 8, "evals__every_steps": 0, "checkpoint__keep": 8}
    assert runs.run(tmp_path / "whole", **settings) == 0
    shutil.copytree(tmp_path / "whole", tmp_path / "short")
    for checkpoint in (tmp_path / "short/checkpoints").iterdir():
        if checkpoint.is_dir() and int(checkpoint.name) > 4:  # stopped after step 4
            shutil.rmtree(checkpoint)
    capfd.readouterr()
    assert runs.run(tmp_path / "short", **(settings | {"run__steps": 6})) == 0
    assert "run.steps is now 6 and was 8" in capfd.readouterr().err
    assert learning_rates(tmp_path / "short") == learning_rates(tmp_path / "whole")[:6]
    assert runs.run(tmp_path / "short", **settings) == 0  # and back again: the same run
    short, whole = ([row for row in runs.rows(tmp_path / name) if "loss" in row]
                    for name in ("short", "whole"))
    assert short == whole


def test_a_validation_split_of_another_tokenizer_is_refused(tmp_path, monkeypatch, capfd):
    tokens = shutil.copytree(runs.tokens(), tmp_path / "tokens")
    shutil.rmtree(tokens / "validation")
    other = tiny_tokenizer(390)
    write_split(tokens, "validation", {"prose": [[np.array([1, 50, 2], np.uint16)]]}, 390,
                tokenizer=other)
    status, errors = command(
        runs.arguments(tmp_path / "run", data__tokens=str(tokens)), monkeypatch, capfd)
    assert status == 2 and "not the tokenizer the corpus was made with" in errors
    shutil.copy(runs.tokens() / "tokenizer.model", tokens)
    status, errors = command(
        runs.arguments(tmp_path / "run", data__tokens=str(tokens)), monkeypatch, capfd)
    assert status == 2 and "not the tokenizer the corpus was made with" in errors
    assert not (tmp_path / "run" / "metrics.jsonl").exists()


@pytest.mark.parametrize(("settings", "words"), [
    ({"model__num_layers": 3}, "config.model.num_layers: checkpoint 2, this run 3"),
    ({"model__mlp_dim": 192}, "config.model.mlp_dim: checkpoint 128, this run 192"),
    ({"data__batch_size": 16}, "config.data.batch_size: checkpoint 8, this run 16"),
    ({"data__packing": "concat"}, "config.data.packing: checkpoint 'best_fit', this run 'concat'"),
    ({"run__seed": 1}, "config.run.seed: checkpoint 0, this run 1"),
    ({"data__tokens": "OTHER"},
     "split 'train', source 'prose': prose-00000-of-00002.array_record has another checksum"),
])
def test_checkpoints_of_another_run_are_refused(workdir, monkeypatch, capfd, settings, words):
    settings = {k: str(runs.tokens(5)) if v == "OTHER" else v for k, v in settings.items()}
    before = (workdir / "metrics.jsonl").read_bytes()
    status, errors = command(
        runs.arguments(workdir, run__steps=6, **settings), monkeypatch, capfd)
    assert status == 2
    [line] = [line for line in errors.splitlines() if line.startswith("error: ")]
    assert "its checkpoints are of another run" in line and words in line
    assert "Traceback" not in errors
    assert (workdir / "metrics.jsonl").read_bytes() == before


# -- what a run reads ----------------------------------------------------------------------------


def copy_of_tokens(directory: Path, validation_seed: int | None = None) -> Path:
    """The tokens of a test run, with another validation split on request."""
    tokens = Path(shutil.copytree(runs.tokens(), directory))
    if validation_seed is not None:
        shutil.rmtree(tokens / "validation")
        shutil.copytree(runs.tokens(validation_seed) / "validation", tokens / "validation")
    return tokens


def test_another_evaluation_set_is_refused_or_noted_in_the_metrics(
        workdir, finished, tmp_path, monkeypatch, capfd):
    tokens = copy_of_tokens(tmp_path / "tokens", validation_seed=5)
    settings = {"data__tokens": str(tokens), "run__steps": 6}
    status, errors = command(runs.arguments(workdir, **settings), monkeypatch, capfd)
    assert status == 2 and "the evaluation set has changed: split 'validation', source" in errors
    assert "prose-00000-of-00001.array_record has another checksum" in errors
    assert "--new_evaluation_set" in errors and len(errors.splitlines()[-1]) < 800
    assert runs.rows(workdir) == runs.rows(finished)

    assert train.main([*runs.arguments(workdir, **settings), "--new_evaluation_set"]) == 0
    assert "note: evaluations from step 5 on score a new evaluation set" in capfd.readouterr().err
    sets = {row["step"]: row["eval/set"] for row in runs.rows(workdir) if "eval/set" in row}
    assert list(sets) == [0, 5] and sets[0] != sets[5]
    [noted] = [row for row in runs.rows(workdir) if "eval/previous_set" in row]
    assert noted["eval/previous_set"] == sets[0]
    # It is the run's evaluation set now; the old one would be a change.
    assert runs.run(workdir, **settings | {"run__steps": 8}) == 0
    assert [row["step"] for row in runs.rows(workdir) if "eval/set" in row] == [0, 5]
    status, errors = command(runs.arguments(workdir, run__steps=10), monkeypatch, capfd)
    assert status == 2 and "the evaluation set has changed" in errors


def test_a_stage_of_the_mixture_can_be_added_on_resume(tmp_path, monkeypatch, capfd):
    """To step 4 by weights, then on by others: as a run that had the stage from the start."""
    def weights(prose: float, code: float) -> list[dict]:
        return [{"path": str(runs.tokens()), "source": "prose", "weight": prose},
                {"path": str(runs.tokens()), "source": "code", "weight": code}]

    first = {"data__tokens": weights(0.7, 0.3), "schedule__name": "constant"}
    stages = {"data__stages": [{"after_step": 4, "tokens": weights(0.1, 0.9)}]}
    assert runs.run(tmp_path / "whole", run__steps=8, **first, **stages) == 0
    assert runs.run(tmp_path / "run", run__steps=4, **first) == 0
    status, errors = command(runs.arguments(tmp_path / "run", run__steps=8, schedule__name=
                                            "constant", data__tokens=weights(0.1, 0.9)),
                             monkeypatch, capfd)
    assert status == 2
    assert "config.data.tokens: weight of source 'prose': checkpoint 0.7, this run 0.1" in errors
    assert "To change the mixture after step 4" in errors and "config.data.stages" in errors
    assert runs.run(tmp_path / "run", run__steps=8, **first, **stages) == 0
    assert "mixture after step 4: prose 0.1, code 0.9" in capfd.readouterr().err
    assert runs.losses(tmp_path / "run") == runs.losses(tmp_path / "whole")
    one, other = (runs.saved_arrays(tmp_path / name, 8) for name in ("run", "whole"))
    for name, array in one.items():
        assert array.tobytes() == other[name].tobytes(), name


def test_epochs_are_told_at_start_and_when_they_pass(tmp_path, capfd):
    weights = json.dumps([{"path": str(runs.tokens()), "source": "prose", "weight": 0.05},
                          {"path": str(runs.tokens()), "source": "code", "weight": 0.95}])
    assert runs.run(tmp_path / "run", run__steps=10, data__tokens=weights) == 0
    errors = capfd.readouterr().err
    rows = runs.rows(tmp_path / "run")
    planned = rows[0]["data/code/planned_epochs"]
    assert planned > 4 and f"epochs planned: code {planned:.2f}, prose 0." in errors
    passed = {row["data/code/epochs"]: row["step"] for row in rows if "data/code/epochs" in row}
    assert list(passed) == [epochs for epochs in (1, 4, 8, 16, 32) if epochs < planned]
    for epochs, step in passed.items():
        assert f"step {step}: epochs passed: code {epochs}\n" in errors


def test_a_damaged_newest_checkpoint_costs_only_the_steps_since_the_one_before(
        workdir, finished, capfd):
    victim = max((workdir / "checkpoints/4/state").rglob("*"), key=lambda p: p.stat().st_size)
    os.truncate(victim, victim.stat().st_size // 2)
    with (workdir / "metrics.jsonl").open("a") as file:
        file.write('{"step": 5, "lo')  # torn
    assert runs.run(workdir) == 0
    errors = capfd.readouterr().err
    assert "checkpoint 4 is damaged: file state/" in errors
    assert "resuming after step 2 of 4" in errors
    assert runs.rows(workdir) == runs.rows(finished)
    for name, array in runs.saved_arrays(finished, 4).items():
        assert array.tobytes() == runs.saved_arrays(workdir, 4)[name].tobytes(), name


def test_without_checkpoints_the_old_metrics_are_kept(workdir, capfd):
    before = (workdir / "metrics.jsonl").read_bytes()
    shutil.rmtree(workdir / "checkpoints")
    assert runs.run(workdir, run__steps=2) == 0
    assert "they are kept in metrics.jsonl.old-1" in capfd.readouterr().err
    assert (workdir / "metrics.jsonl.old-1").read_bytes() == before
    assert sorted(runs.losses(workdir)) == [1, 2]


@pytest.mark.parametrize("name", ["metrics.jsonl", "config.json", "lock"])
def test_a_directory_in_place_of_a_file_is_one_line(tmp_path, monkeypatch, capfd, name):
    (tmp_path / "run" / name).mkdir(parents=True)
    status, errors = command(runs.arguments(tmp_path / "run"), monkeypatch, capfd)
    assert status == 2 and "Traceback" not in errors
    assert f"{tmp_path / 'run' / name}'" in errors.splitlines()[-1]


def test_settings_that_only_change_how_a_step_is_computed_are_free(workdir, finished):
    shutil.rmtree(workdir / "checkpoints/4")
    assert runs.run(workdir, model__remat="full", model__scan_layers=True, model__loss_chunk=64,
                    run__accumulation_steps=1, data__prefetch=1, data__verify=False) == 0
    one, other = runs.losses(workdir), runs.losses(finished)
    np.testing.assert_allclose([one[s] for s in (3, 4)], [other[s] for s in (3, 4)], atol=1e-5)


def test_the_train_step_is_compiled_once(workdir, caplog):
    with jax.log_compiles():
        assert runs.run(workdir, run__steps=8, checkpoint__every_steps=2, evals__every_steps=2) == 0
    compiled = [m for m in caplog.messages if m.startswith("Finished XLA compilation")]
    for name in ("train_step", "eval_step"):
        assert sum(f"jit({name})" in m for m in compiled) == 1, compiled


def test_one_run_directory_has_one_user(workdir, monkeypatch, capfd):
    with (workdir / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        status, errors = command(runs.arguments(workdir), monkeypatch, capfd)
    assert status == 2
    assert errors.splitlines()[-1] == (
        f"error: --workdir: another process is training in {workdir}")


MISTAKES = [
    ({"data__tokens": "/no/such/place"}, "config.data.tokens: no directory '/no/such/place'"),
    ({"data__tokens": ""}, "config.data.tokens: must be set to a directory"),
    ({"data__split": "trian"}, "no finished split 'trian'; did you mean 'train'?"),
    ({"data__split": "trian"}, "config.data.split: "),
    ({"evals__split": "test"}, "config.evals.split: "),
    ({"data__batch_size": 12},
     "config.data.batch_size: 12 rows do not divide over data 8 x fsdp 1"),
    ({"parallel__fsdp": 3}, "config.parallel.data: 8 devices cannot be divided"),
    ({"model__vocab_size": 300}, "config.model.vocab_size: 300 is less than the tokenizer's "
                                 "vocabulary of 400"),
    ({"data__epochs": 1, "run__steps": 100}, "config.data.epochs: 100 steps would read source"),
    ({"model__num_layer": 3}, "config.model.num_layer: no such field; did you mean 'num_layers'?"),
]


@pytest.mark.parametrize(("settings", "words"), MISTAKES, ids=[str(m[0]) for m in MISTAKES])
def test_mistakes_in_settings_are_one_line(tmp_path, monkeypatch, capfd, settings, words):
    status, errors = command(runs.arguments(tmp_path / "run", **settings), monkeypatch, capfd)
    assert status == 2
    assert len(errors.splitlines()) == 1, errors
    assert errors.startswith("error: ") and words in errors
    assert not list(tmp_path.iterdir())  # a refused start leaves nothing


def test_a_refused_start_leaves_what_was_there(tmp_path, monkeypatch, capfd):
    workdir = tmp_path / "a" / "run"
    workdir.mkdir(parents=True)
    (workdir / "notes.txt").write_text("mine")
    mistake = {"data__tokens": "/no/such/place"}
    assert command(runs.arguments(workdir, **mistake), monkeypatch, capfd)[0] == 2
    assert [path.name for path in workdir.iterdir()] == ["notes.txt"]
    assert command(runs.arguments(tmp_path / "b" / "c", **mistake), monkeypatch, capfd)[0] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    # A run that has begun keeps all of its files.
    assert runs.run(workdir, run__steps=2) == 0
    files = sorted(workdir.rglob("*"))
    assert command(runs.arguments(workdir, run__steps=2, **mistake), monkeypatch, capfd)[0] == 2
    assert command(runs.arguments(workdir, run__steps=3, run__seed=1), monkeypatch, capfd)[0] == 2
    assert sorted(workdir.rglob("*")) == files


@pytest.mark.parametrize("times", range(3))
def test_a_mistake_is_one_line_of_the_process_too(tmp_path, times):
    """No background thread of the command prints anything at exit."""
    ended = subprocess.run(
        [sys.executable, "-m", "maxlm.train",
         *runs.arguments(tmp_path / "run", data__tokens="/no/such/place")],
        cwd=runs.REPOSITORY, capture_output=True, text=True, timeout=SPENT)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert len(ended.stderr.splitlines()) == 1, ended.stderr


@pytest.mark.parametrize(("argv", "words"), [
    (["--config=configs/no_such.py", "--workdir=RUN"], "--config: no file"),
    ([f"--config={runs.CONFIG}"], "--workdir"),
    ([f"--config={runs.CONFIG}", "--workdir=RUN", "--wrkdir=x"], "--wrkdir"),
    ([f"--config={runs.CONFIG}", "--workdir=FILE"], "--workdir: "),
    ([f"--config={runs.CONFIG}", "--workdir=FILE/below"], "--workdir: "),
    ([f"--config={runs.CONFIG}", "--workdir=RUN", "--num_processes=2"], "--coordinator_address"),
    ([f"--config={runs.CONFIG}", "--workdir=RUN", "--num_processes=2", "--process_id=2",
      "--coordinator_address=localhost:1"], "--process_id: must be from 0 to 1, got 2"),
    ([f"--config={runs.CONFIG}", "--workdir=gs://bucket/run"],
     "--workdir: 'gs://bucket/run' is a URL; give the path at which the bucket is mounted"),
    ([f"--config={runs.CONFIG}", "--workdir=RUN", "--config.data.tokens=gs://bucket/tokens"],
     "config.data.tokens: 'gs://bucket/tokens' is a URL"),
    ([f"--config={runs.CONFIG}", "--workdir=RUN",
      '--config.data.tokens=[{"path": "gs://bucket/tokens"}]'],
     "config.data.tokens: 'gs://bucket/tokens' is a URL"),
])
def test_mistakes_on_the_command_line_are_one_line(tmp_path, monkeypatch, capfd, argv, words):
    (tmp_path / "FILE").write_text("")
    argv = [word.replace("=RUN", f"={tmp_path}/run").replace("=FILE", f"={tmp_path}/FILE")
            for word in argv]
    status, errors = command(argv, monkeypatch, capfd)
    assert status == 2
    assert len(errors.splitlines()) == 1, errors
    assert errors.startswith("error: ") and words in errors


# -- faults of the machine ------------------------------------------------------------------------


def assert_out_of_space(errors: str, reason: str) -> None:
    [line] = [line for line in errors.splitlines() if "failed: " in line]
    assert reason in line and "Free some space and run the same command again" in line
    assert "Traceback" not in errors


def test_no_space_while_saving(workdir):
    """The largest size of a file stands in for a full disk; no mount is needed."""
    process = subprocess.Popen(
        ["bash", "-c", 'ulimit -f 300; exec "$@"', "bash", sys.executable, "-m", "maxlm.train",
         *runs.arguments(workdir, run__steps=8, evals__every_steps=0)],
        cwd=runs.REPOSITORY, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert_out_of_space(runs.finish(process, 1), "File too large")
    assert {"2", "4"} <= {p.name for p in (workdir / "checkpoints").iterdir()}
    # With free space the same command continues from the previous checkpoint.
    assert runs.run(workdir, run__steps=8, evals__every_steps=0) == 0
    assert sorted(runs.losses(workdir)) == list(range(1, 9))
    assert (workdir / "checkpoints" / "8").is_dir()


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_no_space_on_a_small_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    # Room for a checkpoint and a half.
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=10m", "tmpfs", disk],
                             capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.decode()}")
    try:
        settings = {"run__steps": 12, "evals__every_steps": 0}
        assert_out_of_space(runs.finish(runs.start(disk / "run", **settings), 1),
                            "No space left on device")
        whole = [p.name for p in (disk / "run/checkpoints").iterdir() if p.name.isdigit()]
        assert whole
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        errors = runs.finish(runs.start(disk / "run", **settings))
        assert f"resuming after step {max(map(int, whole))} of 12" in errors
        assert sorted(runs.losses(disk / "run")) == list(range(1, 13))
    finally:
        subprocess.run(["umount", disk], check=True)


def test_workers_leave_nothing_behind(tmp_path):
    errors = runs.finish(runs.start(tmp_path / "run", data__workers=2))
    assert "done: 4 steps" in errors.splitlines()[-1], errors  # no warning of leaked shared memory


def test_workers_do_not_outlive_a_killed_run(tmp_path):
    process = runs.start(tmp_path / "run", run__steps=100000, data__workers=2,
                         evals__every_steps=0)
    kill_when(process, lambda: metrics_lines(tmp_path / "run") > 5)
    until = time.monotonic() + 60
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < until:
            os.killpg(process.pid, 0)
            time.sleep(0.1)
