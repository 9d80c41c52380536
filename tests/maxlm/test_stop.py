"""Signals to a training process: what is saved, the exit status, and that the run continues."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import training_runs as runs

SPENT = 240.0
STEPS = 400
SETTINGS = {"run__steps": STEPS, "checkpoint__every_steps": 100, "evals__every_steps": 9,
            "telemetry__console_seconds": 60, "checkpoint__keep": 50}


def wait_for(process: subprocess.Popen, happened) -> None:
    until = time.monotonic() + SPENT
    while not happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.002)


def metrics_lines(workdir: Path) -> int:
    path = workdir / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def start_with(patch: str, workdir: Path, *flags: str, **settings) -> subprocess.Popen:
    """The command in a process in which `patch`, some Python, has run before."""
    code = f"import pathlib, time\nfrom maxlm import train\n{patch}\ntrain.run_command(train.main)"
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=1"}
    return subprocess.Popen(
        [sys.executable, "-c", code, *runs.arguments(workdir, **settings), *flags],
        cwd=runs.REPOSITORY, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """The run that nothing interrupts."""
    workdir = tmp_path_factory.mktemp("whole") / "run"
    runs.finish(runs.start(workdir, **SETTINGS))
    return workdir


def assert_continues_as(whole: Path, workdir: Path, **settings) -> None:
    runs.finish(runs.start(workdir, **SETTINGS, **settings))
    assert runs.rows(workdir) == runs.rows(whole)
    for name, array in runs.saved_arrays(whole, STEPS).items():
        assert array.tobytes() == runs.saved_arrays(workdir, STEPS)[name].tobytes(), name


def last_step(workdir: Path) -> int:
    """Of the newest checkpoint, which must be whole."""
    steps = [int(path.name) for path in (workdir / "checkpoints").iterdir()]
    assert (workdir / "checkpoints" / str(max(steps)) / "checksums.json").exists()
    return max(steps)


@pytest.mark.parametrize(("number", "status", "settings"), [
    (signal.SIGTERM, 75, {}),
    (signal.SIGHUP, 75, {"data__workers": 2}),
    pytest.param(signal.SIGINT, 130, {"data__workers": 2}, marks=pytest.mark.slow),
], ids=["SIGTERM", "SIGHUP", "SIGINT"])
def test_the_step_under_way_is_saved_and_the_run_continues(
        whole, tmp_path, number, status, settings):
    process = runs.start(tmp_path, **SETTINGS, **settings)
    wait_for(process, lambda: metrics_lines(tmp_path) > 30)
    os.killpg(process.pid, number)  # as a terminal or a scheduler does, workers included
    errors = runs.finish(process, status)
    steps = last_step(tmp_path)
    assert 27 <= steps < STEPS and steps == max(runs.losses(tmp_path))
    assert errors.splitlines()[-1].startswith(f"stopped after step {steps}, which is saved")
    assert "Traceback" not in errors
    assert_continues_as(whole, tmp_path, **settings)


@pytest.mark.parametrize(("number", "status"), [
    (signal.SIGTERM, 75), pytest.param(signal.SIGHUP, 75, marks=pytest.mark.slow),
    (signal.SIGINT, 130)])
def test_before_the_first_step_there_is_nothing_to_save(tmp_path, number, status):
    """While a program is compiled, which takes 30 s here, in C++."""
    process = start_with(
        "compile_ = train.steps.compile_train_step\n"
        "def compile_forever(*arguments):\n"
        "    import ctypes\n"
        f"    pathlib.Path({str(tmp_path / 'compiling')!r}).touch()\n"
        "    ctypes.CDLL(None).sleep(30)\n"  # without a bytecode in between
        "    ctypes.CDLL(None).sleep(30)\n"
        "train.steps.compile_train_step = compile_forever", tmp_path / "run")
    wait_for(process, (tmp_path / "compiling").exists)
    sent = time.monotonic()
    process.send_signal(number)
    errors = runs.finish(process, status)
    assert time.monotonic() - sent < 5
    assert errors.splitlines()[-1] == "interrupted: nothing to save"
    assert "Traceback" not in errors
    assert not list((tmp_path / "run" / "checkpoints").iterdir())


def test_while_modules_are_imported(tmp_path):
    for number, status in ((signal.SIGTERM, 75), (signal.SIGHUP, 75), (signal.SIGINT, 130)):
        code = ("from maxlm.cli import stop_signals\nstop_signals.exit_at_once()\n"
                "print('importing', flush=True)\nimport time\ntime.sleep(60)")
        process = subprocess.Popen([sys.executable, "-c", code], cwd=runs.REPOSITORY, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout and process.stdout.readline() == "importing\n"
        process.send_signal(number)
        assert process.communicate(timeout=SPENT)[1] == "interrupted\n"
        assert process.returncode == status


def start_with_slow_evaluation(workdir: Path, step: int, marker: Path, **settings):
    """The evaluation of this step takes 5 s, after it has made the file `marker`."""
    return start_with(
        "from maxlm.evals import held_out\n"
        "make_loader = held_out.make_loader\n"
        "def slow(*arguments, **options):\n"
        "    for batch in make_loader(*arguments, **options):\n"
        f"        metrics = pathlib.Path({str(workdir / 'metrics.jsonl')!r}).read_text()\n"
        f"        if metrics.count('grad_norm') == {step}:\n"
        f"            pathlib.Path({str(marker)!r}).touch()\n"
        "            time.sleep(5)\n"
        "        yield batch\n"
        "held_out.make_loader = slow", workdir, **settings)


@pytest.mark.parametrize(("step", "steps"), [(18, STEPS), (20, 20)], ids=["middle", "last"])
def test_an_evaluation_is_broken_off_and_comes_first_in_the_next_start(
        whole, tmp_path, step, steps):
    workdir, settings = tmp_path / "run", SETTINGS | {"run__steps": steps}
    process = start_with_slow_evaluation(workdir, step, tmp_path / "evaluating", **settings)
    wait_for(process, (tmp_path / "evaluating").exists)
    process.send_signal(signal.SIGTERM)
    errors = runs.finish(process, 75)
    assert f"stopped after step {step}, which is saved" in errors
    assert last_step(workdir) == step
    assert not [row for row in runs.rows(workdir) if "eval/loss" in row and row["step"] == step]
    if steps == STEPS:
        assert_continues_as(whole, workdir)
        return
    runs.finish(runs.start(workdir, **settings))
    assert [row["step"] for row in runs.rows(workdir) if "eval/loss" in row] == [0, 9, 18, 20]
    assert "nothing to do" in runs.finish(runs.start(workdir, **settings))


SLOW_SAVE = """
from maxlm.training.checkpoints import Checkpointer
list_files = Checkpointer._write_checksums
def slow(self):
    pathlib.Path({marker!r}).touch()
    time.sleep({seconds})
    list_files(self)
