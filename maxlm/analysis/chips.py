"""Published figures of accelerators: speed of matmuls, memory, links.

All figures are of one JAX device: a chip, but a core (half a chip) on TPU v4 as libtpu lays out its
topologies, and on TPU7x. TPU: the tables of https://cloud.google.com/tpu/docs/{v4,v5e,v5p,v6e,tpu7x}
and, for the memory that a program may use, the limit that libtpu 0.0.52 reports. GPU: NVIDIA's data
sheets of the SXM boards (dense rates, without sparsity); memory sizes, cores and clocks for the
compiler are those that the CUDA driver reports, as in the target configurations of XLA
(https://github.com/openxla/xla, xla/backends/gpu/target_config/specs).
"""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

T, G, GIB = 1e12, 1e9, 2**30


@dataclasses.dataclass(frozen=True)
class Chip:
    """One device.

    Attributes:
      peak: FLOP/s of matmuls by the dtype of the operands, dense.
      memory: bytes that a program may use.
      memory_bandwidth: bytes/s of the main memory.
      link: bytes/s that a TPU sends through one port of the interconnect (ICI), or a GPU into
        NVLink; each way, so half of the "bidirectional" figure of a data sheet.
      network: bytes/s that a device sends to another slice (TPU) or host (GPU).
      kind: "tpu" or "gpu".
      cube: TPU with a torus of three dimensions: all are rings in slices whose three sizes are
        multiples of it; 0 elsewhere.
      ring: TPU with a torus of two dimensions: a dimension of this size is a ring; 0 elsewhere.
      source: of the figures that the module's text does not name.
    """

    name: str
    kind: str
    peak: Mapping[str, float]
    memory: int
    memory_bandwidth: float
    link: float
    network: float
    source: str
    cube: int = 0
    ring: int = 0

    def rings(self, shape: Sequence[int]) -> list[bool]:
        """Whether each dimension of a slice of this shape is a ring: its ends are connected.

        The rule gives the `wrap` of every TPU slice in MaxText 0.2.5's table of topologies
        (https://github.com/AI-Hypercomputer/maxtext, accelerator_to_spec_map.py).
        """
        if self.cube:
            return [all(size % self.cube == 0 for size in shape)] * len(shape)
        return [size == self.ring for size in shape]

    def rate(self, precision: str) -> float:
        """FLOP/s for a precision of `maxlm.analysis.flops`.

        A TPU multiplies float32 in one pass of bfloat16 by default, in 3 for `high` and in 6 for
        `highest`. A GPU uses TF32 by default, and its float32 units for `highest`.
        """
        dtype, _, wanted = precision.partition(" ")
        dtype = dtype.partition("x")[0]
        dtype = "f8" if dtype.startswith("f8") else dtype
        if dtype == "f32":
            if self.kind == "tpu":
                return self.peak["bf16"] / {"": 1, "default": 1, "high": 3, "highest": 6}[wanted]
            return self.peak["f32" if wanted == "highest" else "tf32"]
        if dtype == "f8" and "f8" not in self.peak:
            return self.peak["bf16"]
        return self.peak["bf16" if dtype in ("f16", "bf16") else dtype]


def _tpu(name: str, bf16: float, memory_gib: float, bandwidth: float, ici: float, ports: int,
         network: float, f8: float | None = None, s8: float | None = None,
         source: str = "") -> Chip:
    """ici: the published bidirectional GB/s of all ports, two for each dimension of the torus;
    network in Gbit/s."""
    rings = (4, 0) if ports == 6 else (0, 16)
    peak = {"bf16": bf16 * T, "f8": (f8 or bf16) * T, "s8": (s8 or bf16) * T}
    return Chip(name, "tpu", peak, int(memory_gib * GIB), bandwidth * G, ici * G / ports / 2,
                network * G / 8, source, *rings)


