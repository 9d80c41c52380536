"""Compiles the train step for devices that are not there, and measures the compiled program."""

import dataclasses
import math
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import jax

from maxlm.analysis import buffers, collectives, flops, hlo, traffic
from maxlm.analysis.roofline import Roofline, roofline
from maxlm.analysis.targets import Target
from maxlm.config import Config
from maxlm.kernels.compiler import compiler_options
from maxlm.models.counts import flops_per_token
from maxlm.parallel.batches import BatchPlacement
from maxlm.parallel.mesh import make_mesh
from maxlm.parallel.rules import logical_rules, path_name
from maxlm.training.execution import make_execution
from maxlm.training.state import abstract_state
from maxlm.training.step import lower_train_step

OUT_OF_MEMORY = re.compile(r"RESOURCE_EXHAUSTED|CompileTimeHbmOom|Ran out of memory")


@dataclasses.dataclass(frozen=True)
class Memory:
    """Bytes on one device.

    Attributes:
      limit: what a program may use.
      peak: the most that is in use at one time, arguments included, the program's code not.
      arguments: state and batch.
      temporary: the compiler's `temp_size`, which counts gaps; for comparison only.
      code: the program itself.
      host: memory of the host that the program uses.
      by_kind: what the peak consists of; sums to `peak`.
      largest: the buffers live at the peak, largest first.
      refused: what the compiler said if it refused the program for its memory.
    """

    limit: int
    peak: int
    arguments: int
    temporary: int
    code: int
    host: int
    by_kind: dict[str, int]
    largest: list[buffers.Buffer]
    refused: str = ""

    @property
    def fits(self) -> bool:
        return not self.refused and self.peak + self.code <= self.limit


@dataclasses.dataclass(frozen=True)
class Program:
    """What the compiled step does, for one device.

    Attributes:
      matmul_flops: precision -> FLOPs.
      kernels: custom calls that may multiply matrices: target -> runs in a step.
      uncounted: those of them whose FLOPs are not known.
      unknown_loops: loops whose trip count is not in the text; counted once.
    """

    matmul_flops: dict[str, float]
    bytes_moved: int
    collectives: list[collectives.Collective]
    bounds: Roofline
    kernels: dict[str, int]
    uncounted: list[str]
    unknown_loops: list[str]


@dataclasses.dataclass(frozen=True)
class CompiledStep:
    """The train step of a config, compiled for a target.

    Attributes:
      attention: the kernel that was chosen.
      model_flops: of one step and device, by the convention of `maxlm.models.counts`.
      program: None if the compiler refused the program.
    """

    config: Config
    target: Target
    attention: str
    memory: Memory
    program: Program | None
    model_flops: float
    tokens: int
    compile_seconds: float


def compile_step(config: Config, target: Target) -> CompiledStep:
    """Compiles and measures.

    Raises:
      ConfigError: the config does not divide over the devices.
    """
    mesh = make_mesh(config.parallel, target.devices)
    placement = BatchPlacement(mesh, logical_rules(config.parallel), config.data.batch_size,
                               config.run.accumulation_steps)
    state = abstract_state(config, mesh)
    batch = placement.abstract(config.data.sequence_length)
    tokens = config.data.batch_size * config.data.sequence_length
    model_flops = flops_per_token(config.model, config.data.sequence_length) * tokens / mesh.size
    with tempfile.TemporaryDirectory(prefix="maxlm-compile-") as directory:
        dump = Path(directory)
        began = time.monotonic()
        lowered = lower_train_step(config, mesh, state, batch)
        options = compiler_options(config.precision, mesh) | buffers.DUMP_OPTIONS | {
            "xla_dump_to": directory}
        try:
            with jax.set_mesh(mesh):
                compiled = lowered.compile(compiler_options=options)
            seconds = time.monotonic() - began
        except jax.errors.JaxRuntimeError as error:
            seconds = time.monotonic() - began
            if not OUT_OF_MEMORY.search(str(error)):
                raise
            program, memory = None, refused_memory(str(error), state, target, dump)
        else:
            text = compiled.as_text()
            assert text is not None
            parsed = hlo.parse(text)
            program = measure(parsed, target, mesh)
            memory = measured_memory(compiled, parsed, config, state, batch, target, dump)
    return CompiledStep(config, target, make_execution(config, mesh).attention, memory, program,
                        model_flops, tokens, seconds)


