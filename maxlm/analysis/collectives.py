"""Collectives of a compiled program: kind, mesh axes, bytes and times run.

Bytes are what one device sends in a step by the ring algorithm, with n devices in a group and B
bytes of a whole (gathered or unreduced) array: all-gather, reduce-scatter and all-to-all
B (n-1)/n, all-reduce twice that (a reduce-scatter and an all-gather), a permute its operand.
"""

import collections
import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from maxlm.analysis.hlo import Computation, Instruction, Run

KINDS = ("all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute",
         "ragged-all-to-all", "collective-broadcast")


@dataclasses.dataclass(frozen=True)
class Collective:
    """One collective of the program.

    Attributes:
      axes: the mesh axes that its groups span, joined by "+"; "none" for groups of one device.
      group: numbers of the devices of the first group, in the order of the mesh.
      bytes: what a device sends in one run.
      times: runs in a step.
      op_name: the JAX operation that it comes from.
    """

    kind: str
    axes: str
    group: tuple[int, ...]
    bytes: int
    times: int
    asynchronous: bool
    op_name: str

    @property
    def total(self) -> int:
        return self.bytes * self.times


def collectives(runs: Iterable[Run], mesh_shape: Mapping[str, int]) -> list[Collective]:
    """All collectives of a program, in its order.

    The TPU compiler copies an asynchronous collective into several fusions (its start, its steps
    beside other work, its end). The copies share a `channel_id` and count once; steps may be inside
    a loop that start and end are not in, so the least number of runs counts.

    Args:
      mesh_shape: name -> size of each mesh axis, in the order of the devices.
    """
    copies: dict[Any, list[tuple[Run, str]]] = collections.defaultdict(list)
    for run in runs:
        kind = run.instruction.opcode.removesuffix("-start")
        if kind in KINDS:
            channel = run.instruction.attribute("channel_id")
            key = channel if channel and run.fused else run.instruction
            copies[key].append((run, kind))
    found = []
    for same in copies.values():
        run, kind = same[0]
        times = min(run.times for run, _ in same)
        group = first_group(run.instruction, mesh_shape)
        found.append(Collective(
            kind, axes_of(group, mesh_shape), tuple(int(d) for d in group[0]),
            bytes_sent(kind, run.computation, run.instruction, len(group[0])),
            times, run.fused or run.instruction.opcode.endswith("-start"),
            run.instruction.op_name))
    return found


def bytes_sent(kind: str, computation: Computation, instruction: Instruction, group: int) -> int:
    """Bytes that one device sends in one run."""
    operands = computation.operands(instruction)
    if kind == "collective-permute" and "slice_sizes" in instruction.attributes:
        operands = operands[:1]  # the others are where the result goes
    size = sum(array.bytes for operand in operands for array in operand.arrays)
    if kind == "all-gather":
        return size * (group - 1)
    if kind == "all-reduce":
        return 2 * size * (group - 1) // group
    if kind in ("reduce-scatter", "all-to-all", "ragged-all-to-all"):
        return size * (group - 1) // group
    return size if group > 1 else 0


def first_group(instruction: Instruction, mesh_shape: Mapping[str, int]) -> np.ndarray:
    """Device numbers [groups, members] that exchange data, or [pairs, 2] of a permute.

    Reads the three forms of `replica_groups`: listed, as a reshaped and transposed range, and by
    axes of a named mesh; and `source_target_pairs`.
    """
    text = instruction.attributes
    pairs = re.search(r"source_target_pairs=\{(.*?\})\}", text)
    if pairs:
        return np.array([[int(n) for n in re.findall(r"\d+", p)]
                         for p in re.findall(r"\{([^{}]*)\}", pairs[1])])
    named = re.search(r"replica_groups=mesh\[([^\]]*)\]"
                      r"(?:,? *device_ids=\(\[[\d,]*\](?:T\([\d,]*\))?\))? *\{([^}]*)\}", text)
    if named:
        return _named_groups(named[1], named[2], text)
    ranged = re.search(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", text)
    if ranged:
        shape, source, order = ([int(n) for n in re.findall(r"\d+", part or "")]
                                for part in ranged.groups())
        numbers = np.arange(np.prod(source)).reshape(source)
        return (numbers.transpose(order) if order else numbers).reshape(shape)
    listed = re.search(r"replica_groups=\{(\{.*?\})\}", text)
    if listed:
        return np.array([[int(n) for n in re.findall(r"\d+", g)]
                         for g in re.findall(r"\{([^{}]*)\}", listed[1])])
    if "replica_groups=" in text and "replica_groups={}" not in text:
        raise ValueError(f"unknown notation of replica groups: {text[:200]}")
    return np.arange(np.prod(list(mesh_shape.values()))).reshape(1, -1)  # all devices


def _named_groups(mesh: str, axes: str, text: str) -> np.ndarray:
    """`mesh['a'=4,'b'=16] {'b'}`: devices along the named axes, for each place on the others.

    An axis may be a part of a mesh axis: `'a':(2)4` has 4 members with 2 places before them.
    """
    sizes = {name: int(size) for name, size in re.findall(r"'([^']+)'=(\d+)", mesh)}
    numbers = np.arange(np.prod(list(sizes.values()))).reshape(list(sizes.values()))
    order = re.search(r"device_ids=\(\[([\d,]+)\](?:T\(([\d,]+)\))?\)", text)
    if order:
        source = [int(n) for n in order[1].split(",")]
        devices = np.arange(np.prod(source)).reshape(source)
        if order[2]:
            devices = devices.transpose([int(n) for n in order[2].split(",")])
        numbers = devices.reshape(list(sizes.values()))
    names, chosen = [], []
    wanted = {name: (int(before or 1), int(size or sizes[name])) for name, before, size in
              re.findall(r"'([^']+)'(?::\((\d+)\)(\d+))?", axes)}
    shape = []
    for name, size in sizes.items():
        before, part = wanted.get(name, (1, 1))
        for kind, length in (("-", before), (name, part), ("-", size // before // part)):
            shape.append(length)
            names.append(kind)
            chosen.append(kind == name and name in wanted)
    numbers = numbers.reshape(shape)
    inside = [i for i, yes in enumerate(chosen) if yes]
    outside = [i for i, yes in enumerate(chosen) if not yes]
    members = int(np.prod([shape[i] for i in inside]))
    return numbers.transpose(outside + inside).reshape(-1, members)


def axes_of(groups: np.ndarray, mesh_shape: Mapping[str, int]) -> str:
    """The mesh axes along which the members of a group differ."""
    places = np.array(np.unravel_index(groups, list(mesh_shape.values())))  # [axes, groups, n]
    differs = (places != places[:, :, :1]).any(axis=(1, 2))
    return "+".join(name for name, yes in zip(mesh_shape, differs, strict=True) if yes) or "none"


def totals(found: Sequence[Collective]) -> dict[str, dict[str, dict[str, int]]]:
    """axes -> kind -> number of collectives in the program, their runs, and the bytes sent."""
    table: dict[str, dict[str, dict[str, int]]] = {}
    for collective in found:
        row = table.setdefault(collective.axes, {}).setdefault(
            collective.kind, {"collectives": 0, "runs": 0, "bytes": 0})
        row["collectives"] += 1
        row["runs"] += collective.times
        row["bytes"] += collective.total
    return table
