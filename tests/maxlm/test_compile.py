"""`python -m maxlm.compile`: the page, the figures, the exit status."""

import dataclasses
import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from benchmarks import compile as benchmark
from maxlm import compile as command
from maxlm.analysis import buffers, hlo
from maxlm.analysis.chips import TPUS
from maxlm.analysis.collectives import Collective, collectives
from maxlm.analysis.compiled_step import CompiledStep, Memory, Program
from maxlm.analysis.page import figures, page, short
from maxlm.analysis.roofline import Roofline
from maxlm.analysis.suggestions import suggestions
from maxlm.analysis.targets import Target, find
from maxlm.config import Config, ConfigError, ParallelConfig, resolve_config
from maxlm.parallel.mesh import make_mesh

ROOT = Path(__file__).resolve().parents[2]

# What is promised about the JSON file.
KEYS = ["fits", "hbm_bytes", "peak_bytes", "bytes_by_kind", "host_bytes", "model_flops",
        "program_flops", "recompute_share", "matmul_flops_by_precision",
        "collective_bytes_by_axis", "predicted_step_seconds", "bound", "predicted_mfu",
        "tokens_per_second", "compile_seconds", "compiler", "topology"]


def installed(package: str) -> bool:
    try:
        return bool(importlib.metadata.version(package))
    except importlib.metadata.PackageNotFoundError:
        return False


needs_libtpu = pytest.mark.skipif(not installed("libtpu"), reason="no libtpu")


def seven_billion(peak: int, **sections) -> CompiledStep:
    """A 7B step on 16 chips whose figures are made up."""
    config = resolve_config(Config, str(ROOT / "configs/7b.py"), [])
    config = dataclasses.replace(config, **{
        name: dataclasses.replace(getattr(config, name), **fields)
        for name, fields in sections.items()})
    chip = TPUS["v5e"]
    memory = Memory(
        limit=chip.memory, peak=peak, arguments=5 * 10**9, temporary=0, code=10**8, host=0,
        by_kind={"parameters": 2 * 10**9, "optimizer": 3 * 10**9,
                 "temporaries": peak - 5 * 10**9},
        largest=[buffers.Buffer("parameters", "state/params/head", 10**9, "")])
    program = Program(
        matmul_flops={"bf16": 2e14}, bytes_moved=10**11,
        collectives=[Collective("all-gather", "fsdp", (0, 1), 10**8, 64, True, "")],
        bounds=Roofline(1.0, 0.5, 0.25), kernels={"splash_mha_fwd": 32}, uncounted=[],
        unknown_loops=[])
    target = Target("v5e:4x4", chip, list(range(16)), "libtpu 0.0.52")
    return CompiledStep(config, target, "splash", memory, program, 1.6e14, 4096 * 1024, 60.0)


def test_figures_and_page():
    step = seven_billion(10 * 10**9)
    values = figures(step)
    assert set(KEYS) <= set(values)
    assert values["fits"] and values["bound"] == "compute"
    assert values["recompute_share"] == pytest.approx(0.2)
    assert values["predicted_mfu"] == pytest.approx(1.6e14 / 197e12)
    assert values["tokens_per_second"] == 4096 * 1024
    assert values["collective_bytes_by_axis"] == {"fsdp": 6_400_000_000}
    assert sum(values["bytes_by_kind"].values()) == values["peak_bytes"]
    text = page(step)
    for part in ("fits: 10.10 GB of 16.91 GB", "libtpu 0.0.52", "splash_mha_fwd", "state/params",
                 "recomputation does not count", "all-gather"):
        assert part in text, part
    assert "does not fit: 20.10 GB" in page(seven_billion(20 * 10**9))


def test_code_counts_for_the_verdict():
    assert not seven_billion(TPUS["v5e"].memory - 10**7).memory.fits
    assert seven_billion(TPUS["v5e"].memory - 10**8).memory.fits


@pytest.mark.parametrize("path, shown", [
    ("jit(train_step)/while/body/eval_jaxpr/jvp()/while/body/dot_general", "jvp()/dot_general"),
    ("jit(train_step)/mul", "mul"), ("state/params/head", "state/params/head")])
