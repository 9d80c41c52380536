"""Trip counts and structure, on small HLO texts in the compiler's own form."""

import pytest

from maxlm.analysis import hlo

NESTED = """
HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

%inner_body (p: (s32[], f32[4])) -> (s32[], f32[4]) {
  %p.1 = (s32[], f32[4]{0}) parameter(0)
  %i.1 = s32[] get-tuple-element(%p.1), index=0
  %two = s32[] constant(2)
  %next.1 = s32[] add(%i.1, %two)
  %x.1 = f32[4]{0} get-tuple-element(%p.1), index=1
  %y.1 = f32[4]{0} add(%x.1, %x.1), metadata={op_name="jit(f)/while/body/while/body/add"}
  ROOT %t.1 = (s32[], f32[4]{0}) tuple(%next.1, %y.1)
}

%inner_cond (p: (s32[], f32[4])) -> pred[] {
  %p.2 = (s32[], f32[4]{0}) parameter(0)
  %i.2 = s32[] get-tuple-element(%p.2), index=0
  %limit.2 = s32[] constant(9)
  ROOT %lt.2 = pred[] compare(%i.2, %limit.2), direction=LT
}

%compare_body (param_0: s32[], param_1: s32[]) -> pred[] {
  %param_0 = s32[] parameter(0)
  %param_1 = s32[] parameter(1)
  ROOT %lt.3 = pred[] compare(%param_0, %param_1), direction=LT
}

%outer_body (p: (s32[], f32[4], s32[])) -> (s32[], f32[4], s32[]) {
  %p.4 = (s32[], f32[4]{0}, s32[]) parameter(0)
  %i.4 = s32[] get-tuple-element(%p.4), index=0
  %one = s32[] constant(1)
  %next.4 = s32[] add(%one, %i.4)
  %x.4 = f32[4]{0} get-tuple-element(%p.4), index=1
  %zero.4 = s32[] constant(1)
  %init.4 = (s32[], f32[4]{0}) tuple(%zero.4, %x.4)
  %while.4 = (s32[], f32[4]{0}) while(%init.4), condition=%inner_cond, body=%inner_body
  %y.4 = f32[4]{0} get-tuple-element(%while.4), index=1
  %limit.4 = s32[] get-tuple-element(%p.4), index=2
  ROOT %t.4 = (s32[], f32[4]{0}, s32[]) tuple(%next.4, %y.4, %limit.4)
}

%outer_cond (p: (s32[], f32[4], s32[])) -> pred[] {
  %p.5 = (s32[], f32[4]{0}, s32[]) parameter(0)
  %i.5 = s32[] get-tuple-element(%p.5), index=0
  %limit.5 = s32[] get-tuple-element(%p.5), index=2
  ROOT %fused = pred[] fusion(%i.5, %limit.5), kind=kLoop, calls=%compare_body
}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0:T(256)S(1)} parameter(0), sharding={replicated}
  %start = s32[] constant(0)
  %limit = s32[] constant(3)
  %init = (s32[], f32[4]{0}, s32[], /*index=3*/s32[]) tuple(%start, %x, %limit)
  %while = (s32[], f32[4]{0}, s32[]) while(%init), condition=%outer_cond, body=%outer_body
  ROOT %result = f32[4]{0} get-tuple-element(%while), index=1
}
"""


def runs(program):
    return {run.instruction.name: run.times for run in program.runs}


def test_trip_counts_multiply_in_nested_loops():
    # The inner loop runs from 1 to below 9 by 2: 4 times. The limit of the outer one is carried
    # through the loop and compared inside a fusion: 3 times.
    program = hlo.parse(NESTED)
    times = runs(program)
    assert (times["while"], times["while.4"], times["y.1"]) == (1, 3, 12)
    assert program.unknown_loops == []


@pytest.mark.parametrize("change, trips", [
    (("constant(9)", "constant(10)"), 5),  # 1, 3, 5, 7, 9
    (("%two = s32[] constant(2)", "%two = s32[] constant(8)"), 1),
    (("body=%inner_body\n",
      'body=%inner_body, backend_config={"known_trip_count":{"n":"7"}}\n'), 7),
])
def test_start_limit_and_step_of_a_loop(change, trips):
    assert runs(hlo.parse(NESTED.replace(*change)))["y.1"] == 3 * trips


def test_a_loop_that_does_not_count_up_is_unknown_and_counts_once():
    program = hlo.parse(NESTED.replace("%limit.2), direction=LT", "%limit.2), direction=NE"))
    assert runs(program)["y.1"] == 3
    assert program.unknown_loops == ["while.4"] * 1


def test_shapes_and_attributes():
    instruction = hlo.parse(NESTED).computations["main"].instructions["init"]
    assert [array.dims for array in instruction.arrays] == [(), (4,), (), ()]
    assert instruction.operands == ("start", "x", "limit")
    x = hlo.parse(NESTED).computations["main"].instructions["x"]
    assert (x.arrays[0].bytes, x.arrays[0].memory) == (16, 1)
    assert hlo.arrays("(f8e4m3fn[8,2]{1,0}, s4[6]{0}, pred[])") == (
        hlo.Array("f8e4m3fn", (8, 2)), hlo.Array("s4", (6,)), hlo.Array("pred", ()))
    assert hlo.Array("s4", (6,)).bytes == 3


def test_a_text_that_is_no_program():
    with pytest.raises(ValueError, match="no ENTRY"):
        hlo.parse("HloModule empty\n")
