"""Reads the text of a compiled XLA program (HLO): instructions, and how often each one runs.

XLA's own `cost_analysis()` counts the body of a loop once, whatever its trip count. Here every
instruction has the product of the trip counts of the loops around it.
"""

import dataclasses
import functools
import math
import re
from collections.abc import Iterator

ITEM_BITS = {
    "pred": 8, "s4": 4, "u4": 4, "s8": 8, "u8": 8, "s16": 16, "u16": 16, "s32": 32, "u32": 32,
    "s64": 64, "u64": 64, "f16": 16, "bf16": 16, "f32": 32, "f64": 64, "c64": 64, "c128": 128,
    "f8e4m3fn": 8, "f8e5m2": 8, "f8e4m3": 8, "f8e4m3fnuz": 8, "f8e5m2fnuz": 8, "f8e4m3b11fnuz": 8,
    "f8e3m4": 8, "f8e8m0fnu": 8, "f4e2m1fn": 4}


@dataclasses.dataclass(frozen=True)
class Array:
    """The shape of one array.

    Attributes:
      memory: XLA's memory space; 0 is the device's main memory.
    """

    dtype: str
    dims: tuple[int, ...]
    memory: int = 0

    @property
    def size(self) -> int:
        return math.prod(self.dims)

    @property
    def bytes(self) -> int:
        return self.size * ITEM_BITS.get(self.dtype, 0) // 8  # tokens and opaque handles: none


@dataclasses.dataclass(eq=False)
class Instruction:
    """One instruction.

    Attributes:
      arrays: the arrays of its result, tuples flattened.
      operands: names of the instructions that it reads; for a constant, its value.
      attributes: the rest of the line.
    """

    name: str
    opcode: str
    arrays: tuple[Array, ...]
    operands: tuple[str, ...]
    attributes: str
    root: bool

    def attribute(self, name: str) -> str | None:
        """The value of `name=...`: a word, or what stands between braces."""
        found = re.search(rf"(?<![\w]){name}=(\{{[^{{}}]*\}}|[^,\s]+)", self.attributes)
        return found[1].strip("{}") if found else None

    def numbers(self, name: str) -> tuple[int, ...]:
        return tuple(int(word) for word in re.findall(r"\d+", self.attribute(name) or ""))

    @functools.cached_property
    def called(self) -> tuple[str, ...]:
        """Names of the computations that it runs (not those of a reduction's scalar function)."""
        if self.opcode in ("fusion", "call", "async-start", "call-start", "custom-call") or (
                self.opcode.endswith("-start")):
            names = ("calls", "to_apply") if self.opcode in ("call", "call-start") else ("calls",)
            return tuple(c for name in names for c in self._computations(name))
        if self.opcode == "conditional":
            return tuple(self._computations("branch_computations")
                         + self._computations("true_computation")
                         + self._computations("false_computation"))
        return ()

    def _computations(self, name: str) -> list[str]:
        return [c.strip().lstrip("%") for c in (self.attribute(name) or "").split(",") if c]

    @property
    def op_name(self) -> str:
        """The path of the JAX operation that it comes from, if the program says so."""
        found = re.search(r'op_name="([^"]*)"', self.attributes)
        return found[1] if found else ""


@dataclasses.dataclass(eq=False)
class Computation:
    name: str
    instructions: dict[str, Instruction]

    @functools.cached_property
    def root(self) -> Instruction:
        return next(i for i in self.instructions.values() if i.root)

    def operand(self, instruction: Instruction, index: int) -> Instruction:
        return self.instructions[instruction.operands[index]]

    def operands(self, instruction: Instruction) -> list[Instruction]:
        return [self.instructions[name] for name in instruction.operands
                if name in self.instructions]


@dataclasses.dataclass(frozen=True)
class Run:
    """One instruction and how often a step runs it.

    Attributes:
      fused: it is part of a fusion, so its operands and results need not be in memory.
    """

    computation: Computation
    instruction: Instruction
    times: int
    fused: bool


