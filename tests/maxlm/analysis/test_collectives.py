"""Groups, axes and bytes of collectives, against hand-made examples of each notation."""

import pytest

from maxlm.analysis import collectives, hlo, traffic

MESH = {"data": 2, "stage": 1, "fsdp": 4, "tensor": 2}  # 16 devices


def found(attributes: str, opcode: str = "all-gather", shape: str = "bf16[8,16]{1,0}"):
    program = hlo.parse(f"""
HloModule m

ENTRY %main (x: bf16[8,16]) -> bf16[] {{
  %x = {shape} parameter(0)
  ROOT %c = {shape} {opcode}(%x), channel_id=1, {attributes}
}}
""")
    (one,) = collectives.collectives(program.runs, MESH)
    return one


@pytest.mark.parametrize("groups, axes, first", [
    ("{{0,2,4,6},{1,3,5,7},{8,10,12,14},{9,11,13,15}}", "fsdp", (0, 2, 4, 6)),
    ("[8,2]<=[16]", "tensor", (0, 1)),
    ("[8,2]<=[2,8]T(1,0)", "data", (0, 8)),
    ("[4,4]<=[2,4,2]T(0,2,1)", "fsdp", (0, 2, 4, 6)),
    ("[1,16]<=[16]", "data+fsdp+tensor", tuple(range(16))),
    ("[16,1]<=[16]", "none", (0,)),
    ("mesh['data'=2,'stage'=1,'fsdp'=4,'tensor'=2] {'fsdp'}", "fsdp", (0, 2, 4, 6)),
    ("mesh['axis_0'=2,'axis_1'=4,'axis_2'=2] {'axis_1','axis_2'}", "fsdp+tensor",
     tuple(range(8))),
    # Devices in another order: the first axis of 8 places is the third of the mesh.
    ("mesh['axis_0'=4,'axis_1'=1,'axis_2'=4], device_ids=([4,4]T(1,0)) {'axis_2'}", "data+fsdp",
     (0, 4, 8, 12)),
    ("mesh['axis_0'=2,'axis_1'=8], device_ids=([8,2]T(1,0)) {'axis_0'}", "tensor", (0, 1)),
    ("mesh['axis_0'=16] {'axis_0':(2)4}", "fsdp", (0, 2, 4, 6)),
    ("mesh['axis_0'=16] {'axis_0'}", "data+fsdp+tensor", tuple(range(16))),
    ("{}", "data+fsdp+tensor", tuple(range(16))),
])
def test_groups_and_axes(groups, axes, first):
    one = found(f"replica_groups={groups}, dimensions={{0}}")
    assert (one.axes, one.group) == (axes, first)


def test_a_notation_that_is_not_known_is_an_error():
    with pytest.raises(ValueError, match="unknown notation"):
        found("replica_groups=something[4]")


@pytest.mark.parametrize("opcode, expected", [
    ("all-gather", 3 * 256),  # 256 bytes of each of 4 devices: three others' worth is sent
    ("all-reduce", 2 * 256 * 3 // 4),
    ("reduce-scatter", 256 * 3 // 4),
    ("all-to-all", 256 * 3 // 4),
    ("all-gather-start", 3 * 256),
])
def test_bytes_that_a_device_sends(opcode, expected):
    one = found("replica_groups=[4,4]<=[2,4,2]T(0,2,1)", opcode)
    assert (one.bytes, one.kind) == (expected, opcode.removesuffix("-start"))
    assert one.asynchronous == opcode.endswith("-start")


def test_a_permute_sends_its_operand():
    one = found("source_target_pairs={{0,2},{2,4},{4,6},{6,0}}", "collective-permute")
    assert (one.bytes, one.axes) == (256, "fsdp")


FUSED = """
HloModule m

%start_body (a: bf16[4]) -> bf16[8] {{
  %a = bf16[4]{{0}} parameter(0)
  %ag.1 = bf16[8]{{0}} all-gather(%a), channel_id=5, replica_groups=[8,2]<=[16], dimensions={{0}}
  ROOT %cc = bf16[8]{{0}} custom-call(%ag.1), custom_call_target="AsyncCollectiveStart"
}}

%step_body (b: bf16[4]) -> bf16[8] {{
  %b = bf16[4]{{0}} parameter(0)
  ROOT %ag.2 = bf16[8]{{0}} all-gather(%b), channel_id=5, replica_groups=[8,2]<=[16]
}}

%body (p: (s32[], bf16[4])) -> (s32[], bf16[4]) {{
  %p = (s32[], bf16[4]{{0}}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x.1 = bf16[4]{{0}} get-tuple-element(%p), index=1
  %f.2 = bf16[8]{{0}} fusion(%x.1), kind=kOutput, calls=%step_body
  %next = s32[] add(%i, %one)
  %one = s32[] constant(1)
  ROOT %t = (s32[], bf16[4]{{0}}) tuple(%next, %x.1)
}}

%cond (p: (s32[], bf16[4])) -> pred[] {{
  %p.1 = (s32[], bf16[4]{{0}}) parameter(0)
  %i.1 = s32[] get-tuple-element(%p.1), index=0
  %n = s32[] constant(6)
  ROOT %lt = pred[] compare(%i.1, %n), direction=LT
}}

ENTRY %main (x: bf16[4]) -> bf16[4] {{
  %x = bf16[4]{{0}} parameter(0)
  %zero = s32[] constant(0)
  %f.1 = bf16[8]{{0}} fusion(%x), kind=kOutput, calls=%start_body
  %init = (s32[], bf16[4]{{0}}) tuple(%zero, %x)
  %w = (s32[], bf16[4]{{0}}) while(%init), condition=%cond, body=%body{more}
  ROOT %r = bf16[4]{{0}} get-tuple-element(%w), index=1
}}
"""


def test_copies_of_an_asynchronous_collective_count_once():
    """Its start is fused outside a loop, its steps beside the work of the loop."""
    program = hlo.parse(FUSED.format(more=""))
    (one,) = collectives.collectives(program.runs, MESH)
    assert (one.times, one.bytes, one.asynchronous) == (1, 8, True)
    assert collectives.totals([one]) == {
        "tensor": {"all-gather": {"collectives": 1, "runs": 1, "bytes": 8}}}
    # The operand is read once, where the collective starts; the loop's counter is 12 bytes a turn.
    assert traffic.bytes_moved(program, program.runs) == 8 + 6 * 12


def test_a_plain_collective_in_a_loop_counts_each_time():
    text = FUSED.format(more="").replace(
        "fusion(%x.1), kind=kOutput, calls=%step_body",
        "all-gather(%x.1), channel_id=9, replica_groups=[8,2]<=[16], dimensions={0}")
    start, step = collectives.collectives(hlo.parse(text).runs, MESH)
    assert sorted([start.times, step.times]) == [1, 6]
