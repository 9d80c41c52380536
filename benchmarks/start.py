"""Seconds from the command to the first finished step, cold and with compiled programs at hand.

    python -m benchmarks.start --tokens=runs/quickstart/tokens

Runs `python -m maxlm.train` as a user does, without evaluation. `cold` starts with an empty
compilation cache, `warm` with the one that a cold start left. Beside them, a process that only
imports the command. Then goes on for --steps steps and says which share of them waited for data.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from maxlm.cli.command_line import Parser, run_command
from maxlm.telemetry.metrics import read_metrics

ROOT = Path(__file__).resolve().parent.parent


def training_rows(metrics: Path) -> list[dict[str, Any]]:
    """The rows of metrics.jsonl of training steps."""
    return [row for row in read_metrics(metrics) if "loss" in row] if metrics.exists() else []


def seconds_to_row(command: list[str], metrics: Path, row: int) -> float:
    """Starts the command, and ends it when metrics.jsonl has that many training rows."""
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        while len(training_rows(metrics)) < row:
            if process.poll() is not None:
                raise SystemExit(process.stderr.read() if process.stderr else "training failed")
            time.sleep(0.02)
        return time.monotonic() - began
    finally:
        process.kill()
        process.communicate()


def seconds_of_imports() -> float:
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "import maxlm.train"], cwd=ROOT, check=True)
    return time.monotonic() - began


def main(argv: Sequence[str]) -> int:
    parser = Parser(prog="python -m benchmarks.start", description=__doc__)
    parser.add_argument("--config", default="configs/bench_cpu.py", help="what is trained")
    parser.add_argument("--tokens", required=True, help="what data_beam.tokenize wrote")
    parser.add_argument("--rounds", type=int, default=3, help="cold and warm starts (default: 3)")
    parser.add_argument("--steps", type=int, default=20, help="steps to time data by (default: 20)")
    arguments = parser.parse_args(argv)

    seconds: dict[str, list[float]] = {"imports": [], "cold": [], "warm": []}
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)

        def command(name: str, cache: str) -> list[str]:
            return [sys.executable, "-m", "maxlm.train", f"--config={arguments.config}",
                    f"--workdir={root / name}", f"--config.data.tokens={arguments.tokens}",
                    "--config.evals.every_steps=0", f"--compilation_cache={root / cache}"]

        for number in range(arguments.rounds):
            seconds["imports"].append(seconds_of_imports())
            for kind in ("cold", "warm"):
                name = f"{kind}-{number}"
                seconds[kind].append(seconds_to_row(
                    command(name, f"cache-{number}"), root / name / "metrics.jsonl", 1))
            print(", ".join(f"{kind} {times[-1]:.1f} s" for kind, times in seconds.items()),
                  file=sys.stderr, flush=True)
        metrics = root / "data" / "metrics.jsonl"
        seconds_to_row(command("data", "cache-0"), metrics, arguments.steps)
        rows = training_rows(metrics)[1:]  # the first step also waits for the loader to start
        waited = sum(row["data_wait_seconds"] for row in rows)
        share = waited / sum(row["step_seconds"] for row in rows)
    print(json.dumps({**{f"{kind}_seconds": round(statistics.median(times), 2)
                         for kind, times in seconds.items()}, "data_wait_share": round(share, 5)}))
    return 0


if __name__ == "__main__":
    run_command(main)
