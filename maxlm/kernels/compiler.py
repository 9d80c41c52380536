"""Compiler options that the train step is compiled with, by platform and dtype."""

import functools
from typing import Any

import jax
from jax.sharding import Mesh

from maxlm.config.trainer import PrecisionConfig

# YNNPACK's fused dots are what makes bfloat16 fast on CPU; in float32 plain dots are up to 10 %
# faster, and their buffers smaller (docs/benchmarks.md).
WITHOUT_YNNPACK = ("xla_cpu_experimental_ynn_fusion_type", "")


def compiler_options(precision: PrecisionConfig, mesh: Mesh) -> dict[str, Any]:
    """Options for `lowered.compile(compiler_options=...)`. They change the speed only.

    Options that this version of XLA does not know are omitted.
    """
    cpu = mesh.devices.flat[0].platform == "cpu"
    wanted = [WITHOUT_YNNPACK] if cpu and precision.compute == "float32" else []
    return {name: value for name, value in wanted if _exists(name, value)}


@functools.cache
def _exists(name: str, value: Any) -> bool:
    try:
        jax.jit(lambda: 0).lower().compile(compiler_options={name: value})
    except jax.errors.JaxRuntimeError as error:
        if "No such compile option" not in str(error):
            raise
        return False
    return True
