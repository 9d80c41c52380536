"""Training speed on CPU: maxlm's train step beside that of Hugging Face transformers.

    python -m benchmarks.train_cpu                       # float32
    python -m benchmarks.train_cpu --precision=bfloat16

Each contestant is a process of its own that compiles and warms up, then waits. In each round each
one in turn takes the whole machine for a few steps, so that a machine that is slow for a while is
slow for all, and the ratio of a round is worth more than its figures. Same model
(configs/bench_cpu.py), same tokens, AdamW with clipping, float32 master weights (bfloat16 is
`torch.autocast` there, `precision.compute` here). Needs torch and transformers; if they live in
another environment, name its interpreter with --peer_python.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from maxlm.config import Config, ConfigError, Parser, resolve_config, run_command

CONTESTANTS = ("maxlm", "transformers", "transformers_compiled")
ROOT = Path(__file__).resolve().parent.parent


def tokens_of(config: Config) -> Any:
    """The batch that everybody trains on, int64 [B, T]."""
    import numpy as np
    return np.random.default_rng(0).integers(
        0, config.model.vocab_size, (config.data.batch_size, config.data.sequence_length))


def maxlm_steps(config: Config) -> Callable[[int], float]:
    """A function that runs this many train steps of maxlm and returns the last loss."""
    import jax
    import numpy as np

    from maxlm.parallel.mesh import make_mesh
    from maxlm.training.state import init_state
    from maxlm.training.step import compile_train_step

    tokens = tokens_of(config).astype(np.int32)
    weights = np.ones(tokens.shape, np.float32)
    weights[:, -1] = 0
    batch = jax.device_put({
        "tokens": tokens, "targets": np.roll(tokens, -1, axis=1), "weights": weights,
        "segment_ids": np.ones_like(tokens),
        "positions": np.tile(np.arange(tokens.shape[1], dtype=np.int32), (len(tokens), 1))})
    mesh = make_mesh(config.parallel)
    state = init_state(config, mesh)
    step = compile_train_step(config, mesh, state, batch)

    def run(steps: int) -> float:
        nonlocal state
        loss = None
        for _ in range(steps):
            state, metrics = step(state, batch)
            loss = metrics["loss"]
        jax.block_until_ready(state)
        assert loss is not None
        return float(loss)

    return run


def transformers_steps(config: Config, compiled: bool) -> Callable[[int], float]:
    """The same for LlamaForCausalLM with torch's fused AdamW."""
    import torch
    import transformers

    from maxlm.interop.llama import llama_config

    torch.manual_seed(0)
    tokens = torch.from_numpy(tokens_of(config))
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        **llama_config(config.model, config.data.sequence_length)))
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=config.schedule.learning_rate,
        betas=(config.optimizer.beta1, config.optimizer.beta2),
        weight_decay=config.optimizer.weight_decay, fused=True)
    forward = torch.compile(model) if compiled else model
    narrow = config.precision.compute == "bfloat16"

    def run(steps: int) -> float:
        loss = None
        for _ in range(steps):
            with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
                loss = forward(input_ids=tokens, labels=tokens, use_cache=False).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.optimizer.clip_norm)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        assert loss is not None
        return loss.item()

    return run


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


def high_water_bytes() -> int:
    """Most resident memory that this process has had."""
    import resource
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def worker(contestant: str, config: Config) -> None:
    """Answers each line on standard input (a number of steps, or `rate`) with a line of JSON."""
    start = time.perf_counter()
    if contestant == "maxlm":
        run = maxlm_steps(config)
    else:
        run = transformers_steps(config, compiled=contestant == "transformers_compiled")
    run(1)
    print(json.dumps({"first_step_seconds": time.perf_counter() - start}), flush=True)
    for line in sys.stdin:
        if line.strip() == "rate":
            print(json.dumps({"rate": matmul_rate(config.precision.compute)}), flush=True)
            continue
        start = time.perf_counter()
        loss = run(int(line))
        print(json.dumps({"seconds": time.perf_counter() - start, "loss": loss,
                          "memory": high_water_bytes()}), flush=True)


