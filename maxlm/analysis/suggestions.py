"""Changes that would make a train step fit into the memory of its devices."""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import jax

from maxlm.analysis.chips import GPUS, TPUS
from maxlm.analysis.compiled_step import CompiledStep
from maxlm.analysis.targets import Target, find
from maxlm.config import Config, ConfigError
from maxlm.models.counts import matmul_param_count
from maxlm.parallel.batches import BatchPlacement
from maxlm.parallel.mesh import batch_shards, make_mesh
from maxlm.training.memory import needed

# An estimate may be this much too low.
MARGIN = 1.1


@dataclasses.dataclass(frozen=True)
class Change:
    """A change of the config or the topology.

    Attributes:
      text: what to write on the command line; empty for none.
      cost: what it costs, for the reader.
    """

    text: str
    cost: str
    config: Config
    topology: str


def suggestions(step: CompiledStep, count: int = 3) -> list[dict[str, Any]]:
    """The cheapest changes that bring the estimated peak below the memory of a device.

    Each change is tried with the present number of microbatches first, then with more. The
    estimate is the lower bound of `maxlm.training.memory` for the changed run, the gathered weights
    of a layer with their gradients, and what the compiled step holds beyond these, in proportion to
    the rows of a microbatch. It must stay below the memory by a margin of 10 %.

    Returns:
      change (text), cost (text), peak_bytes (estimated), by increasing cost.
    """
    by_cost: dict[str, list[dict[str, Any]]] = {}
    for change in _changes(step):
        fitting = by_cost.setdefault(change.cost, [])
        if len(fitting) < count and (smaller := _with_microbatches(step, change)):
            fitting.append(smaller)
        if sum(map(bool, by_cost.values())) == count:
            break
    # The cheapest of each kind first; then more of the same kinds.
    found = [fitting[0] for fitting in by_cost.values() if fitting]
    return (found + [c for fitting in by_cost.values() for c in fitting[1:]])[:count]


def _with_microbatches(step: CompiledStep, change: Change) -> dict[str, Any] | None:
    """The change with the fewest microbatches that fit, if any do."""
    try:
        target = step.target if change.topology == step.target.name else find(change.topology)
        mesh = make_mesh(change.config.parallel, target.devices)
        rows = change.config.data.batch_size // batch_shards(mesh)
        present = change.config.run.accumulation_steps
        for count in [n for n in range(min(present, rows), rows + 1) if n and rows % n == 0]:
            config = dataclasses.replace(change.config, run=dataclasses.replace(
                change.config.run, accumulation_steps=count))
            BatchPlacement(mesh, config.data.batch_size, count)
            peak = _estimate(step, config, mesh)
            text = change.text
            if count != present:
                text = f"{text} --config.run.accumulation_steps={count}".strip()
            if text and peak * MARGIN <= target.chip.memory:
                return {"change": text, "cost": change.cost, "peak_bytes": int(peak)}
    except ConfigError:  # the model or the batch does not divide over the mesh
        pass
    return None


def _estimate(step: CompiledStep, config: Config, mesh: Any) -> float:
    present = make_mesh(step.config.parallel, step.target.devices)
    before, after = needed(step.config, present), needed(config, mesh)
    beyond = max(0, step.memory.peak + step.memory.code - before.total)
    layer = min(beyond, _gathered(step.config, present))
    rows = _rows(config, mesh) / _rows(step.config, present)
    return after.total + _gathered(config, mesh) + (beyond - layer) * rows


def _gathered(config: Config, mesh: Any) -> float:
    """Bytes of the weights of one block and of the head, whole but for the tensor axis, in the
    compute dtype, and of their gradients in float32."""
    head = config.model.vocab_size * config.model.embed_dim
    block = (matmul_param_count(config.model) - head) / config.model.num_layers
    size = jax.numpy.dtype(config.precision.compute).itemsize + 4
    return (block + head) * size / mesh.shape["tensor"]


def _rows(config: Config, mesh: Any) -> float:
    return config.data.batch_size / batch_shards(mesh) / config.run.accumulation_steps


def _changes(step: CompiledStep) -> Iterator[Change]:
    """Changes by increasing cost."""
    config, target = step.config, step.target
    mesh = make_mesh(config.parallel, target.devices)

    def changed(text: str, cost: str, section: str, **fields: Any) -> Change:
        return Change(text, cost, dataclasses.replace(config, **{
            section: dataclasses.replace(getattr(config, section), **fields)}), target.name)

    yield Change("", "the same tokens a step in smaller microbatches; weights are gathered for "
                 "each", config, target.name)
    if config.model.remat != "full":
        yield changed("--config.model.remat=full", "recomputes each block, up to a third more "
                      "FLOPs", "model", remat="full")
    if mesh.shape["data"] > 1:
        yield changed("--config.parallel.data=1 --config.parallel.fsdp=-1", "weights are split "
                      "over all devices, and gathered for each layer", "parallel", data=1, fsdp=-1)
    for tensor in (2, 4, 8):
        if tensor > mesh.shape["tensor"] and len(target.devices) % tensor == 0:
            yield changed(f"--config.parallel.tensor={tensor}", "activations are exchanged within "
                          "each layer", "parallel", tensor=tensor)
    for name in _other_chips(target, len(target.devices)):
        yield Change(f"--topology={name}", "another chip with more memory", config, name)
    for name in _larger(target):
        yield Change(f"--topology={name}", "more devices", config, name)
    for times in (2, 4, 8, 16) if target.chip.kind == "tpu" else ():
        for name in _other_chips(target, times * len(target.devices)):
            yield Change(f"--topology={name}", "more devices of another chip", config, name)


def _other_chips(target: Target, count: int) -> list[str]:
    """Topologies of that many chips of the same kind with more memory."""
    if target.chip.kind == "gpu":
        suffix = target.name.replace("×", "x").removeprefix(target.chip.name)
        return [name + suffix for name, chip in GPUS.items()
                if chip.memory > 1.2 * target.chip.memory]
    found = []
    if target.chip.name in ("v4", "v5e") and _square(count):
        found.append(f"v6e:{_square(count)}")
    if target.chip.memory < TPUS["v5p"].memory and _cube(count):
        found.append(f"v5p:{_cube(count)}")
    return found


def _square(count: int) -> str | None:
    """The shape of a v6e slice of that many chips."""
    side = 2 ** (count.bit_length() // 2)
    return f"{count // side}x{side}" if count in (4, 8, 16, 32, 64, 128, 256) else None


def _cube(count: int) -> str | None:
    """The shape of a v5p slice of that many chips, a power of two from 4."""
    if count < 4 or count & (count - 1):
        return None
    sides = [1, 1, 1]
    while math.prod(sides) < count:
        sides[min(range(3), key=lambda i: (sides[i], i))] *= 2
    return "x".join(map(str, sorted(sides, key=lambda side: (side == 1, side))))  # 2x2x1, 2x4x4


def _larger(target: Target) -> list[str]:
    """Topologies of the same chip with more devices."""
    count = len(target.devices)
    if target.chip.kind == "gpu":
        return [f"{target.chip.name}x8" + (f"x{hosts}" if hosts > 1 else "")
                for hosts in (1, 2, 4, 8, 16, 32, 64, 128) if hosts * 8 > count]
    chip, _, shape = target.name.partition(":")
    sides = [int(side) for side in shape.split("x")]
    found = []
    limit = 256 if len(sides) == 2 else 8192
    while 2 * math.prod(sides) <= limit:
        sides[min(range(len(sides)), key=lambda i: (sides[i], i))] *= 2
        found.append(f"{chip}:{'x'.join(map(str, sorted(sides)))}")
    return found
