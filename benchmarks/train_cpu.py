"""Training speed on CPU: maxlm's train step beside those of other trainers.

    python -m benchmarks.train_cpu                       # float32
    python -m benchmarks.train_cpu --precision=bfloat16

Each contestant is a process of its own that compiles and warms up, then waits. In each round each
one in turn takes the whole machine for a few steps, so that a machine that is slow for a while is
slow for all, and the ratio of a round is worth more than its figures. Same shape
(configs/bench_cpu.py), same tokens, AdamW with clipping, float32 master weights; bfloat16 is each
one's own mixed precision. Each must start near the loss of chance, ln of the vocabulary, and get
below it, for the batch is always the same one.

Hugging Face transformers is measured with the interpreter that runs this, or with --peer_python;
the others where they are named, for each needs an environment or a checkout of its own: nanoGPT
(torch as for transformers), Levanter, MaxText. docs/benchmarks.md says how to get them and in what
their models differ.
"""

import contextlib
import dataclasses
import importlib.util
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.train_worker import Job, Run, serve, tokens_of
from maxlm.cli import host_memory
from maxlm.cli.command_line import Parser, run_command
from maxlm.config import Config, ConfigError, RunFailure, resolve_config

ROOT = Path(__file__).resolve().parent.parent


@dataclasses.dataclass(frozen=True)
class Contestant:
    """Who is measured, and the flags with which the user says where it is."""

    module: str
    python: str = ""
    """Flag of its interpreter; none: the one that runs this."""
    packages: tuple[str, ...] = ()
    """What that interpreter must be able to import."""
    install: str = ""
    checkout: str = ""
    """Flag of a folder with its source."""
    compiled: bool = False
    """Through torch.compile."""


_TRANSFORMERS = Contestant("benchmarks.train_transformers", "peer_python",
                           ("torch", "transformers"), "torch transformers")
_NANOGPT = Contestant("benchmarks.train_nanogpt", "peer_python", ("torch",), "torch", "nanogpt")
CONTESTANTS = {
    "maxlm": Contestant("benchmarks.train_cpu"),
    "transformers": _TRANSFORMERS,
    "transformers_compiled": dataclasses.replace(_TRANSFORMERS, compiled=True),
    "nanogpt": _NANOGPT,
    "nanogpt_compiled": dataclasses.replace(_NANOGPT, compiled=True),
    "levanter": Contestant("benchmarks.train_levanter", "levanter_python", ("levanter",),
                           "marin-levanter"),
    "maxtext": Contestant("benchmarks.train_maxtext", "maxtext_python", ("maxtext", "aqt"),
                          "'maxtext[tpu]'"),
}


def job_of(config: Config) -> Job:
    """The task as every contestant is told it."""
    from maxlm.interop.llama import llama_config
    return {
        "model": llama_config(config.model, config.data.sequence_length),
        "batch_size": config.data.batch_size, "learning_rate": config.schedule.learning_rate,
        "beta1": config.optimizer.beta1, "beta2": config.optimizer.beta2,
        "epsilon": config.optimizer.epsilon, "weight_decay": config.optimizer.weight_decay,
        "clip_norm": config.optimizer.clip_norm, "compute": config.precision.compute,
    }


def maxlm_steps(config: Config, job: Job) -> tuple[int, Run]:
    """The number of parameters and the train steps of maxlm."""
    import jax
    import numpy as np

    from maxlm.parallel.mesh import make_mesh
    from maxlm.training.state import init_state
    from maxlm.training.step import compile_train_step

    tokens = tokens_of(job).astype(np.int32)
    weights = np.ones(tokens.shape, np.float32)
    weights[:, -1] = 0
    batch = jax.device_put({
        "tokens": tokens, "targets": np.roll(tokens, -1, axis=1), "weights": weights,
        "segment_ids": np.ones_like(tokens),
        "positions": np.tile(np.arange(tokens.shape[1], dtype=np.int32), (len(tokens), 1))})
    mesh = make_mesh(config.parallel)
    state = init_state(config, mesh)
    step = compile_train_step(config, mesh, state, batch)
    parameters = sum(leaf.size for leaf in jax.tree.leaves(state.params))

    first = True

    def run(steps: int) -> float:
        nonlocal state, first
        loss = None
        # As in maxlm.train.
        with host_memory.trim_after_compile() if first else contextlib.nullcontext():
            for _ in range(steps):
                state, metrics = step(state, batch)
                loss = metrics["loss"]
            jax.block_until_ready(state)
        first = False
        assert loss is not None
        return float(loss)

    return parameters, run