TPUS = {chip.name: chip for chip in (
    _tpu("v4", 275 / 2, 15.25, 1228 / 2, 600, 6, 25 / 2,
         source="275 TFLOP/s and 1228 GB/s a chip of two cores; links arXiv:2304.01433 "
         "(6 of 50 GB/s each way); network 25 Gbit/s a chip"),
    _tpu("v5e", 197, 15.75, 819, 400, 4, 25, s8=393,
         source="network: 6.4 Tbit/s a pod of 256"),
    _tpu("v5p", 459, 95.73, 2765, 1200, 6, 50, s8=918),
    _tpu("v6e", 918, 31.24, 1638, 800, 4, 100, s8=1836,
         source="network: 4 x 200 Gbit/s a host of 8"),
    _tpu("tpu7x", 2307 / 2, 94.74, 7380 / 2, 1200, 6, 100 / 2, f8=4614 / 2,
         source="2307 TFLOP/s, 4614 in fp8, 7380 GB/s a chip of two cores"),
)}

# The part of a GPU's memory that JAX gives to XLA; the same default as JAX's.
GPU_MEMORY_FRACTION = float(os.environ.get("XLA_PYTHON_CLIENT_MEM_FRACTION") or 0.75)


@dataclasses.dataclass(frozen=True)
class Gpu(Chip):
    """A GPU, with what the compiler must know of it."""

    capability: tuple[int, int] = (0, 0)
    cores: int = 0
    fpus: int = 128
    clock: float = 0.0
    l2_cache: int = 0
    shared_memory: int = 0
    device_memory: int = 0

    def target_config(self) -> str:
        """The text form of XLA's GpuTargetConfigProto."""
        return f"""
gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: {self.shared_memory}
  shared_memory_per_block_optin: {self.shared_memory - 1024}
  threads_per_core_limit: 2048
  core_count: {self.cores}
  fpus_per_core: {self.fpus}
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  thread_dim_limit_x: 1024
  thread_dim_limit_y: 1024
  thread_dim_limit_z: 64
  memory_bandwidth: {int(self.memory_bandwidth)}
  l2_cache_size: {self.l2_cache}
  clock_rate_ghz: {self.clock}
  device_memory_size: {self.device_memory}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  cuda_compute_capability {{ major: {self.capability[0]} minor: {self.capability[1]} }}
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 10 }}
device_description_str: "{self.name}"
"""


def _gpu(name: str, peak: dict[str, float], device_memory: int, bandwidth: float, nvlink: float,
         network: float, source: str, **compiler: Any) -> Gpu:
    return Gpu(name, "gpu", {dtype: rate * T for dtype, rate in peak.items()},
               int(device_memory * GPU_MEMORY_FRACTION), bandwidth, nvlink * G / 2,
               network * G / 8, source, device_memory=device_memory, **compiler)


_AMPERE = {"bf16": 312, "tf32": 156, "f32": 19.5, "s8": 624}
_HOPPER = {"bf16": 989.4, "f8": 1978.9, "tf32": 494.7, "f32": 66.9, "s8": 1978.9}
_BLACKWELL = {"bf16": 2250.0, "f8": 4500.0, "tf32": 1125.0, "f32": 75.0, "s8": 4500.0}
_A100_COMPILER = {"capability": (8, 0), "cores": 108, "fpus": 64, "clock": 1.41,
                  "l2_cache": 41943040, "shared_memory": 167936}
_H100_COMPILER = {"capability": (9, 0), "cores": 132, "clock": 1.98, "l2_cache": 52428800,
                  "shared_memory": 233472}

GPUS = {chip.name: chip for chip in (
    _gpu("a100-40gb", _AMPERE, 42331013120, 1.5552e12, 600, 200,
         "DGX A100: NVLink 600 GB/s, one 200 Gbit/s adapter a GPU", **_A100_COMPILER),
    _gpu("a100-80gb", _AMPERE, 85100068864, 2.03904e12, 600, 200,
         "DGX A100: NVLink 600 GB/s, one 200 Gbit/s adapter a GPU", **_A100_COMPILER),
    _gpu("h100", _HOPPER, 84942979072, 3.35232e12, 900, 400,
         "DGX H100: NVLink 900 GB/s, one 400 Gbit/s adapter a GPU", **_H100_COMPILER),
    _gpu("h200", _HOPPER, 151397597184, 4.8e12, 900, 400,
         "DGX H200: NVLink 900 GB/s, one 400 Gbit/s adapter a GPU", **_H100_COMPILER),
    _gpu("b200", _BLACKWELL, 191514411008, 7.67232e12, 1800, 400,
         "DGX B200: NVLink 1800 GB/s, one 400 Gbit/s adapter a GPU", capability=(10, 0),
         cores=148, clock=1.965, l2_cache=132644864, shared_memory=233472),
)}
