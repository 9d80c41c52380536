"""Compiler options: only where they belong, and only those that exist."""

import jax
import jax.numpy as jnp
import pytest

from maxlm.config import ParallelConfig, PrecisionConfig
from maxlm.kernels import compiler
from maxlm.parallel.mesh import make_mesh


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_float32_on_cpu_is_compiled_without_ynnpack(dtype):
    options = compiler.compiler_options(PrecisionConfig(compute=dtype), make_mesh(ParallelConfig()))
    x = jnp.ones((256, 256), dtype)
    program = jax.jit(jnp.dot).lower(x, x).compile(compiler_options=options).as_text()
    assert bool(options) == (dtype == "float32")
    if options:
        assert "ynn_fusion" not in program


def test_an_option_unknown_to_xla_is_omitted():
    assert not compiler._exists("xla_no_such_option", True)
    assert compiler._exists("xla_cpu_prefer_vector_width", 256)
