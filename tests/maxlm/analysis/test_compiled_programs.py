"""Small programs compiled for real chips, whose FLOPs, collectives and memory are known by hand."""

import importlib.metadata

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from maxlm.analysis import buffers, collectives, flops, hlo, targets

P = PartitionSpec
MIB = 2**20


def installed(package: str) -> bool:
    try:
        return bool(importlib.metadata.version(package))
    except importlib.metadata.PackageNotFoundError:
        return False


TOPOLOGIES = [
    pytest.param(name, marks=pytest.mark.skipif(not installed(package), reason=f"no {package}"))
    for name, package in (("v5e:2x4", "libtpu"), ("v5p:2x2x2", "libtpu"),
                          ("h100x8", "jax-cuda12-pjrt"))]


@pytest.fixture(scope="module", params=TOPOLOGIES)
def mesh(request) -> Mesh:
    """data 2 x fsdp 4."""
    devices = np.array(targets.find(request.param).devices).reshape(2, 4)
    return Mesh(devices, ("data", "fsdp"), axis_types=(AxisType.Auto,) * 2)


def compiled(mesh, function, *arguments, out=None, dump=None):
    """The parsed program of a function of abstract arrays (shape, dtype, mesh axes)."""
    abstract = [jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*axes)))
                for shape, dtype, *axes in arguments]
    out = None if out is None else NamedSharding(mesh, P(*out))
    options = buffers.DUMP_OPTIONS | {"xla_dump_to": str(dump)} if dump else None
    program = jax.jit(function, out_shardings=out).lower(*abstract).compile(
        compiler_options=options)
    return hlo.parse(program.as_text()), program


def sent(program, mesh):
    return [(c.kind, c.axes, c.bytes, c.times)
            for c in collectives.collectives(program.runs, mesh.shape)]


def test_all_gather_of_a_known_array(mesh):
    """4 MiB split over 4 devices: each sends its MiB three times around the ring."""
    program, _ = compiled(mesh, lambda x: x * 2, ((1024, 1024), "float32", "fsdp"), out=())
    assert sent(program, mesh) == [("all-gather", "fsdp", 3 * MIB, 1)]


def test_all_reduce_of_a_known_array(mesh):
    """16 KiB summed over 4 devices: 3/4 of it sent twice."""
    program, _ = compiled(mesh, lambda x: x.sum(0), ((512, 4096), "float32", "fsdp"), out=())
    assert sent(program, mesh) == [("all-reduce", "fsdp", 2 * 16384 * 3 // 4, 1)]


def test_ring_of_known_length(mesh):
    """Five hops of the 2 MiB that a device holds."""
    def ring(x):
        def hop(_, carry):
            x, total = carry
            x = jax.lax.ppermute(x, "fsdp", [(i, (i + 1) % 4) for i in range(4)])
            return x, total + x * x
        return jax.lax.fori_loop(0, 5, hop, (x, jnp.zeros_like(x)))[1]

    split = jax.shard_map(ring, mesh=mesh, in_specs=P("fsdp"), out_specs=P("fsdp"),
                          check_vma=False)
    program, _ = compiled(mesh, split, ((512, 4096), "float32", "fsdp"))
    assert sent(program, mesh) == [("collective-permute", "fsdp", 2 * MIB, 5)]


def test_reduce_scatter_in_a_loop_of_known_length(mesh):
    """4 MiB over 4 devices, seven times; and seven matmuls of 1024 x 1024 x 1024."""
    def scatter(x):
        def add(total, w):
            part = jax.lax.psum_scatter(jnp.dot(w, w, preferred_element_type=jnp.float32), "fsdp",
                                        scatter_dimension=0, tiled=True)
            return jnp.tanh(total + part), None  # not linear, so the sum stays inside
        return jax.lax.scan(add, jnp.zeros((256, 1024), jnp.float32), x)[0]

    split = jax.shard_map(scatter, mesh=mesh, in_specs=P(), out_specs=P("fsdp"), check_vma=False)
    program, _ = compiled(mesh, split, ((7, 1024, 1024), "bfloat16"))
    (kind, axes, size, times), = sent(program, mesh)
    assert (axes, times) == ("fsdp", 7)
    # v5p may write it as an all-reduce, of which every device keeps its part.
    assert (kind, size) in (("reduce-scatter", 3 * MIB), ("all-reduce", 6 * MIB))
    assert flops.by_precision(program.runs) == ({"bf16": 7 * 2 * 1024**3}, [])


@pytest.mark.parametrize("layers", [2, 6])
def test_flops_of_a_scanned_stack_grow_with_its_layers(mesh, layers):
    program, _ = compiled(mesh, lambda x, w: jax.lax.scan(lambda x, w: (x @ w, None), x, w)[0],
                          ((256, 512), "bfloat16"), ((layers, 512, 512), "bfloat16"))
    assert flops.by_precision(program.runs) == ({"bf16": layers * 2 * 256 * 512 * 512}, [])


def test_buffers_at_the_peak_of_a_known_program(mesh, tmp_path):
    """Eight arrays of 64 MiB are stacked by one loop and read backwards by another."""
    def function(x):
        def forward(x, _):
            x = jnp.sin(x)
            return x, x
        x, kept = jax.lax.scan(forward, x, length=8)
        return jax.lax.scan(lambda y, k: (jnp.cos(y) * k, None), x, kept, reverse=True)[0]

    program, executable = compiled(mesh, function, ((4096, 4096), "float32"), dump=tmp_path)
    found = buffers.buffers_at_peak(tmp_path, {"state/params/x": 64 * MIB}, program, set())
    assert (found[0].bytes, found[0].shape) == (8 * 64 * MIB, "f32[8,4096,4096]")
    peak = executable.memory_analysis().peak_memory_in_bytes
    assert 9 * 64 * MIB <= sum(buffer.bytes for buffer in found) <= peak