def matmul_rate(dtype: str) -> float:
    """FLOP/s of the fastest of XLA's matmuls of a few shapes, best of ten."""
    import jax
    best = 0.0
    for m, k, n in ((4096, 384, 1024), (4096, 1024, 384), (2048, 2048, 2048)):
        a, b = jax.numpy.ones((m, k), dtype), jax.numpy.ones((k, n), dtype)
        multiply = jax.jit(jax.numpy.dot)
        for _ in range(10):
            start = time.perf_counter()
            multiply(a, b).block_until_ready()
            best = max(best, 2 * m * k * n / (time.perf_counter() - start))
    return best


def interpreter(flag: str, path: str, who: Contestant) -> str:
    """Absolute path of the interpreter that a flag names, if it has what the contestant needs."""
    found = shutil.which(path)
    if found is None:
        raise ConfigError(f"--{flag}: no Python interpreter at {path!r}")
    python = os.path.abspath(found)  # not resolved: a virtual environment is a link
    done = subprocess.run([python, "-c", _MISSING, *who.packages], cwd=ROOT, text=True,
                          capture_output=True)
    if done.returncode:
        raise ConfigError(f"--{flag}: {path!r} is no Python interpreter")
    if done.stdout.strip():
        raise ConfigError(f"--{flag}: {path!r} has no {done.stdout.strip()}: pip install "
                          f"{who.install}")
    return python


_MISSING = """
import importlib.util, sys
print(*(name for name in sys.argv[1:] if importlib.util.find_spec(name) is None))
"""


def checkout(flag: str, path: str) -> str:
    """Absolute path of the folder of nanoGPT's source that a flag names."""
    if not Path(path, "model.py").is_file():
        raise ConfigError(f"--{flag}: no model.py in {path!r}; name the folder of a checkout")
    return os.path.abspath(path)


def find_contestants(only: Sequence[str] | None, places: Mapping[str, str]
                     ) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """Who can be measured, as (interpreter, checkout or ""), and why the others are not.

    Args:
      only: names that the user asked for; none: everybody that there is.
      places: values of the flags; empty where the user did not give one.
    """
    there: dict[str, tuple[str, str]] = {}
    absent: dict[str, str] = {}
    for name, who in CONTESTANTS.items():
        missing = [f"--{flag}" for flag in (who.checkout, who.python) if flag and not places[flag]]
        if only is not None and name not in only:
            absent[name] = "left out by --only"
            continue
        folder = checkout(who.checkout, places[who.checkout]) if (
            who.checkout and places[who.checkout]) else ""
        if missing and only is not None:
            raise ConfigError(f"--only={name} needs {' and '.join(missing)}")
        elif missing:
            absent[name] = f"give {' and '.join(missing)}"
        else:
            there[name] = (interpreter(who.python, places[who.python], who) if who.python
                           else sys.executable, folder)
    return there, absent


def ask(name: str, process: subprocess.Popen, line: str) -> dict[str, float]:
    assert process.stdin is not None and process.stdout is not None
    if line:
        process.stdin.write(line + "\n")
        process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        raise RunFailure(f"{name} ended before its time; its message is above")
    return json.loads(answer)


def check_losses(name: str, first: float, last: float, vocabulary: int) -> None:
    """A contestant that starts elsewhere, or learns nothing, does not do the same work.

    The tokens are random, so that no start is better than chance; one with large logits is worse.
    """
    chance = math.log(vocabulary)
    if not 0.97 * chance < first < 1.3 * chance:
        raise RunFailure(f"{name}: its first loss is {first:.3f}, and chance is {chance:.3f}")
    if not last < first:
        raise RunFailure(f"{name}: its loss does not fall: {first:.3f}, later {last:.3f}")


