"""Bytes moved, buffers at the peak, links and the roofline, on examples computed by hand."""

import types

import pytest

from maxlm.analysis import buffers, hlo, traffic
from maxlm.analysis.chips import GPUS, TPUS
from maxlm.analysis.collectives import Collective
from maxlm.analysis.roofline import bandwidth, roofline, torus

MOVES = """
HloModule m

%scale (p0: f32[8,100], p1: s32[]) -> f32[100] {
  %p0 = f32[8,100]{1,0} parameter(0)
  %p1 = s32[] parameter(1)
  %z = s32[] constant(0)
  %row = f32[1,100]{1,0} dynamic-slice(%p0, %p1, %z), dynamic_slice_sizes={1,100}
  ROOT %flat = f32[100]{0} bitcast(%row)
}

%store (q0: f32[8,100], q1: f32[1,100], q2: s32[]) -> f32[8,100] {
  %q0 = f32[8,100]{1,0} parameter(0)
  %q1 = f32[1,100]{1,0} parameter(1)
  %q2 = s32[] parameter(2)
  %z.1 = s32[] constant(0)
  ROOT %dus = f32[8,100]{1,0} dynamic-update-slice(%q0, %q1, %q2, %z.1)
}

ENTRY %main (a: f32[8,100], i: s32[]) -> f32[8,100] {
  %a = f32[8,100]{1,0} parameter(0)
  %i = s32[] parameter(1)
  %row.1 = f32[100]{0} fusion(%a, %i), kind=kLoop, calls=%scale
  %fast = f32[100]{0:S(1)} negate(%row.1)
  %start = (f32[100]{0}, f32[100]{0:S(1)}, u32[]) copy-start(%fast)
  %done = f32[100]{0} copy-done(%start)
  %wide = f32[1,100]{1,0} bitcast(%done)
  ROOT %out = f32[8,100]{1,0} fusion(%a, %wide, %i), kind=kLoop, calls=%store
}
"""


def test_bytes_moved():
    program = hlo.parse(MOVES)
    # row.1 reads one row and the index and writes a row; negate reads a row, its result stays on
    # the chip; the copy writes it; out reads it and the index and writes one row in place.
    assert traffic.bytes_moved(program, program.runs) == (
        (400 + 4 + 400) + 400 + 400 + (400 + 4 + 400))


def test_an_asynchronous_fusion_counts_like_any_other():
    text = MOVES.replace(
        "%row.1 = f32[100]{0} fusion(%a, %i), kind=kLoop, calls=%scale",
        "%begin = ((f32[8,100]{1,0}, s32[]), f32[100]{0}) fusion-start(%a, %i), calls=%scale\n"
        "  %row.1 = f32[100]{0} fusion-done(%begin)")
    program, plain = hlo.parse(text), hlo.parse(MOVES)
    assert traffic.bytes_moved(program, program.runs) == traffic.bytes_moved(plain, plain.runs)


ASSIGNMENT = """BufferAssignment:
allocation 0: size 400, page 0, parameter 0, shape |f32[100]| at ShapeIndex {}:
 value: <1 a @0> (size=400,offset=0): f32[100]{0}
allocation 1: size 1000, page 0, preallocated-temp:
 value: <2 x @0> (size=400,offset=0): f32[100]{0}
 value: <3 y @0> (size=300,offset=400): f32[75]{0}
 value: <4 z{1} (phi) @0> (size=200,offset=0): f32[10,5]{1,0}
 value: <7 brief @0> (size=100,offset=200): f32[25]{0}
 value: <5 late @0> (size=600,offset=400): f32[150]{0}
allocation 2: size 9999, color 1, page 0, preallocated-temp:
 value: <6 on.chip @0> (size=9999,offset=0): f32[2500]{0:S(1)}
"""
RANGES = """HloLiveRange (max 9):
  InstructionSequence:
    0:a
  BufferLiveRange:
    a{}:0-9
    x{}:1-3
    y{}:2-4
    z{1}:4-8
    late{}:6-8
    brief{}:4-6
    on.chip{}:0-9
"""
NAMED = """
HloModule m

%body (p: (s32[], f32[10,5])) -> (s32[], f32[10,5]) {
  %p = (s32[], f32[10,5]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %g = f32[10,5]{1,0} get-tuple-element(%p), index=1
  %sum = f32[10,5]{1,0} add(%g, %g), metadata={op_name="jit(train_step)/while/body/add_any"}
  ROOT %t = (s32[], f32[10,5]{1,0}) tuple(%i, %sum)
}

%cond (q: (s32[], f32[10,5])) -> pred[] {
  %q = (s32[], f32[10,5]{1,0}) parameter(0)
  ROOT %c = pred[] constant(false)
}

ENTRY %main (a: f32[100]) -> f32[150] {
  %a = f32[100]{0} parameter(0)
  %x = f32[100]{0} exponential(%a), metadata={op_name="jit(train_step)/jvp()/exp"}
  %y = f32[75]{0} slice(%x), metadata={op_name="jit(train_step)/transpose(jvp())/mul"}
  %init = (s32[], f32[10,5]{1,0}) custom-call(%y), custom_call_target="made"
  %z = (s32[], f32[10,5]{1,0}) while(%init), condition=%cond, body=%body
  ROOT %late = f32[150]{0} copy(%x)
}
"""


