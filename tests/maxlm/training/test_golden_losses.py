"""Losses and gradient norms of the first steps against recorded ones.

    python -m tests.maxlm.training.test_golden_losses    records them again

They are recorded at full precision: a change of the code that should change no number gives the
same bits on one device, and the same numbers within 1e-6 on eight, where the order of sums is the
partitioner's. Other versions of jax and other processors sum in another order: 1e-5 there.
"""

import dataclasses
import functools
import json
import os
import platform
from pathlib import Path

import jax
import numpy as np
import pytest

from maxlm.config import Config, ParallelConfig, resolve_config
from maxlm.parallel.batches import BATCH_DTYPES, BatchPlacement
from maxlm.parallel.mesh import make_mesh
from maxlm.parallel.rules import logical_rules
from maxlm.training import step as steps
from maxlm.training.state import abstract_state, init_state

ROOT = Path(__file__).resolve().parents[3]
RECORD = ROOT / "tests" / "golden" / "losses.json"
STEPS = 3
MESHES = {"1 device": ParallelConfig(), "8 devices": ParallelConfig(data=2, fsdp=2, tensor=2)}
PACKED = {"model.num_layers": "2", "model.embed_dim": "64", "model.num_heads": "4",
          "model.num_kv_heads": "2", "model.head_dim": "16", "model.mlp_dim": "96",
          "model.vocab_size": "512", "data.sequence_length": "96", "model.loss_chunk": "48",
          "model.tie_embeddings": "false", "model.scan_layers": "true",
          "schedule.warmup_steps": "2"}
RUNS = {
    "tiny": ("tiny.py", {}),
    "bench_cpu": ("bench_cpu.py", {}),
    # Several documents a row, and padding: `packed_batch`.
    "packed": ("tiny.py", {**PACKED, "model.remat": "dots", "run.accumulation_steps": "2"}),
    "packed_reference": ("tiny.py", {**PACKED, "model.attention": "reference",
                                     "model.remat": "full", "optimizer.clip_norm": "0.5"}),
}


def configuration(name: str) -> Config:
    file, settings = RUNS[name]
    return resolve_config(Config, str(ROOT / "configs" / file), list(settings.items()))


def packed_batch(config: Config, seed: int) -> dict[str, np.ndarray]:
    """Rows of documents of 1 to T tokens, of random tokens, with padding in every other row."""
    rng = np.random.default_rng(seed)
    B, T = config.data.batch_size, config.data.sequence_length
    tokens = rng.integers(4, config.model.vocab_size, (B, T + 1))
    batch = {name: np.zeros((B, T), dtype) for name, dtype in BATCH_DTYPES.items()}
    batch["tokens"][:], batch["targets"][:] = tokens[:, :-1], tokens[:, 1:]
    for row in range(B):
        start, number, end = 0, 1, T - (row % 2) * T // 8
        while start < end:
            stop = min(end, start + int(rng.integers(1, T)))
            batch["segment_ids"][row, start:stop] = number
            batch["positions"][row, start:stop] = np.arange(stop - start)
            batch["weights"][row, start:stop - 1] = 1
            start, number = stop, number + 1
    return batch


def numbers(name: str, mesh_name: str) -> list[list[float]]:
    """[loss, gradient norm] of each step."""
    config = configuration(name)
    config = dataclasses.replace(config, parallel=MESHES[mesh_name])
    count = int(mesh_name.split()[0])
    mesh = make_mesh(config.parallel, jax.devices()[:count])
    placement = BatchPlacement(mesh, logical_rules(config.parallel), config.data.batch_size)
    step = steps.compile_train_step(config, mesh, abstract_state(config, mesh),
                                    placement.abstract(config.data.sequence_length))
    state = init_state(config, mesh)
    found = []
    for number in range(STEPS):
        state, metrics = step(state, placement.put(packed_batch(config, number)))
        found.append([float(metrics["loss"]), float(metrics["grad_norm"])])
    return found


@functools.cache
def environment() -> dict[str, str]:
    """What may change the order of sums."""
    flags = next((line.split(":")[1] for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("flags")), "") if Path("/proc/cpuinfo").exists() else ""
    vectors = sorted(flag for flag in flags.split() if flag.startswith(("avx", "amx", "fma")))
    return {"jax": jax.__version__, "cores": str(os.cpu_count()),
            "processor": f"{platform.machine()} {' '.join(vectors)}"}


@pytest.mark.parametrize(("name", "mesh"), [
    pytest.param(name, mesh, marks=[pytest.mark.slow] * (name == "bench_cpu"))
    for name in RUNS for mesh in MESHES])
def test_losses_and_gradient_norms_are_the_recorded_ones(name, mesh):
    record = json.loads(RECORD.read_text())
    recorded = np.array([[float.fromhex(x) for x in step] for step in
                         record["runs"][f"{name}, {mesh}"]])
    found = np.array(numbers(name, mesh))
    if environment() != record["environment"]:
        np.testing.assert_allclose(found, recorded, rtol=1e-5)
    elif mesh == "1 device":
        assert found.tolist() == recorded.tolist()
    else:
        np.testing.assert_allclose(found, recorded, rtol=1e-6)


if __name__ == "__main__":
    RECORD.write_text(json.dumps({
        "environment": environment(),
        "runs": {f"{name}, {mesh}": [[x.hex() for x in step] for step in numbers(name, mesh)]
                 for name in RUNS for mesh in MESHES}}, indent=1) + "\n")