Checkpointer._write_checksums = slow
"""


def test_during_an_asynchronous_save(whole, tmp_path):
    workdir = tmp_path / "run"
    process = start_with(SLOW_SAVE.format(marker=str(tmp_path / "saving"), seconds=2), workdir,
                         **(SETTINGS | {"checkpoint__every_steps": 10}))
    wait_for(process, (tmp_path / "saving").exists)
    process.send_signal(signal.SIGTERM)
    errors = runs.finish(process, 75)
    assert f"stopped after step {last_step(workdir)}, which is saved" in errors
    assert {path.name for path in (workdir / "checkpoints").iterdir()} >= {"10"}
    assert_continues_as(whole, workdir)


@pytest.mark.parametrize(("signals", "status", "words"), [
    ([signal.SIGTERM], 75, "not saved within 2 s (--grace_seconds)"),
    ([signal.SIGINT, signal.SIGINT], 130, "interrupted: not saved"),
    ([signal.SIGTERM, signal.SIGTERM, signal.SIGINT], 130, "interrupted: not saved"),
], ids=["grace time", "second Ctrl-C", "Ctrl-C after SIGTERM"])
def test_a_save_that_takes_too_long(tmp_path, signals, status, words):
    workdir = tmp_path / "run"
    process = start_with(SLOW_SAVE.format(marker=str(tmp_path / "saving"), seconds=100), workdir,
                         "--grace_seconds=2", **SETTINGS)
    wait_for(process, lambda: metrics_lines(workdir) > 5)
    process.send_signal(signals[0])
    wait_for(process, (tmp_path / "saving").exists)
    sent = time.monotonic()
    for number in signals[1:]:
        time.sleep(0.2)  # the kernel merges equal signals that wait
        process.send_signal(number)
    errors = runs.finish(process, status)
    assert time.monotonic() - sent < 10
    assert words in errors and "Traceback" not in errors
    assert not [p for p in (workdir / "checkpoints").iterdir() if p.name.isdigit()]


def test_an_ignored_hangup_stays_ignored(tmp_path):
    process = subprocess.Popen(
        ["nohup", sys.executable, "-m", "maxlm.train", *runs.arguments(tmp_path / "run")],
        cwd=runs.REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(process, (tmp_path / "run" / "config.json").exists)
    process.send_signal(signal.SIGHUP)
    _, errors = process.communicate(timeout=SPENT)
    assert process.returncode == 0 and "done: 4 steps" in errors


@pytest.mark.parametrize("signalled", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_two_processes_stop_after_the_same_step(tmp_path, signalled):
    settings = SETTINGS | {"run__steps": 100000, "evals__every_steps": 10,
                           "schedule__name": "constant"}
    pair = runs.start_pair(tmp_path, **settings)
    try:
        wait_for(pair[0], lambda: metrics_lines(tmp_path) > 10)
        pair[signalled].send_signal(signal.SIGTERM)
    finally:
        errors = runs.finish_pair(pair, 75)
    steps = last_step(tmp_path)
    assert f"stopped after step {steps}, which is saved" in errors[0]
    assert steps == max(runs.losses(tmp_path))
    assert "SIGTERM: saving" in errors[signalled] and "SIGTERM" not in errors[1 - signalled]
    again = runs.finish_pair(runs.start_pair(tmp_path, **(settings | {"run__steps": steps + 5})))
    assert f"resuming after step {steps} of {steps + 5}" in again[0]
    assert sorted(runs.losses(tmp_path)) == list(range(1, steps + 6))