def test_paths_are_shortened(path, shown):
    assert short(path) == shown


@pytest.mark.parametrize("topology, message", [
    ("v9:2x2", "no figures for TPU 'v9'"), ("h10", "did you mean 'h100'"),
    ("h100x", "no chip"), ("", "no chip")])
def test_a_topology_that_does_not_exist(topology, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        find(topology)


def test_a_compiler_that_is_not_installed_is_named(monkeypatch):
    def missing(package):
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(ConfigError, match=r"libtpu, is not installed; pip install.*aot"):
        find("v5e:2x2")
    with pytest.raises(ConfigError, match="jax-cuda12-pjrt, is not installed"):
        find("h100x8")


@needs_libtpu
@pytest.mark.parametrize("name, devices", [("v5e:2x2", 4), ("v5p:2x2x1", 4), ("v6e:2x4", 8)])
def test_topologies_of_tpus(name, devices):
    target = find(name)
    assert len(target.devices) == devices and target.compiler.startswith("libtpu ")


@needs_libtpu
def test_weights_are_gathered_on_a_slice_of_closed_rings():
    """64 MiB split over 64 chips: each sends 63/64 of it. Where libtpu assumes open ends, it
    all-reduces a padded buffer: twice the bytes."""
    mesh = make_mesh(ParallelConfig(data=1, fsdp=-1), find("v5p:4x4x4").devices)
    weight = jax.ShapeDtypeStruct((4096, 4096), jnp.float32,
                                  sharding=NamedSharding(mesh, P("fsdp")))
    program = jax.jit(lambda x: x * 2, out_shardings=NamedSharding(mesh, P())).lower(
        weight).compile()
    found = collectives(hlo.parse(program.as_text() or "").runs, mesh.shape)
    assert [(each.kind, each.total) for each in found] == [("all-gather", 63 * 2**20)]


@pytest.mark.skipif(not installed("jax-cuda12-pjrt"), reason="no jax-cuda12-pjrt")
@pytest.mark.parametrize("name, devices, hosts", [
    ("h100", 1, 1), ("a100-80gb×8", 8, 1), ("a100-40gbx4", 4, 1), ("b200x8x2", 16, 2)])
def test_topologies_of_gpus(name, devices, hosts):
    target = find(name)
    assert len(target.devices) == devices
    assert len({device.process_index for device in target.devices}) == hosts


@needs_libtpu
def test_suggestions_name_what_would_fit():
    """Eight rows of 4096 tokens a microbatch are too many for 16 GB; fewer are enough."""
    target = find("v5e:4x4")
    step = dataclasses.replace(
        seven_billion(25 * 10**9, run={"accumulation_steps": 8}), target=target)
    found = suggestions(step)
    assert len(found) == 3
    assert found[0]["change"] == "--config.run.accumulation_steps=32"
    assert found[0]["peak_bytes"] * 1.1 <= target.chip.memory


SMALL = {"model.num_layers": 2, "model.embed_dim": 256, "model.num_heads": 4,
         "model.num_kv_heads": 4, "model.head_dim": 64, "model.mlp_dim": 512,
         "model.vocab_size": 1024, "model.attention": "blocked", "data.sequence_length": 128,
         "data.batch_size": 16, "run.accumulation_steps": 2}


def run(tmp_path, topology="v5e:2x2", config="configs/7b.py", **changes):
    """Exit status, page and figures of the command."""
    settings = SMALL | {name.replace("__", "."): value for name, value in changes.items()}
    done = subprocess.run(
        [sys.executable, "-m", "maxlm.compile", f"--config={config}", f"--topology={topology}",
         f"--json={tmp_path}/figures.json",
         *(f"--config.{name}={value}" for name, value in settings.items())],
        cwd=ROOT, text=True, capture_output=True, timeout=590, env=os.environ | {"XLA_FLAGS": ""})
    assert done.returncode in (0, command.DOES_NOT_FIT), done.stderr
    return done.returncode, done.stdout, json.loads((tmp_path / "figures.json").read_text())


def step_flops(layers: int, width: int, inner: int, vocabulary: int, length: int) -> float:
    """Matmul FLOPs a token of the step, full rematerialisation, attention in blocks of 128.

    Each matrix: 2 forward, 4 backward, 2 again when a block is recomputed; the last matrix of a
    block is not recomputed, as nothing reads its result. Attention: two matmuls forward, two
    recomputed, five backward, over (length + 128) / 2 keys on average.
    """
    block = 4 * width * width + 3 * width * inner
    attention = 9 * 2 * width * (length + 128) / 2
    return layers * (8 * block - 2 * width * inner + attention) + 6 * vocabulary * width


@pytest.mark.slow
@needs_libtpu
@pytest.mark.parametrize("layers, width, length", [
    (2, 256, 128), (6, 512, 128), (2, 512, 512), (6, 256, 512)])
def test_flops_equal_a_hand_count(tmp_path, layers, width, length):
    status, _, values = run(
        tmp_path, model__num_layers=layers, model__embed_dim=width, model__mlp_dim=3 * width,
        model__num_heads=width // 64, model__num_kv_heads=width // 64,
        data__sequence_length=length)
    tokens = 16 * length // 4  # of a device
    expected = tokens * step_flops(layers, width, 3 * width, 1024, length)
    assert values["program_flops"] == pytest.approx(expected, rel=0.02)
    assert values["matmul_flops_by_precision"] == {"bf16": values["program_flops"]}
    assert values["peak_bytes"] == sum(values["bytes_by_kind"].values())
    parameters = values["parameters"] * 4 / 4  # float32, over four devices
    assert values["bytes_by_kind"]["parameters"] == pytest.approx(parameters, rel=0.02)
    assert values["bytes_by_kind"]["optimizer"] == pytest.approx(2 * parameters, rel=0.02)
    assert (status, values["fits"]) == (0, True)
    assert set(values["collective_bytes_by_axis"]) == {"fsdp"}


@pytest.mark.slow
@needs_libtpu
def test_what_does_not_fit_exits_with_3_and_says_what_would(tmp_path):
    """80 GB of weights and optimizer on four chips of 16 GB."""
    status, text, values = run(tmp_path, model__num_layers=100, model__embed_dim=2048,
                               model__num_heads=32, model__num_kv_heads=32, model__mlp_dim=8192,
                               data__batch_size=128)
    assert (status, values["fits"]) == (3, False)
    assert "does not fit" in text and "--topology=v5e:" in text
    assert len(values["suggestions"]) == 3


def test_the_benchmark_refuses_to_mix_compilers():
    values = figures(seven_billion(10**10)) | {"compiler": "libtpu 0.0.52"}
    rows = dict.fromkeys(("7b-v5p-4x4x4", "7b-v5e-4x4"), values)
    benchmark.require_one_compiler(rows | {"7b-h100": values | {"compiler": "jax-cuda12-pjrt 1"}})
    text = benchmark.table(rows)
    assert text == benchmark.table(dict(reversed(rows.items())))  # in a fixed order
    assert "3,274,423,040" in text and "10,000,000,000" in text and "libtpu 0.0.52" in text
    with pytest.raises(ConfigError, match=r"7b-v5e-4x4 is of libtpu 0\.0\.50"):
        benchmark.require_one_compiler(
            rows | {"7b-v5e-4x4": values | {"compiler": "libtpu 0.0.50"}})


def test_the_benchmark_puts_its_table_between_the_marks():
    page = f"# A\n\n{benchmark.BEGIN}\nold\n{benchmark.END}\nrest\n"
    once = benchmark.replace_table(page, "new")
    assert once == f"# A\n\n{benchmark.BEGIN}\nnew\n{benchmark.END}\nrest\n"
    assert benchmark.replace_table(once, "new") == once
    with pytest.raises(ConfigError, match="has no lines"):
        benchmark.replace_table("# A\n", "new")