def test_buffers_at_the_peak(tmp_path):
    """x and y together take 700 bytes; z, late and brief 900, as brief still lives when late is
    written."""
    (tmp_path / "m-buffer-assignment.txt").write_text(ASSIGNMENT)
    (tmp_path / "m-live-range.txt").write_text(RANGES)
    found = buffers.buffers_at_peak(tmp_path, {"state/params/w": 400}, hlo.parse(NAMED), {(5, 10)})
    assert [(b.bytes, b.kind, b.name, b.shape) for b in found] == [
        (600, "activations", "jit(train_step)/jvp()/exp", "f32[150]"),
        (400, "parameters", "state/params/w", ""),
        (200, "temporaries", "jit(train_step)/while/body/add_any", "f32[10,5]"),
        (100, "temporaries", "brief", "f32[25]")]


@pytest.mark.parametrize("path, kind", [
    ("state/params/head", "parameters"), ("state/opt_state/0/mu/head", "optimizer"),
    ("state/step", "optimizer"), ("batch/tokens", "batch")])
def test_kinds_of_arguments(path, kind):
    assert buffers.argument_kind(path) == kind


def tpus(*shape):
    return [types.SimpleNamespace(coords=(x, y, z), process_index=0) for z in range(shape[2])
            for y in range(shape[1]) for x in range(shape[0])]


def test_links_of_a_torus():
    v5p, v5e = TPUS["v5p"], TPUS["v5e"]
    assert (v5p.link, v5e.link) == (100e9, 50e9)  # 1200 GB/s of 6 ports, 400 of 4, both ways
    cube = tpus(4, 4, 4)
    assert torus(cube) == [4, 4, 4]
    assert bandwidth(v5p, cube, torus(cube)) == 6 * v5p.link  # three rings of two directions
    assert bandwidth(v5p, cube[:4], torus(cube)) == 2 * v5p.link
    half = tpus(2, 4, 4)  # v5p connects no ends unless all three sizes are multiples of 4
    assert bandwidth(v5p, half, torus(half)) == 3 * v5p.link
    square = tpus(4, 4, 1)  # v5e connects the ends of 16
    assert bandwidth(v5e, square, torus(square)) == 2 * v5e.link
    pod = tpus(16, 16, 1)
    assert bandwidth(v5e, pod, torus(pod)) == 4 * v5e.link


def test_links_of_gpus():
    h100 = GPUS["h100"]
    here, there = (types.SimpleNamespace(process_index=host) for host in (0, 1))
    assert bandwidth(h100, [here, here], []) == 450e9
    assert bandwidth(h100, [here, there], []) == 50e9


def test_roofline():
    devices = tpus(4, 4, 4)
    gather = Collective("all-gather", "fsdp", tuple(range(64)), 300_000_000, 2, False, "")
    bounds = roofline(TPUS["v5p"], {"bf16": 459e12 / 10, "f32 highest": 459e12 / 60}, 2765e9 / 20,
                      [gather], devices)
    assert bounds.compute == pytest.approx(0.1 + 6 / 60)
    assert bounds.memory == pytest.approx(0.05)
    assert bounds.communication == pytest.approx(600e6 / 600e9)
    assert (bounds.bound, bounds.seconds) == ("compute", bounds.compute)


@pytest.mark.parametrize("chip, precision, rate", [
    (TPUS["v5p"], "bf16", 459e12), (TPUS["v5p"], "f32", 459e12), (TPUS["v5p"], "f32 high", 153e12),
    (TPUS["v5e"], "s8", 393e12), (TPUS["v6e"], "f8e4m3fn", 918e12),
    (GPUS["h100"], "f32", 494.7e12), (GPUS["h100"], "f32 highest", 66.9e12),
    (GPUS["h100"], "f8e4m3fnxf8e5m2", 1978.9e12), (GPUS["a100-80gb"], "f8e4m3fn", 312e12)])
def test_rates_of_matmuls(chip, precision, rate):
    assert chip.rate(precision) == pytest.approx(rate)
