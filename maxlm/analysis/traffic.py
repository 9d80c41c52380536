"""Bytes that a compiled program reads from and writes to the device's main memory (HBM).

An estimate: every instruction outside a fusion reads its operands and writes its results once.
Slices are counted by what is taken, updates in place by what is written, and arrays that the
compiler keeps in on-chip memory not at all. Caches are not modelled.
"""

from collections.abc import Iterable

from maxlm.analysis.collectives import KINDS
from maxlm.analysis.hlo import Array, Computation, Instruction, Program, Run

# Instructions that move nothing, or whose parts are counted by themselves.
FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "while", "call",
        "conditional", "after-all", "partition-id", "replica-id", "opt-barrier",
        "optimization-barrier", "iota", "add-dependency", "domain"}
TAKES = {"dynamic-slice", "slice", "gather"}


def bytes_moved(program: Program, runs: Iterable[Run]) -> int:
    """Bytes of one step on one device."""
    return sum(run.times * _moved(program, run.computation, run.instruction)
               for run in runs if not run.fused)


def _moved(program: Program, computation: Computation, instruction: Instruction) -> int:
    opcode = instruction.opcode
    if opcode in FREE or opcode.endswith("-start"):  # a start is counted at its -done
        return 0
    operands = computation.operands(instruction)
    if opcode.endswith("-done"):
        start = operands[0]
        source = computation.operands(start)
        if start.opcode == "fusion-start":
            return _fusion(program.computations[start.called[0]], instruction, source)
        if start.called:  # the operation is counted by itself
            return 0
        taken = instruction.arrays if opcode == "slice-done" else (
            a for operand in source for a in operand.arrays)
        inside = bool(source) and source[0].arrays[:1] != () and source[0].arrays[0].memory == 0
        return (_main(instruction.arrays)
                + (sum(a.bytes for a in taken) if inside else 0))
    if opcode == "fusion" and instruction.called:
        return _fusion(program.computations[instruction.called[0]], instruction, operands)
    if opcode in TAKES:
        return 2 * _main(instruction.arrays)
    if opcode == "dynamic-update-slice":
        return 2 * _main(operands[1].arrays)
    return _main(instruction.arrays) + sum(_main(operand.arrays) for operand in operands)


def _main(arrays: Iterable[Array]) -> int:
    return sum(array.bytes for array in arrays if array.memory == 0)


def _fusion(body: Computation, fusion: Instruction, operands: list[Instruction]) -> int:
    """Bytes of a fusion. Buffers of a collective that runs beside it pass through: what it sends is
    read where it starts, and its result written where it ends."""
    starts = any('"AsyncCollectiveStart"' in i.attributes for i in body.instructions.values())
    users: dict[str, list[Instruction]] = {}
    for instruction in body.instructions.values():
        for name in instruction.operands:
            users.setdefault(name, []).append(instruction)
    total = 0
    for instruction in body.instructions.values():
        if instruction.opcode != "parameter":
            continue
        number = int(instruction.operands[0])
        if number >= len(operands) or not operands[number].arrays:
            continue
        if operands[number].arrays[0].memory == 0:
            total += min(_read(body, instruction, users, starts),
                         _main(operands[number].arrays))
    roots = body.operands(body.root) if body.root.opcode == "tuple" else [body.root]
    for root, array in zip(roots, fusion.arrays, strict=False):
        root = _through_bitcasts(body, root)
        passed = root.opcode == "parameter" or root.opcode in KINDS or (
            '"AsyncCollectiveStart"' in root.attributes)
        if array.memory == 0 and not passed:
            total += (body.operand(root, 1).arrays[0].bytes
                      if root.opcode == "dynamic-update-slice" else array.bytes)
    return total


def _through_bitcasts(body: Computation, instruction: Instruction) -> Instruction:
    while instruction.opcode in ("bitcast", "copy", "convert") and instruction.operands:
        instruction = body.operand(instruction, 0)
    return instruction


def _read(body: Computation, value: Instruction, users: dict[str, list[Instruction]],
          starts: bool) -> int:
    """Bytes of a fusion's parameter that the fusion reads.

    Args:
      starts: the fusion starts a collective, so it counts as a reader.
    """
    total = 0
    for user in users.get(value.name, []):
        if user.opcode in TAKES and user.operands[0] == value.name:
            total += sum(a.bytes for a in user.arrays)
        elif user.opcode == "dynamic-update-slice" and user.operands[0] == value.name:
            continue  # updated in place
        elif user.opcode == "tuple" or '"AsyncCollective' in user.attributes or (
                user.opcode in KINDS and not starts):
            continue  # passed through
        elif user.opcode == "bitcast":
            total += _read(body, user, users, starts)
        else:
            return sum(a.bytes for a in value.arrays)
    return total
