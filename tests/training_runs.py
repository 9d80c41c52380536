"""Training runs of seconds, in this process or as real commands, and what they leave behind."""

import atexit
import functools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from maxlm import train
from maxlm.config import Config, resolve_config
from tests.token_corpora import random_split

REPOSITORY = Path(__file__).resolve().parent.parent
CONFIG = str(REPOSITORY / "configs" / "tiny.py:tiny")  # 2 layers of width 64, rows of 64 tokens

# The columns that may not depend on when, where and with what pauses a run was computed.
TIMES = ("tokens_per_second", "step_seconds", "data_wait_seconds")


# Gloo greets on standard output from C++ when processes meet, "[Gloo] Rank 0 is connected to 1 peer
# ranks. ...", from several threads at once, so that the pieces of two greetings may be mixed.
GLOO = re.compile(r"(\[Gloo\]|Rank|is|connected|to|peer|ranks|Expected|number|of|[.:\d\s])*")


@functools.cache
def scratch() -> Path:
    """A directory of this run of the tests."""
    directory = Path(tempfile.mkdtemp(prefix="maxlm-tests-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


@functools.cache
def tokens(seed: int = 0) -> Path:
    """Two sources of 46 and 17 documents, about 40 rows of 64 tokens: a few batches an epoch."""
    directory = scratch() / f"tokens-{seed}"
    lengths = np.random.default_rng(1)

    def some(count: int) -> list[int]:
        return lengths.integers(3, 100, count).tolist()

    random_split(directory, "train", {"prose": [some(23), some(23)], "code": [some(17)]}, seed=seed)
    random_split(directory, "validation", {"prose": [some(9)], "code": [some(7)]}, seed=seed + 1)
    return directory


def fields(**settings: Any) -> list[str]:
    """model__num_layers=3 as --config.model.num_layers=3."""
    return [f"--config.{name.replace('__', '.')}="
            + (value if isinstance(value, str) else json.dumps(value))
            for name, value in settings.items()]


def arguments(workdir: Path, **settings: Any) -> list[str]:
    settings = {"data__tokens": str(tokens()), **settings}
    return [f"--config={CONFIG}", f"--workdir={workdir}",
            f"--compilation_cache={scratch() / 'compiled'}", *fields(**settings)]


def config(**settings: Any) -> Config:
    """The resolved configuration of `arguments`."""
    settings = {"data__tokens": str(tokens()), **settings}
    return resolve_config(Config, CONFIG, [
        (word[len("--config."):].split("=")[0], word.split("=", 1)[1])
        for word in fields(**settings)])


def run(workdir: Path, **settings: Any) -> int:
    """Trains in this process, on its eight devices."""
    return train.main(arguments(workdir, **settings))


def start(workdir: Path, *flags: str, devices: int = 1, **settings: Any) -> subprocess.Popen:
    """Starts the command a user would, in its own process group, on `devices` virtual devices."""
    environment = os.environ | {
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}
    return subprocess.Popen(
        [sys.executable, "-m", "maxlm.train", *arguments(workdir, **settings), *flags],
        cwd=REPOSITORY, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        start_new_session=True)


def finish(process: subprocess.Popen, status: int = 0) -> str:
    """Waits for the command, checks its exit status, returns its standard error."""
    output, errors = process.communicate(timeout=280)
    assert process.returncode == status, (process.returncode, errors)
    assert GLOO.fullmatch(output), output  # standard output is kept for results
    return errors


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


def start_pair(workdir: Path, second: dict | None = None, **settings) -> list[subprocess.Popen]:
    """Two processes of two devices each; `second` holds what only the second one is told."""
    port = free_port()
    return [start(workdir, f"--coordinator_address=localhost:{port}", "--num_processes=2",
                       f"--process_id={number}", devices=2,
                       **{**settings, **(second or {} if number else {})})
            for number in range(2)]


def finish_pair(pair: list[subprocess.Popen], status: int = 0) -> list[str]:
    try:
        return [finish(process, status) for process in pair]
    finally:
        for process in pair:
            process.kill()


def rows(workdir: Path) -> list[dict[str, Any]]:
    """metrics.jsonl without the columns of time."""
    lines = (workdir / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [{k: v for k, v in json.loads(line).items() if k not in TIMES} for line in lines]


def losses(workdir: Path) -> dict[int, float]:
    """Step -> training loss."""
    return {row["step"]: row["loss"] for row in rows(workdir) if "loss" in row}


def saved_arrays(workdir: Path, step: int) -> dict[str, np.ndarray]:
    """Every array of a checkpoint by its path, read by Orbax alone."""
    path = workdir / "checkpoints" / str(step) / "state"
    with ocp.PyTreeCheckpointer() as checkpointer:
        restore = jax.tree.map(lambda _: ocp.RestoreArgs(restore_type=np.ndarray),
                               checkpointer.metadata(path).item_metadata.tree)
        tree = checkpointer.restore(path, restore_args=restore)
    return {jax.tree_util.keystr(name): array
            for name, array in jax.tree_util.tree_leaves_with_path(tree)}