def measure(parsed: hlo.Program, target: Target, mesh: jax.sharding.Mesh) -> Program:
    """What a program does in one step on one device."""
    matmul_flops, uncounted = flops.by_precision(parsed.runs)
    found = collectives.collectives(parsed.runs, mesh.shape)
    moved = traffic.bytes_moved(parsed, parsed.runs)
    kernels: dict[str, int] = {}
    for run in parsed.runs:
        if run.instruction.opcode == "custom-call" and flops.kernel_flops(
                run.computation, run.instruction) != 0:
            name = flops.kernel_name(run.instruction)
            kernels[name] = kernels.get(name, 0) + run.times
    bounds = roofline(target.chip, matmul_flops, moved, found, list(mesh.devices.flat))
    return Program(matmul_flops, moved, found, bounds, kernels, uncounted, parsed.unknown_loops)


def _shard_bytes(leaf: Any) -> int:
    return math.prod(leaf.sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize


def argument_bytes(state: Any, batch: Any) -> dict[str, int]:
    """Path -> bytes on one device of every argument, without the padding of its layout."""
    paths = jax.tree_util.tree_leaves_with_path({"state": state, "batch": batch})
    return {path_name(path): _shard_bytes(leaf) for path, leaf in paths}


def measured_memory(compiled: jax.stages.Compiled, parsed: hlo.Program, config: Config, state: Any,
                    batch: Any, target: Target, dump: Path) -> Memory:
    """The memory of a compiled step."""
    stats: Any = compiled.memory_analysis()
    weights = {tuple(sorted(shape)) for leaf in jax.tree.leaves(state.params)
               for shape in (leaf.shape, leaf.shape[1:])}
    found = buffers.buffers_at_peak(dump, argument_bytes(state, batch), parsed, weights)
    peak = stats.peak_memory_in_bytes
    by_kind: dict[str, int] = dict.fromkeys(buffers.KINDS, 0)
    for buffer in found:
        by_kind[buffer.kind] += buffer.bytes
    # Padding of layouts, the program's constants, gaps of the heap at the peak.
    by_kind["other"] = peak - sum(by_kind.values())
    host = (stats.host_temp_size_in_bytes + stats.host_argument_size_in_bytes
            + stats.host_output_size_in_bytes - stats.host_alias_size_in_bytes)
    return Memory(target.chip.memory, peak, stats.argument_size_in_bytes,
                  stats.temp_size_in_bytes, stats.generated_code_size_in_bytes, host, by_kind,
                  found)


def refused_memory(message: str, state: Any, target: Target, dump: Path) -> Memory:
    """What is known of a program that the compiler refused: how much memory it said it needs."""
    arguments = argument_bytes(state, {})
    sizes = [float(number) * 1024 ** ("KMGT".index(unit) + 1) for number, unit in
             re.findall(r"(\d+(?:\.\d+)?)([KMGT])", message)]
    found = [buffers.Buffer(buffers.argument_kind(path), path, size, "")
             for path, size in arguments.items()]
    by_kind: dict[str, int] = dict.fromkeys(buffers.KINDS, 0)
    for buffer in found:
        by_kind[buffer.kind] += buffer.bytes
    peak = int(max(sizes, default=0))
    by_kind["other"] = max(0, peak - sum(by_kind.values()))
    return Memory(target.chip.memory, peak, sum(arguments.values()), 0, 0, 0, by_kind,
                  sorted(found, key=lambda b: -b.bytes), message.splitlines()[0])
