"""FLOPs of the matmuls of a compiled program, by the precision of their operands.

A multiplication and an addition are two FLOPs. Only matmuls count (`dot`, `convolution`, and
kernels that state their cost); elementwise operations run on other units beside them.
"""

import collections
import functools
import json
import math
import re
from collections.abc import Iterable

from maxlm.analysis.hlo import ITEM_BITS, Computation, Instruction, Run

# Operands of matmuls; a kernel has tables of other types before them.
MATMUL_DTYPES = {name for name in ITEM_BITS if name.startswith(("f", "bf"))}


def by_precision(runs: Iterable[Run]) -> tuple[dict[str, float], list[str]]:
    """FLOPs of a step on one device.

    Returns:
      precision -> FLOPs, for example `bf16`, or `f32 highest` for operands with JAX's matmul
      precision `highest`; and the targets of custom calls that may multiply matrices but do not
      state their cost.
    """
    total: dict[str, float] = collections.defaultdict(float)
    unknown = set()
    for run in runs:
        instruction = run.instruction
        if instruction.opcode in ("dot", "convolution"):
            count = dot_flops if instruction.opcode == "dot" else convolution_flops
            total[_precision(run.computation, instruction)] += run.times * count(
                run.computation, instruction)
        elif instruction.opcode == "custom-call":
            flops = kernel_flops(run.computation, instruction)
            if flops is None:
                unknown.add(kernel_name(instruction))
            elif flops:
                total[_precision(run.computation, instruction)] += run.times * flops
    return dict(total), sorted(unknown)


def _precision(computation: Computation, instruction: Instruction) -> str:
    all_dtypes = [o.arrays[0].dtype for o in computation.operands(instruction) if o.arrays]
    dtypes = ([d for d in all_dtypes if d in MATMUL_DTYPES] or all_dtypes)[:2]
    name = dtypes[0] if len(set(dtypes)) == 1 else "x".join(dtypes)
    wanted = set((instruction.attribute("operand_precision") or "default").split(","))
    return name if wanted == {"default"} or "f32" not in name else f"{name} {wanted.pop()}"


def dot_flops(computation: Computation, dot: Instruction) -> int:
    left = computation.operand(dot, 0).arrays[0]
    inner = math.prod(left.dims[d] for d in dot.numbers("lhs_contracting_dims"))
    return 2 * dot.arrays[0].size * inner


