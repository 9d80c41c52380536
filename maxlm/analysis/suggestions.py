"""Changes that would make a train step fit into the memory of its devices."""

import dataclasses
import math
from typing import Any

import jax

from maxlm.analysis.chips import TPUS
from maxlm.analysis.step import CompiledStep
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
      rank: the cheapest first.
      cost: what it costs, for the reader.
    """

    rank: float
    text: str
    cost: str
    config: Config
    topology: str


def suggestions(step: CompiledStep, count: int = 3) -> list[dict[str, Any]]:
    """The cheapest changes that bring the estimated peak below the memory of a device.

    The estimate is the lower bound of `maxlm.training.memory` for the changed run, the gathered
    weights of a layer with their gradients, and what the compiled step holds beyond these, in
    proportion to the rows of a microbatch. It must stay below by a margin of 10 %.

    Returns:
      change (text), cost (text), peak_bytes (estimated), by increasing cost.
    """
    found: list[dict[str, Any]] = []
    for change in sorted(_changes(step), key=lambda change: change.rank):
        try:
            peak = _estimate(step, change)
        except ConfigError:  # does not divide over the mesh
            continue
        if peak * MARGIN <= step.target.chip.memory:
            found.append({"change": change.text, "cost": change.cost, "peak_bytes": int(peak)})
        if len(found) == count:
            break
    return found


def _estimate(step: CompiledStep, change: Change) -> float:
    now = make_mesh(step.config.parallel, step.target.devices)
    then_target = step.target if change.topology == step.target.name else find(change.topology)
    then = make_mesh(change.config.parallel, then_target.devices)
    BatchPlacement(then, change.config.data.batch_size, change.config.run.accumulation_steps)
    before, after = needed(step.config, now), needed(change.config, then)
    beyond = max(0, step.memory.peak + step.memory.code - before.total)
    layer = min(beyond, _gathered(step.config, now))
    rows = _rows(change.config, then) / _rows(step.config, now)
    return after.total + _gathered(change.config, then) + (beyond - layer) * rows


def _gathered(config: Config, mesh: Any) -> float:
    """Bytes of the weights of one block and of the head, whole but for the tensor axis, in the
    compute dtype, and of their gradients in float32."""
    head = config.model.vocab_size * config.model.embed_dim
    block = (matmul_param_count(config.model) - head) / config.model.num_layers
    size = jax.numpy.dtype(config.precision.compute).itemsize + 4
    return (block + head) * size / mesh.shape["tensor"]


def _rows(config: Config, mesh: Any) -> float:
    return config.data.batch_size / batch_shards(mesh) / config.run.accumulation_steps


def _changes(step: CompiledStep) -> list[Change]:
    config, target = step.config, step.target
    found: list[Change] = []
    mesh = make_mesh(config.parallel, target.devices)
    rows = int(_rows(config, mesh))

    def add(rank: float, text: str, cost: str, topology: str = target.name,
            **sections: dict[str, Any]) -> None:
        changed = dataclasses.replace(config, **{
            name: dataclasses.replace(getattr(config, name), **fields)
            for name, fields in sections.items()})
        found.append(Change(rank, text, cost, changed, topology))

    for steps in [s for s in range(2, rows + 1) if rows % s == 0]:
        total = config.run.accumulation_steps * steps
        add(math.log2(steps), f"--config.run.accumulation_steps={total}",
            "the same tokens a step in smaller microbatches; weights are gathered for each",
            run={"accumulation_steps": total})
    if config.model.remat != "full":
        add(1.5, "--config.model.remat=full", "recomputes each block, up to a third more FLOPs",
            model={"remat": "full"})
    if mesh.shape["data"] > 1:
        add(2.5, "--config.parallel.data=1 --config.parallel.fsdp=-1",
            "weights split over all devices, gathered for each layer",
            parallel={"data": 1, "fsdp": -1})
    for tensor in (2, 4, 8):
        if tensor > mesh.shape["tensor"] and len(target.devices) % tensor == 0:
            add(3 + math.log2(tensor), f"--config.parallel.tensor={tensor}",
                "activations are exchanged within each layer", parallel={"tensor": tensor})
    for name, devices in _larger(target):
        more = devices / len(target.devices)
        shards = devices // (mesh.shape["tensor"] * mesh.shape["stage"])
        total = max(1, config.run.accumulation_steps * mesh.shape["fsdp"] * mesh.shape["data"]
                    // shards)
        text = f"--topology={name}"
        if total != config.run.accumulation_steps:
            text += f" --config.run.accumulation_steps={total}"
        add(20 + more, text, f"{more:g} times the devices", name,
            run={"accumulation_steps": total})
    return found


def _larger(target: Target) -> list[tuple[str, int]]:
    """Topologies of the same chip with 2, 4, 8 ... times the devices: name, devices."""
    found = []
    if target.chip.name in TPUS:
        chip, _, shape = target.name.partition(":")
        sides = [int(side) for side in shape.split("x")]
        for _ in range(6):
            smallest = min(range(len(sides)), key=lambda i: (sides[i], -i))
            sides[smallest] *= 2
            if math.prod(sides) <= (256 if len(sides) == 2 else 8192):
                per_chip = len(target.devices) // math.prod(
                    int(side) for side in shape.split("x"))
                found.append((f"{chip}:{'x'.join(map(str, sides))}",
                              math.prod(sides) * per_chip))
    else:
        box = min(8, len(target.devices))
        for hosts in (1, 2, 4, 8, 16, 32, 64):
            for size in {box, 8}:
                if hosts * size > len(target.devices):
                    found.append((f"{target.chip.name}x{size}" + (f"x{hosts}" if hosts > 1 else ""),
                                  hosts * size))
    return found


