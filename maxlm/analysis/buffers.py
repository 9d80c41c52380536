"""Memory of a compiled program: its peak, and what is live at the peak.

`memory_analysis().temp_size_in_bytes` counts gaps of the heap, so the decision whether a program
fits uses `peak_memory_in_bytes`, which includes the arguments. What is live comes from the buffer
assignment and the live ranges that the compiler writes with the option `xla_dump_to`.
"""

import collections
import dataclasses
import re
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

from maxlm.analysis.hlo import Array, Computation, Instruction, Program, arrays

KINDS = ("parameters", "optimizer", "batch", "activations", "temporaries", "other")
DUMP_OPTIONS = {"xla_dump_hlo_as_text": True}


@dataclasses.dataclass(frozen=True)
class Buffer:
    """A part of the memory that is live at the peak.

    Attributes:
      kind: parameters, optimizer, batch, activations or temporaries.
      name: the path of an argument, or the JAX operation that writes it.
    """

    kind: str
    name: str
    bytes: int
    shape: str


@dataclasses.dataclass(frozen=True)
class _Value:
    name: str
    size: int
    offset: int
    array: Array | None


def buffers_at_peak(dump: Path, arguments: Mapping[str, int], program: Program,
                    weights: Set[tuple[int, ...]]) -> list[Buffer]:
    """The arguments, and what the temporary heap holds at the moment at which it holds most.

    Args:
      dump: the directory of `xla_dump_to`.
      arguments: path -> bytes of every argument.
      weights: sorted shapes of whole weights; a temporary of such a shape is a gathered weight or
        a gradient, no activation.

    Returns:
      The buffers, largest first. Values that share memory at that moment count once, under the
      name of the largest. Arguments only if the compiler wrote no live ranges.
    """
    found = [Buffer(argument_kind(path), path, size, "") for path, size in arguments.items()]
    assignment = _newest(dump, "*buffer-assignment.txt")
    ranges = _newest(dump, "*live-range.txt")
    if assignment and ranges:
        values = _most(_temporaries(assignment.read_text()), _ranges(ranges.read_text()))
        names = Names(program)
        for value, size in _placed(values):
            path = names.of(value.name)
            shape = f"{value.array.dtype}[{','.join(map(str, value.array.dims))}]" if (
                value.array) else ""
            weight = value.array and tuple(sorted(value.array.dims)) in weights
            found.append(Buffer(temporary_kind(path) if not weight else "temporaries", path, size,
                                shape))
    return sorted(found, key=lambda buffer: (-buffer.bytes, buffer.name))


class Names:
    """JAX operations of values, those carried by loops included."""

    def __init__(self, program: Program):
        self._scopes = {name: (computation, instruction)
                        for computation in program.computations.values()
                        for name, instruction in computation.instructions.items()}
        self._loops = {(loop.attribute("body") or "").lstrip("%"): (computation, loop)
                       for computation in program.computations.values()
                       for loop in computation.instructions.values() if loop.opcode == "while"}
        self._program = program

    def of(self, value: str) -> str:
        """The path of the operation that writes a value such as `fusion.3{}` or `while.2{7}`, or
        the instruction's own name."""
        found = re.match(r"([^{]+)(?:\{(\d*)[\d,]*\})?", value)
        if not found or found[1] not in self._scopes:
            return value
        computation, instruction = self._scopes[found[1]]
        index = int(found[2]) if found[2] else None
        return self._trace(computation, instruction, index, 0) or found[1]

    def _trace(self, computation: Computation, instruction: Instruction, index: int | None,
               depth: int) -> str:
        if depth > 20:
            return ""
        if instruction.opcode == "while" and index is not None:
            body = self._program.computations[(instruction.attribute("body") or "").lstrip("%")]
            return self._trace(body, body.root, index, depth + 1)
        if instruction.opcode == "parameter" and index is not None and (
                computation.name in self._loops):
            return self._trace(computation, computation.root, index, depth + 1) or (
                self._trace(*self._loops[computation.name], index, depth + 1))
        if instruction.opcode == "tuple" and index is not None:
            source = computation.operand(instruction, index)
            if source.opcode == "get-tuple-element" and (
                    computation.operand(source, 0).opcode == "parameter") and (
                    computation.name in self._loops):  # carried unchanged: its first value
                outer, loop = self._loops[computation.name]
                first = outer.instructions.get(loop.operands[0])
                return self._trace(outer, first, index, depth + 1) if first else ""
            return self._trace(computation, source, None, depth + 1)
        if instruction.opcode == "get-tuple-element":
            source = computation.operand(instruction, 0)
            return self._trace(computation, source, instruction.numbers("index")[0], depth + 1)
        if instruction.op_name and not instruction.op_name.endswith("/while"):
            return instruction.op_name
        if instruction.opcode == "fusion":
            inner = self._program.computations[instruction.called[0]]
            return self._trace(inner, inner.root, index, depth + 1)
        operands = computation.operands(instruction)
        if operands and instruction.opcode in (
                "copy", "bitcast", "copy-start", "copy-done", "convert", "reshape", "transpose",
                "slice", "slice-start", "slice-done"):
            return self._trace(computation, operands[0], None, depth + 1)
        if operands and "all-gather" in instruction.opcode:
            inner_name = self._trace(computation, operands[0], None, depth + 1)
            return f"all-gather of {inner_name}" if inner_name else ""
        return ""