def convolution_flops(computation: Computation, convolution: Instruction) -> int:
    """FLOPs of a convolution, multiplications with padding and holes left out.

    The TPU compiler writes matmuls as convolutions: a batch dimension becomes a spatial one with a
    stride and holes such that each output place has one input place.
    """
    left, right = (computation.operand(convolution, i).arrays[0] for i in (0, 1))
    out = convolution.arrays[0]
    found = re.search(r"dim_labels=(\w+)_(\w+)->(\w+)", convolution.attributes)
    assert found is not None, convolution.name
    in_labels, kernel_labels, out_labels = found.groups()
    window = _window(convolution.attributes)
    places = 1
    for spatial in sorted(set(in_labels) - {"b", "f"}):
        sides = {name: values[int(spatial)] for name, values in window.items()}
        places *= _pairs(left.dims[in_labels.index(spatial)], out.dims[out_labels.index(spatial)],
                         **sides)
    groups = (convolution.numbers("batch_group_count") or (1,))[0]
    return (2 * places * (left.dims[in_labels.index("b")] // groups)
            * right.dims[kernel_labels.index("i")] * right.dims[kernel_labels.index("o")])


def _window(attributes: str) -> dict[str, list]:
    """size, stride, pad, lhs_dilate, rhs_dilate of each spatial dimension."""
    found = re.search(r"window=\{([^}]*)\}", attributes)
    given = dict(word.split("=") for word in (found[1] if found else "").split())
    size = [int(n) for n in given.get("size", "").split("x") if n]

    def numbers(name: str, default: int) -> list[int]:
        return [int(n) for n in given[name].split("x")] if name in given else [default] * len(size)

    low = ([int(n.split("_")[0]) for n in given["pad"].split("x")] if "pad" in given
           else [0] * len(size))
    return {"size": size, "stride": numbers("stride", 1), "low": low,
            "base": numbers("lhs_dilate", 1), "dilate": numbers("rhs_dilate", 1)}


@functools.cache
def _pairs(length: int, outputs: int, size: int, stride: int, low: int, base: int,
           dilate: int) -> int:
    """How many (output place, window place) pairs meet an element of the input."""
    count = 0
    for window in range(size):
        # The place in the dilated input is output * stride + offset; elements are at multiples
        # of `base`, up to (length - 1) * base.
        offset = window * dilate - low
        first = max(0, -(offset // stride) if offset < 0 else 0)
        for output in range(first, outputs):
            place = output * stride + offset
            if place > (length - 1) * base:
                break
            count += place % base == 0
    return count


def kernel_name(call: Instruction) -> str:
    """The target of a custom call; for a Pallas kernel, the name of the kernel."""
    target = (call.attribute("custom_call_target") or call.name).strip('"')
    if target in ("tpu_custom_call", "__gpu$xla.gpu.triton", "mosaic_gpu_v2"):
        path = call.op_name.removesuffix("/pallas_call").split("/")
        return path[-1] if call.op_name.endswith("/pallas_call") else target
    return target


# Custom calls that multiply no matrices.
PLAIN = re.compile(r"Sharding|SPMD|AllocateBuffer|AssumeGather|AsyncCollective|TopK|RadixSort|"
                   r"annotate_device|MoveTo|Pin|LayoutConstraint|X64|topk|SliceToDynamic|"
                   r"PadToStatic|ConcatBitcast|[Bb]arrier")


def kernel_flops(computation: Computation, call: Instruction) -> float | None:
    """FLOPs of a custom call; 0 for one that multiplies no matrices, None if it does not say.

    A Pallas kernel may carry the `cost_estimate` of its author. Attention of cuDNN is counted by
    its shapes: two matmuls forward and five backward, half of each when the mask is causal.
    """
    target = kernel_name(call)
    if PLAIN.search(target):
        return 0.0
    stated = re.search(r'"cost_estimate":\{[^{}]*"flops":"?(-?\d+)', call.attributes)
    if stated and int(stated[1]) > 0:
        return float(stated[1])
    if target.startswith("splash_m"):
        return _splash_flops(computation, call, target)
    if "fmha" in target:
        return _attention_flops(computation, call, backward="Backward" in target)
    if "matmul" in target or "gemm" in target:
        return _library_matmul_flops(computation, call)
    return None


def _splash_flops(computation: Computation, call: Instruction, name: str) -> float | None:
    """Splash attention: query [..., T, K] and key [..., S, K] follow the tables of mask blocks.

    The program does not say which blocks the mask leaves out. A square table is taken as causal:
    the blocks on and below the diagonal. In a table that is not square, as that of a window, all.
    """
    shapes = [operand.arrays[0] for operand in computation.operands(call) if operand.arrays]
    tables = [a for a in shapes if a.dtype in ("s8", "s32") and len(a.dims) == 3]
    floats = [a for a in shapes if a.dtype in ("bf16", "f16", "f32") and len(a.dims) >= 3]
    if len(floats) < 3 or not tables:
        return None
    blocks, others = tables[0].dims[-2:]
    seen = (blocks + 1) / (2 * blocks) if blocks == others else 1.0
    fused = r'use_fused_bwd_kernel\": true' in call.attributes
    matmuls = 2 if "_fwd" in name else 3 if "_dq" in name else 5 if fused else 4
    return matmuls * 2 * floats[0].size * floats[1].dims[-2] * seen


def _library_matmul_flops(computation: Computation, call: Instruction) -> float | None:
    """cuBLAS: the contracted dimensions are in the backend's own attributes."""
    dims = re.search(r'"lhs_contracting_dimensions":\[([^\]]*)\]', call.attributes)
    if not dims:
        return None
    left = computation.operand(call, 0).arrays[0]
    inner = math.prod(left.dims[int(d)] for d in re.findall(r"\d+", dims[1]))
    return 2.0 * call.arrays[0].size * inner


def _attention_flops(computation: Computation, call: Instruction, backward: bool) -> float | None:
    """Query and key are [B, T, H, K] and [B, S, G, K], as JAX passes them to cuDNN."""
    found = re.search(r"backend_config=(\{.*\})", call.attributes)
    config = json.loads(found[1]) if found else {}
    mask = config.get("cudnn_fmha_backend_config", {}).get("mask_type", "")
    query, key = (computation.operand(call, i).arrays[0] for i in (0, 1))
    if len(query.dims) != 4 or len(key.dims) != 4:
        return None
    one = 2 * query.size * key.dims[1]
    return one * (5 if backward else 2) * (0.5 if "CAUSAL" in mask else 1.0)
