"""The lower bound of memory: by hand, and never above what a compiled program takes."""

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from maxlm.config import (
    Config,
    ConfigError,
    ParallelConfig,
    build,
    from_config_dict,
    load_config_file,
)
from maxlm.parallel.batches import BatchPlacement
from maxlm.parallel.mesh import make_mesh
from maxlm.parallel.rules import logical_rules
from maxlm.training import memory
from maxlm.training.state import abstract_state
from maxlm.training.step import compile_train_step
from tests import training_runs as runs

CONFIGS = runs.REPOSITORY / "configs"


def one_device(config: Config) -> jax.sharding.Mesh:
    return make_mesh(ParallelConfig(), jax.devices()[:1])


def shipped(name: str) -> Config:
    return from_config_dict(Config, load_config_file(str(CONFIGS / name)))


def test_7b_by_hand():
    config = shipped("7b.py")
    need = memory.needed(config, one_device(config))
    parameters = 6_738_415_616
    assert need.state == pytest.approx(12 * parameters, abs=100)  # and two counters
    assert need.gradients == 4 * parameters  # summed over 16 microbatches of 64 rows
    assert need.activations == 32 * 64 * 4096 * 4096 * 2
    assert need.total == need.state + need.gradients + need.activations


def test_the_layout_divides():
    config = dataclasses.replace(
        shipped("7b.py"), parallel=ParallelConfig(data=1, fsdp=4, tensor=2))
    whole = memory.needed(config, one_device(config))
    split = memory.needed(config, make_mesh(config.parallel))
    assert split.state == pytest.approx(whole.state / 8, rel=1e-3)  # norm scales are whole
    assert split.activations == whole.activations / 8
    replicas = memory.needed(config, make_mesh(ParallelConfig(data=8)))
    assert (replicas.state, replicas.activations) == (whole.state, whole.activations / 8)


SMALL = {
    "run": {"accumulation_steps": 1}, "schedule": {"warmup_steps": 1},
    "model": {"vocab_size": 512, "num_layers": 6, "embed_dim": 64, "num_heads": 4,
              "num_kv_heads": 2, "head_dim": 16, "mlp_dim": 128, "loss_chunk": 128},
    "data": {"sequence_length": 128, "batch_size": 8},
}


@pytest.mark.parametrize(("compute", "section", "settings"), [
    ("float32", "model", {"remat": "none"}), ("bfloat16", "model", {"remat": "dots"}),
    ("float32", "model", {"remat": "full"}),
    ("bfloat16", "model", {"remat": "full", "scan_layers": False}),
    ("float32", "model", {"remat": "none", "scan_layers": False}),
    ("bfloat16", "model", {"vocab_size": 16384, "remat": "full"}),
    ("bfloat16", "model", {"mlp_dim": 4096, "remat": "full"}),
    ("float32", "data", {"sequence_length": 1024}), ("float32", "run", {"accumulation_steps": 4}),
    ("bfloat16", "run", {"accumulation_steps": 4}),
    ("float32", "parallel", {"data": 1, "fsdp": 2, "tensor": 2}),
], ids=str)
def test_no_compiled_program_takes_less(compute, section, settings):
    values = {**SMALL, "precision": {"compute": compute}, "parallel": {"data": 1, "fsdp": 1}}
    values[section] = {**values.get(section, {}), **settings}
    config = build(Config, values)
    sizes = config.parallel
    mesh = make_mesh(sizes, jax.devices()[:sizes.data * sizes.fsdp * sizes.tensor])
    placement = BatchPlacement(mesh, logical_rules(config.parallel), config.data.batch_size,
                               config.run.accumulation_steps)
    batch = placement.abstract(config.data.sequence_length)
    analysis = compile_train_step(
        config, mesh, abstract_state(config, mesh), batch).memory_analysis()
    rows = sum(leaf.dtype.itemsize * leaf.size for leaf in batch.values()) // (
        sizes.data * sizes.fsdp)
    taken = analysis.argument_size_in_bytes - rows + analysis.temp_size_in_bytes
    need = memory.needed(config, mesh)
    assert need.state <= analysis.argument_size_in_bytes - rows
    assert need.total <= taken


@pytest.mark.parametrize("name", ["tiny.py", "110m.py"])
def test_configurations_that_fit_on_this_machine_pass(name):
    config = dataclasses.replace(shipped(name), parallel=ParallelConfig())
    text = memory.refuse_too_large(config, one_device(config))
    assert "raise run.accumulation_steps" in text