def argument_kind(path: str) -> str:
    """The kind of an argument of the train step by its path in (state, batch)."""
    return {"params": "parameters", "opt_state": "optimizer"}.get(
        path.split("/")[1] if "/" in path else path, "batch" if path.startswith("batch") else
        "optimizer")


def _newest(dump: Path, pattern: str) -> Path | None:
    """The largest file: the train step, not a helper program."""
    return max(dump.rglob(pattern), key=lambda path: path.stat().st_size, default=None)


def _temporaries(text: str) -> list[_Value]:
    """Values of the preallocated temporary heap in main memory."""
    values, inside = [], False
    for line in text.splitlines():
        if line.startswith("allocation "):
            inside = "preallocated-temp" in line and not re.search(r"color [1-9]", line)
        elif inside and (found := re.match(
                r" *value: <\d+ (\S+)(?: \(phi\))? @\d+> \(size=(\d+),offset=(\d+)\): (.*)", line)):
            shapes = arrays(found[4])
            values.append(_Value(found[1], int(found[2]), int(found[3]),
                                 shapes[0] if len(shapes) == 1 else None))
    return values


def _ranges(text: str) -> dict[str, tuple[int, int]]:
    """value -> first and last instruction, in the schedule's order, at which it is live."""
    return {name.removesuffix("{}"): (int(first), int(last)) for name, first, last in
            re.findall(r"^ +(\S+\{[\d,]*\}):(\d+)-(\d+)$", text, re.MULTILINE)}


def _most(values: list[_Value], ranges: Mapping[str, tuple[int, int]]) -> list[_Value]:
    """The values that are live when those of the heap take most."""
    changes: dict[int, list[tuple[int, _Value]]] = collections.defaultdict(list)
    for value in values:
        if value.name in ranges:
            first, last = ranges[value.name]
            changes[first].append((1, value))
            changes[last + 1].append((-1, value))
    best: list[_Value] = []
    most, now = -1, set()
    for moment in sorted(changes):
        for sign, value in sorted(changes[moment], key=lambda change: change[0]):
            (now.add if sign > 0 else now.discard)(value)
        held = _covered(now)
        if held > most:
            most, best = held, list(now)
    return best


def _covered(values: set[_Value]) -> int:
    """Bytes of the union of the values' places in the heap."""
    total, end = 0, 0
    for start, stop in sorted((v.offset, v.offset + v.size) for v in values):
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total


def _placed(values: list[_Value]) -> Iterator[tuple[_Value, int]]:
    """Each value with the bytes of its place that no larger value has."""
    taken: list[tuple[int, int]] = []
    for value in sorted(values, key=lambda v: (-v.size, v.offset, v.name)):
        start, stop = value.offset, value.offset + value.size
        free = value.size - _covered({_Value("", min(stop, b) - max(start, a), max(start, a), None)
                                      for a, b in taken if min(stop, b) > max(start, a)})
        taken.append((start, stop))
        if free > 0:
            yield value, free


def temporary_kind(op_name: str) -> str:
    """Activations are what the forward pass of the model computes; the rest are temporaries:
    gathered weights, gradients, workspace of the optimizer."""
    forward = "jvp(" in op_name and "transpose(" not in op_name
    return "activations" if forward and "convert_element_type" not in op_name else "temporaries"