@dataclasses.dataclass(eq=False)
class Program:
    """A parsed program.

    Attributes:
      unknown_loops: names of loops whose trip count the text does not show; counted once.
    """

    computations: dict[str, Computation]
    entry: str
    unknown_loops: list[str] = dataclasses.field(default_factory=list)

    @functools.cached_property
    def runs(self) -> list[Run]:
        """All instructions that a step runs, those of fusions and loops included."""
        return list(self._runs(self.entry, 1, False))

    def _runs(self, name: str, times: int, fused: bool) -> Iterator[Run]:
        computation = self.computations[name]
        for instruction in computation.instructions.values():
            yield Run(computation, instruction, times, fused)
            if instruction.opcode == "while":
                trips = self.trip_count(computation, instruction)
                if trips is None:
                    self.unknown_loops.append(instruction.name)
                    trips = 1
                body = instruction.attribute("body")
                assert body is not None
                yield from self._runs(body.lstrip("%"), times * trips, fused)
            for called in instruction.called:
                inside = instruction.opcode in ("fusion", "fusion-start")
                yield from self._runs(called, times, fused or inside)

    def trip_count(self, computation: Computation, loop: Instruction) -> int | None:
        """How often a `while` loop runs; None if its counter is not counted up to a constant.

        Reads `known_trip_count` where the program has it. Otherwise the condition is
        `compare(counter, limit), direction=LT`, and the counter starts at a constant and grows by
        a constant.
        """
        known = re.search(r'known_trip_count\W+n"?:"?(\d+)', loop.attributes)
        if known:
            return int(known[1])
        condition = self.computations[(loop.attribute("condition") or "").lstrip("%")]
        body = self.computations[(loop.attribute("body") or "").lstrip("%")]
        scope, compare = self._through_fusion(condition, condition.root)
        if compare.opcode != "compare" or compare.attribute("direction") != "LT":
            return None
        counter = self._loop_index(condition, scope, compare.operands[0])
        limit = self._value(scope, compare.operands[1])
        if limit is None:  # kept outside the loop and carried through it
            index = self._loop_index(condition, scope, compare.operands[1])
            limit = None if index is None else self._start(computation, loop, index)
        if counter is None or limit is None:
            return None
        start = self._start(computation, loop, counter)
        step = self._step(body, counter)
        if start is None or step is None or step <= 0:
            return None
        return max(0, -((start - limit) // step))

    def _through_fusion(self, computation: Computation, instruction: Instruction
                        ) -> tuple[Computation, Instruction]:
        while instruction.opcode == "fusion":
            computation = self.computations[instruction.called[0]]
            instruction = computation.root
        return computation, instruction

    def _loop_index(self, condition: Computation, scope: Computation, name: str) -> int | None:
        """The place in the loop's tuple that a value of its condition comes from."""
        instruction = scope.instructions[name]
        if instruction.opcode == "parameter" and scope is not condition:  # of the fused condition
            fusion = condition.root
            number = int(instruction.operands[0])
            return self._loop_index(condition, condition, fusion.operands[number])
        if instruction.opcode in ("copy", "bitcast", "convert"):
            return self._loop_index(condition, scope, instruction.operands[0])
        if instruction.opcode == "get-tuple-element":
            return instruction.numbers("index")[0]
        return None

    def _start(self, computation: Computation, loop: Instruction, index: int) -> int | None:
        values = computation.instructions[loop.operands[0]]
        if values.opcode != "tuple":
            return None
        return self._value(computation, values.operands[index])

    def _step(self, body: Computation, counter: int) -> int | None:
        if body.root.opcode != "tuple":
            return None
        return self._increase(body, body.root.operands[counter], counter)

    def _increase(self, scope: Computation, name: str, counter: int) -> int | None:
        """By how much a value exceeds the loop's counter."""
        instruction = scope.instructions[name]
        if instruction.opcode == "get-tuple-element":
            source = scope.operand(instruction, 0)
            return 0 if source.opcode == "parameter" and (
                instruction.numbers("index") == (counter,)) else None
        if instruction.opcode in ("copy", "bitcast"):
            return self._increase(scope, instruction.operands[0], counter)
        if instruction.opcode == "add":
            for this, other in (instruction.operands, instruction.operands[::-1]):
                amount = self._value(scope, other)
                rest = self._increase(scope, this, counter) if amount is not None else None
                if amount is not None and rest is not None:
                    return amount + rest
        if instruction.opcode == "fusion":  # a fused addition of a constant
            inner, root = self._through_fusion(scope, instruction)
            if root.opcode == "add":
                for this, other in (root.operands, root.operands[::-1]):
                    parameter, amount = inner.instructions[this], self._value(inner, other)
                    if amount is not None and parameter.opcode == "parameter":
                        rest = self._increase(
                            scope, instruction.operands[int(parameter.operands[0])], counter)
                        return None if rest is None else amount + rest
        return None

    def _value(self, scope: Computation, name: str) -> int | None:
        """The value of a constant integer."""
        instruction = scope.instructions[name]
        if instruction.opcode == "constant" and re.fullmatch(r"-?\d+", instruction.operands[0]):
            return int(instruction.operands[0])
        if instruction.opcode in ("copy", "bitcast", "convert", "reshape"):
            return self._value(scope, instruction.operands[0])
        if instruction.opcode == "copy-done":
            return self._value(scope, scope.operand(instruction, 0).operands[0])
        if instruction.opcode == "fusion":
            inner, root = self._through_fusion(scope, instruction)
            return self._value(inner, root.name)
        return None


ARRAY = re.compile(r"(\w+)\[([\d,<=]*)\](?:\{([^{}]*)\})?")


def arrays(text: str) -> tuple[Array, ...]:
    """The arrays of a shape such as `(f32[2,3]{1,0:T(8,128)S(1)}, s32[])`."""
    found = []
    for dtype, dims, layout in ARRAY.findall(text):
        memory = re.search(r"S\((\d+)\)", layout)
        found.append(Array(dtype, tuple(int(d.strip("<=")) for d in dims.split(",") if d),
                           int(memory[1]) if memory else 0))
    return tuple(found)


def _closing(text: str, start: int) -> int:
    """The place of the bracket that closes the one at `start`."""
    depth = 0
    for place in range(start, len(text)):
        if text[place] in "([{":
            depth += 1
        elif text[place] in ")]}":
            depth -= 1
            if not depth:
                return place
    raise ValueError(f"unbalanced brackets: {text[start:start + 80]}")


def _instruction(line: str) -> Instruction:
    left, _, rest = line.strip().partition(" = ")
    root = left.startswith("ROOT ")
    name = left.removeprefix("ROOT ").lstrip("%")
    rest = re.sub(r"/\*index=\d+\*/", "", rest)
    end = _closing(rest, 0) + 1 if rest[0] == "(" else rest.index(" ")
    shape, rest = rest[:end], rest[end:].lstrip()
    opening = rest.index("(")
    opcode, closing = rest[:opening], _closing(rest, opening)
    inside = rest[opening + 1:closing]
    if opcode in ("constant", "parameter"):
        operands = (inside.strip(),)
    else:  # `%name`, or `f32[2]{0} %name` where shapes are printed
        operands = tuple(re.findall(r"(?:^|[\s,(])%?([A-Za-z_][\w.\-]*)(?=\s*(?:,|$))", inside))
    return Instruction(name, opcode, arrays(shape), operands, rest[closing + 1:], root)


def _lines(text: str) -> Iterator[str]:
    """The lines, those joined over which one instruction extends (metadata of Pallas kernels)."""
    starts = re.compile(r"\s+(ROOT )?%?[\w.\-]+ = |\}(, execution_thread=.*)?$")
    inside, held = False, ""
    for line in text.splitlines():
        if inside and not starts.match(line):
            held += line
            continue
        if held:
            yield held
        held = ""
        if not inside:
            inside = line.endswith("{") and "->" in line
            yield line
        elif line.startswith("}"):
            inside = False
            yield line
        else:
            held = line


def parse(text: str) -> Program:
    """The program of `compiled.as_text()`."""
    computations: dict[str, Computation] = {}
    entry, current = "", None
    for line in _lines(text):
        if current is not None and line.startswith("}"):
            current = None
        elif current is not None:
            instruction = _instruction(line)
            current.instructions[instruction.name] = instruction
        elif line.endswith("{") and "->" in line:
            header = re.match(r"(ENTRY )?%?([\w.\-]+)", line)
            assert header is not None, line
            current = computations[header[2]] = Computation(header[2], {})
            if header[1]:
                entry = header[2]
    if not entry:
        raise ValueError("the text is not that of an HLO program: it has no ENTRY computation")
    return Program(computations, entry)