def ask(process: subprocess.Popen, line: str) -> dict[str, float]:
    assert process.stdin is not None and process.stdout is not None
    if line:
        process.stdin.write(line + "\n")
        process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        raise ConfigError("a contestant ended before its time; its message is above (torch and "
                          "transformers come with: pip install torch transformers)")
    return json.loads(answer)


def main(argv: Sequence[str]) -> None:
    parser = Parser(prog="python -m benchmarks.train_cpu", description=__doc__)
    parser.add_argument("--config", default=str(ROOT / "configs" / "bench_cpu.py"))
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=3, help="steps of each contestant in a round")
    parser.add_argument("--peer_python", default=sys.executable, metavar="PATH",
                        help="interpreter with torch and transformers")
    parser.add_argument("--only", nargs="*", choices=CONTESTANTS, default=CONTESTANTS)
    parser.add_argument("--worker", choices=CONTESTANTS, help="used by the benchmark itself")
    arguments = parser.parse_args(argv)
    config = resolve_config(Config, arguments.config,
                            [("precision.compute", arguments.precision)])
    if arguments.worker:
        worker(arguments.worker, config)
        return

    processes: dict[str, subprocess.Popen] = {}
    results: dict[str, list[dict[str, float]]] = {name: [] for name in arguments.only}
    rates = []
    try:
        for name in arguments.only:
            python = sys.executable if name == "maxlm" else arguments.peer_python
            processes[name] = subprocess.Popen(
                [python, "-m", "benchmarks.train_cpu", f"--worker={name}",
                 f"--config={arguments.config}", f"--precision={arguments.precision}"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
            first = ask(processes[name], "")["first_step_seconds"]
            print(f"{name}: first step after {first:.1f} s", file=sys.stderr, flush=True)
        for number in range(arguments.rounds):
            for name, process in processes.items():
                results[name].append(ask(process, str(arguments.steps)))
                if name == "maxlm":
                    rates.append(ask(process, "rate")["rate"])
            print(f"round {number + 1}/{arguments.rounds}", file=sys.stderr, flush=True)
    finally:
        for process in processes.values():
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
    print(report(config, arguments.steps, results, rates))


def report(config: Config, steps: int, results: dict[str, list[dict[str, float]]],
           rates: list[float]) -> str:
    """Median tokens/s, median over rounds of the ratio of maxlm to each, memory, matmul share.

    Memory is the high-water mark after the first round, before a process did anything else.
    """
    from maxlm.models.counts import flops_per_token

    tokens = steps * config.data.batch_size * config.data.sequence_length
    flops = flops_per_token(config.model, config.data.sequence_length)
    lines = [f"{'':24}{'tokens/s':>10}{'best':>8}{'maxlm/it':>10}{'memory MB':>11}{'loss':>8}"]
    for name, rounds in results.items():
        speed = [tokens / r["seconds"] for r in rounds]
        ratio = ""
        if "maxlm" in results:
            ratio = format(statistics.median(
                r["seconds"] / ours["seconds"]
                for r, ours in zip(rounds, results["maxlm"], strict=True)), ".2f")
        lines.append(f"{name:24}{statistics.median(speed):10.0f}{max(speed):8.0f}{ratio:>10}"
                     f"{rounds[0]['memory'] / 2**20:11.0f}{rounds[-1]['loss']:8.3f}")
    if rates:
        ours = max(tokens / r["seconds"] for r in results["maxlm"])
        lines.append(f"\n{config.precision.compute} matmuls here: {max(rates) / 1e9:.0f} GFLOP/s. "
                     f"maxlm's best round used {ours * flops / max(rates):.0%} of that "
                     f"({flops / 1e6:.1f} MFLOP a token: 6 per matmul parameter, and attention "
                     "counted at half)")
    return "\n".join(lines)


if __name__ == "__main__":
    run_command(main)
