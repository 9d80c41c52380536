"""What is printed and written about a compiled train step."""

import re
from typing import Any

import jax

from maxlm.analysis.collectives import totals
from maxlm.analysis.compiled_step import CompiledStep
from maxlm.models.counts import param_count

MFU_CONVENTION = ("model FLOPs / (predicted seconds x peak FLOP/s of the compute dtype); model "
                  "FLOPs are 6 per matmul parameter and token, plus attention of which causality "
                  "needs half; recomputation does not count")


def figures(step: CompiledStep) -> dict[str, Any]:
    """The figures as plain values; for one device and one step, in bytes, FLOPs and seconds."""
    config, target, memory, program = step.config, step.target, step.memory, step.program
    mesh = config.parallel.sizes(len(target.devices))
    result: dict[str, Any] = {
        "topology": target.name,
        "devices": len(target.devices),
        "mesh": mesh,
        "chip": target.chip.name,
        "compiler": target.compiler,
        "jax": jax.__version__,
        "parameters": param_count(config.model),
        "tokens": step.tokens,
        "fits": memory.fits,
        "hbm_bytes": memory.limit,
        "peak_bytes": memory.peak,
        "argument_bytes": memory.arguments,
        "temp_bytes": memory.temporary,
        "program_bytes": memory.code,
        "host_bytes": memory.host,
        "bytes_by_kind": memory.by_kind,
        "largest_buffers": [
            {"name": buffer.name, "kind": buffer.kind, "shape": buffer.shape,
             "bytes": buffer.bytes} for buffer in memory.largest[:10]],
        "refused": memory.refused,
        "model_flops": step.model_flops,
        "attention": step.attention,
        "compile_seconds": step.compile_seconds,
    }
    if program is None:
        return result
    flops = sum(program.matmul_flops.values())
    seconds = program.bounds.seconds
    peak = target.chip.rate("f32" if config.precision.compute == "float32" else "bf16")
    table = totals(program.collectives)
    return result | {
        "program_flops": flops,
        "recompute_share": max(0.0, 1 - step.model_flops / flops),
        "matmul_flops_by_precision": program.matmul_flops,
        "kernels": program.kernels,
        "uncounted_kernels": program.uncounted,
        "unknown_loops": len(program.unknown_loops),
        "bytes_moved": program.bytes_moved,
        "collectives": table,
        "collective_bytes_by_axis": {
            axes: sum(row["bytes"] for row in kinds.values()) for axes, kinds in table.items()},
        "compute_seconds": program.bounds.compute,
        "memory_seconds": program.bounds.memory,
        "communication_seconds": program.bounds.communication,
        "predicted_step_seconds": seconds,
        "bound": program.bounds.bound,
        "predicted_mfu": step.model_flops / (seconds * peak),
        "mfu_convention": MFU_CONVENTION,
        "peak_flops_per_second": peak,
        "tokens_per_second": step.tokens / seconds,
    }


def page(step: CompiledStep) -> str:
    """The text for the screen."""
    values = figures(step)
    memory = step.memory
    lines = [
        f"{step.target.name}: {values['devices']} {values['chip']}, mesh "
        + " x ".join(f"{axis} {size}" for axis, size in values["mesh"].items() if size > 1)
        + f"; compiled by {values['compiler']}, jax {values['jax']}, in "
        f"{values['compile_seconds']:.0f} s",
        f"model: {values['parameters'] / 1e9:.3g} billion parameters, {step.tokens:,} tokens a "
        "step",
        "",
        _verdict(step),
        "",
        "memory at the peak, one device",
    ]
    lines += _rows([(kind, f"{size:,}", _share(size, memory.limit))
                    for kind, size in memory.by_kind.items() if size]
                   + [("peak", f"{memory.peak:,}", _share(memory.peak, memory.limit)),
                      ("program code", f"{memory.code:,}", _share(memory.code, memory.limit)),
                      ("host", f"{memory.host:,}", "")])
    lines += ["", "largest buffers at the peak"]
    lines += _rows([(f"{buffer.bytes:,}", buffer.kind, buffer.shape, short(buffer.name))
                    for buffer in memory.largest[:10]])
    if step.program is None:
        return "\n".join(lines)
    program, bounds = step.program, step.program.bounds
    lines += ["", "work of a step, one device"]
    lines += _rows(
        [("model FLOPs", f"{values['model_flops']:.4e}"),
         ("program FLOPs (matmuls)", f"{values['program_flops']:.4e}"),
         ("beyond the model (recomputed)", f"{values['recompute_share']:.1%}")]
        + [(f"matmuls in {precision}", f"{flops:.4e}")
           for precision, flops in sorted(program.matmul_flops.items())]
        + [("bytes moved", f"{program.bytes_moved:.4e}"),
           ("attention", values["attention"])]
        + [(f"kernel {name}", f"{times:,} runs"
            + (", FLOPs not counted" if name in program.uncounted else ""))
           for name, times in sorted(program.kernels.items())])
    if program.unknown_loops:
        lines.append(f"  note: {len(program.unknown_loops)} loops of unknown length are counted "
                     "once")
    lines += ["", "collectives of a step, bytes that one device sends"]
    rows = [("mesh axis", "kind", "number", "runs", "bytes")]
    rows += [(axes, kind, f"{row['collectives']}", f"{row['runs']:,}", f"{row['bytes']:,}")
             for axes, kinds in sorted(values["collectives"].items())
             for kind, row in sorted(kinds.items())]
    lines += _rows(rows) if len(rows) > 1 else ["  none"]
    lines += ["", "predicted step: the longest of three bounds, each unit at its peak"]
    lines += _rows([(name, f"{seconds:.4g} s", "<- bound" if name == bounds.bound else "")
                    for name, seconds in (("compute", bounds.compute), ("memory", bounds.memory),
                                          ("communication", bounds.communication))])
    lines += _rows([("tokens/s, all devices", f"{values['tokens_per_second']:,.0f}"),
                    ("MFU at most", f"{values['predicted_mfu']:.1%}")])
    lines.append(f"  MFU is {MFU_CONVENTION}.")
    return "\n".join(lines)


def _verdict(step: CompiledStep) -> str:
    memory = step.memory
    if memory.fits:
        return (f"fits: {_gb(memory.peak + memory.code)} of {_gb(memory.limit)} a device, "
                f"{_gb(memory.limit - memory.peak - memory.code)} to spare")
    if memory.refused:
        return f"does not fit: {memory.refused}"
    return (f"does not fit: {_gb(memory.peak + memory.code)} a device where a program may use "
            f"{_gb(memory.limit)}, {_gb(memory.peak + memory.code - memory.limit)} too much")


def short(path: str) -> str:
    """A path of JAX operations without what every path has in common."""
    path = re.sub(r"\(rematted_computation[^()]*\)", "rematted_computation", path)
    path = path.removeprefix("jit(train_step)/")
    return re.sub(r"(?<![^/])(while/body|eval_jaxpr|checkpoint|vmap\(\))/", "", path)


def _rows(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))] if (
        rows) else []
    number = re.compile(r"[\d,.]+( s|%)?$")
    return ["  " + "  ".join(
        cell.rjust(width) if number.match(cell) else cell.ljust(width)
        for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _gb(size: float) -> str:
    return f"{size / 1e9:,.2f} GB"


def _share(size: int, whole: int) -> str:
    return f"{size / whole:.1%}"
