"""What the contestants of benchmarks.train_cpu have in common; runs where only numpy is installed.

A contestant is a process with a job, as JSON, for its argument. It compiles, warms up, says so in a
line of JSON, and then answers each line on standard input. Whatever else it or its libraries print
goes to standard error.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Job = dict[str, Any]
"""The task: `model` (fields of Hugging Face's LlamaConfig), `batch_size`, `learning_rate`, `beta1`,
`beta2`, `epsilon`, `weight_decay`, `clip_norm`, `compute` (float32 or bfloat16), and what a
contestant needs beyond that."""

Run = Callable[[int], float]
"""Trains for this many steps, waits until they are done, and returns the last loss."""


def tokens_of(job: Job) -> np.ndarray:
    """The batch that everybody trains on, int64 [B, T]."""
    model = job["model"]
    return np.random.default_rng(0).integers(
        0, model["vocab_size"], (job["batch_size"], model["max_position_embeddings"]))


def high_water_bytes() -> int:
    """Most resident memory that this process has had."""
    import resource
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def serve(start: Callable[[Job], tuple[int, Run]], job: Job,
          others: Mapping[str, Callable[[], float]] | None = None) -> None:
    """Answers each line on standard input: a number of steps, or a name in `others`.

    Args:
      start: makes a contestant; returns its number of parameters and its train steps.
      others: what else this contestant can measure.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print

    def answer(**values: float) -> None:
        print(json.dumps(values), file=answers, flush=True)

    begin = time.perf_counter()
    parameters, run = start(job)
    loss = run(1)
    answer(seconds=time.perf_counter() - begin, loss=loss, parameters=parameters)
    for line in sys.stdin:
        if others and line.strip() in others:
            answer(value=others[line.strip()]())
            continue
        begin = time.perf_counter()
        loss = run(int(line))
        answer(seconds=time.perf_counter() - begin, loss=loss, memory=high_water_bytes())


def torch_steps(job: Job, model: Any, optimizer: Any, loss_of: Callable[[], Any]) -> Run:
    """Train steps of a torch module: autocast where bfloat16 is asked for, clipping, update."""
    import torch
    narrow = job["compute"] == "bfloat16"

    def run(steps: int) -> float:
        loss = None
        for _ in range(steps):
            with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
                loss = loss_of()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), job["clip_norm"])
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        assert loss is not None
        return loss.item()

    return run