@pytest.mark.parametrize(("limit", "words"), [
    (23.0, r"What could fit: 8 such devices with parallel\.data=1 and parallel\.fsdp=-1, or a "
           r"model of at most 1\.4 billion"),
    (16.0, r"What could fit: 8 such devices .* and run\.accumulation_steps=64, or a model"),
    (80.0, r"What could fit: 2 such devices .* and run\.accumulation_steps=32, or a model of at "
           r"most 5 billion"),
    # The weights fit, and the microbatch of 64 rows does not.
    (125.0, r"What could fit: run\.accumulation_steps=64$"),
    (112.5, r"What could fit: run\.accumulation_steps=256$"),
    (108.0, r"What could fit: 2 such devices with .*fsdp=-1, or shorter rows"),
])
def test_what_would_fit(monkeypatch, limit, words):
    config = shipped("7b.py")
    monkeypatch.setattr(memory, "available", lambda: (int(limit * 1e9), "here"))
    with pytest.raises(ConfigError, match=words) as caught:
        memory.refuse_too_large(config, one_device(config))
    text = str(caught.value)
    assert f"and there are {limit:.1f} GB here." in text and "\n" not in text
    # It does fit, and half of it does not.
    steps, devices = (re.search(pattern, text) for pattern in (
        r"accumulation_steps=(\d+)", r"(\d+) such devices"))
    steps, devices = int(steps[1]) if steps else 16, int(devices[1]) if devices else 1
    assert 1024 % (steps * devices) == 0

    def total(devices: int, steps: int) -> float:
        """The sum of test_7b_by_hand over the devices, in bytes."""
        rows = 1024 // (devices * steps)
        return 16 * 6_738_415_616 / devices + 32 * rows * 4096 * 4096 * 2

    assert total(devices, steps) < limit * 1e9
    assert devices == 1 or total(devices // 2, 1024 // (devices // 2)) > limit * 1e9
    assert steps == 16 or total(devices, steps // 2) > limit * 1e9


@pytest.mark.parametrize("limit", [16.0, 23.0, 80.0])
def test_the_proposed_devices_pass_the_check(monkeypatch, limit):
    """With 8 devices, as the check itself counts: the proposal for one device is at most these."""
    config = shipped("7b.py")
    monkeypatch.setattr(memory, "available", lambda: (int(limit * 1e9), "here"))
    with pytest.raises(ConfigError) as caught:
        memory.refuse_too_large(config, one_device(config))
    devices = re.search(r"(\d+) such devices", str(caught.value))
    steps = re.search(r"accumulation_steps=(\d+)", str(caught.value))
    assert devices
    config = dataclasses.replace(
        config, parallel=ParallelConfig(data=1, fsdp=-1), run=dataclasses.replace(
            config.run, accumulation_steps=int(steps[1]) if steps else 16))
    mesh = make_mesh(config.parallel, jax.devices()[:int(devices[1])])
    assert "To need less" in memory.refuse_too_large(config, mesh)


def test_where_the_memory_is_not_known_nothing_is_refused(monkeypatch):
    config = shipped("70b.py")
    monkeypatch.setattr(memory, "available", lambda: None)
    assert "needs at least 1,790.8 GB" in memory.refuse_too_large(config, one_device(config))


GIB = 2**30


@pytest.mark.parametrize(("swap", "cgroup", "files", "expected"), [
    (0, "", {}, 32),
    (2, "", {}, 34),
    (0, "0::/\n", {"memory.max": f"{8 * GIB}\n"}, 8),  # version 2, in a container
    (2, "0::/a/b\n", {"a/b/memory.max": "max\n", "a/memory.max": f"{4 * GIB}\n"}, 6),
    (0, "0::/gone\n", {"memory.max": f"{8 * GIB}\n"}, 8),
    (0, "0::/a\n", {"a/memory.max": f"{64 * GIB}\n"}, 32),
    (0, "4:memory:/x\n0::/\n", {"memory/x/memory.limit_in_bytes": f"{6 * GIB}\n"}, 6),
    (0, "3:cpu,memory:/x\n", {"memory/memory.limit_in_bytes": f"{6 * GIB}\n"}, 6),
    (0, "4:memory:/\n", {"memory/memory.limit_in_bytes": "9223372036854771712\n"}, 32),
    (0, "4:cpu:/\n", {"memory/memory.limit_in_bytes": f"{6 * GIB}\n"}, 32),
    (0, "0::/../..\n", {"memory.max": f"{8 * GIB}\n"}, 8),
])
def test_host_memory(tmp_path, swap, cgroup, files, expected):
    proc, cgroups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text(
        f"MemTotal:       {32 * 2**20} kB\nMemFree:        1 kB\nSwapTotal: {swap * 2**20} kB\n")
    (proc / "self" / "cgroup").write_text(cgroup)
    for name, text in files.items():
        (cgroups / name).parent.mkdir(parents=True, exist_ok=True)
        (cgroups / name).write_text(text)
    assert memory.host_memory(proc, cgroups) == expected * GIB
    assert memory.host_memory(tmp_path / "none", cgroups) is None


def test_too_large_a_model_is_one_line_before_anything_is_compiled(tmp_path):
    limit = memory.host_memory()
    if limit is None or limit > 100e9:
        pytest.skip("7b fits here")
    ended = subprocess.run(
        [sys.executable, "-m", "maxlm.train", f"--config={CONFIGS / '7b.py'}",
         f"--workdir={tmp_path / 'run'}", f"--config.data.tokens={runs.tokens()}",
         "--config.data.batch_size=16"],
        cwd=runs.REPOSITORY, env=os.environ | {"XLA_FLAGS": ""}, capture_output=True, text=True,
        timeout=120)
    assert ended.returncode == 2
    [line] = ended.stderr.splitlines()
    assert line.startswith("error: config.model: training needs at least 108.9 GB")
    assert "GB of host memory" in line and "What could fit: " in line


def test_an_allocation_that_fails_later_is_one_line(tmp_path):
    """The model passes the count; its step wants one buffer that is larger than the memory."""
    overcommit = Path("/proc/sys/vm/overcommit_memory")
    if not overcommit.exists() or overcommit.read_text().strip() == "1":
        pytest.skip("the kernel here grants any allocation")
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    width, length = 65536, 4096
    rows = int(3 * memory_bytes / (2 * 3 * width * 4 * length)) + 1  # 2 layers, 3 arrays of width
    process = runs.start(
        tmp_path / "run", data__sequence_length=length, data__batch_size=rows,
        model__mlp_dim=width, evals__every_steps=0, data__prefetch=1)
    errors = runs.finish(process, 1)
    assert "Traceback" not in errors
    last = errors.splitlines()[-1]
    assert last.startswith("failed: ") and "ut of memory" in last
    assert "training needs at least" in last and "raise run.accumulation_steps" in last