def main(argv: Sequence[str]) -> None:
    parser = Parser(prog="python -m benchmarks.train_cpu", description=__doc__)
    parser.add_argument("--config", default=str(ROOT / "configs" / "bench_cpu.py"))
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=3, help="steps of each contestant in a round")
    parser.add_argument("--peer_python", metavar="PATH", default=sys.executable if all(
                            map(importlib.util.find_spec, _TRANSFORMERS.packages)) else "",
                        help="interpreter with torch and transformers; default: this, if it has")
    parser.add_argument("--nanogpt", default="", metavar="FOLDER", help="checkout of nanoGPT")
    parser.add_argument("--levanter_python", default="", metavar="PATH",
                        help="interpreter with marin-levanter")
    parser.add_argument("--maxtext_python", default="", metavar="PATH",
                        help="interpreter with maxtext")
    parser.add_argument("--same_malloc", action="store_true", help="start the others too with the "
                        "settings of malloc that maxlm.train --huge_pages uses (see "
                        "maxlm/host_memory.py)")
    parser.add_argument("--only", nargs="*", choices=CONTESTANTS)
    parser.add_argument("--worker", action="store_true", help="used by the benchmark itself")
    arguments = parser.parse_args(argv)
    config = resolve_config(Config, arguments.config,
                            [("precision.compute", arguments.precision)])
    job = job_of(config)
    if arguments.worker:
        serve(lambda job: maxlm_steps(config, job), job,
              {"rate": lambda: matmul_rate(config.precision.compute)})
        return
    if min(arguments.rounds, arguments.steps) < 1:
        raise ConfigError("--rounds and --steps are at least 1")
    there, absent = find_contestants(arguments.only, vars(arguments))

    processes: dict[str, subprocess.Popen] = {}
    firsts: dict[str, dict[str, float]] = {}
    results: dict[str, list[dict[str, float]]] = {name: [] for name in there}
    rates = []
    try:
        for name, (python, folder) in there.items():
            who = CONTESTANTS[name]
            task = [json.dumps({**job, "compiled": who.compiled, "folder": folder})]
            if name == "maxlm":
                task = ["--worker", f"--config={arguments.config}",
                        f"--precision={arguments.precision}"]
            environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
            if host_memory.settings_apply(environment) and (
                    name == "maxlm" or arguments.same_malloc):  # as maxlm.train --huge_pages
                environment[host_memory.VARIABLE] = host_memory.SETTINGS
            processes[name] = subprocess.Popen(
                [python, "-m", who.module, *task], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                text=True, cwd=ROOT, env=environment)
            firsts[name] = ask(name, processes[name], "")
            print(f"{name}: first step after {firsts[name]['seconds']:.1f} s", file=sys.stderr,
                  flush=True)
        for number in range(arguments.rounds):
            for name, process in processes.items():
                results[name].append(ask(name, process, str(arguments.steps)))
                if name == "maxlm":
                    rates.append(ask(name, process, "rate")["value"])
            print(f"round {number + 1}/{arguments.rounds}", file=sys.stderr, flush=True)
    finally:
        for process in processes.values():
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
    for name, rounds in results.items():
        check_losses(name, firsts[name]["loss"], rounds[-1]["loss"], config.model.vocab_size)
    print(report(config, arguments.steps, firsts, results, rates))
    for name, why in absent.items():
        print(f"{name:24}not measured: {why}")


def report(config: Config, steps: int, firsts: Mapping[str, Mapping[str, float]],
           results: Mapping[str, list[dict[str, float]]], rates: list[float]) -> str:
    """Median tokens/s, median over rounds of the ratio of maxlm to each, memory, matmul share.

    Memory is the high-water mark after the first round, before a process did anything else.
    """
    from maxlm.models.counts import flops_per_token

    tokens = steps * config.data.batch_size * config.data.sequence_length
    flops = flops_per_token(config.model, config.data.sequence_length)
    lines = [f"{'':24}{'tokens/s':>10}{'best':>8}{'maxlm/it':>10}{'memory MB':>11}"
             f"{'M param.':>10}{'first loss':>12}{'last':>8}"]
    for name, rounds in results.items():
        speed = [tokens / r["seconds"] for r in rounds]
        ratio = ""
        if "maxlm" in results:
            ratio = format(statistics.median(
                r["seconds"] / ours["seconds"]
                for r, ours in zip(rounds, results["maxlm"], strict=True)), ".2f")
        lines.append(f"{name:24}{statistics.median(speed):10.0f}{max(speed):8.0f}{ratio:>10}"
                     f"{rounds[0]['memory'] / 2**20:11.0f}{firsts[name]['parameters'] / 1e6:10.2f}"
                     f"{firsts[name]['loss']:12.3f}{rounds[-1]['loss']:8.3f}")
    if rates:
        ours = max(tokens / r["seconds"] for r in results["maxlm"])
        lines.append(f"\n{config.precision.compute} matmuls here: {max(rates) / 1e9:.0f} GFLOP/s. "
                     f"maxlm's best round used {ours * flops / max(rates):.0%} of that "
                     f"({flops / 1e6:.1f} MFLOP a token: 6 per matmul parameter, and attention "
                     "counted at half)\n")
    return "\n".join(lines)


if __name__ == "__main__":
    run_command(main)
