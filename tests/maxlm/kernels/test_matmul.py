"""The layer matmul: value, gradients, and gradient sums in float32."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maxlm.config import PrecisionConfig
from maxlm.kernels.matmul import matmul
from maxlm.parallel.execution import Execution

# The forms of the CPU and of accelerators.
FORMS = {platform: Execution(platform=platform) for platform in ("cpu", "tpu")}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(jnp.float32, 1e-5), (jnp.bfloat16, 3e-2)])
@pytest.mark.parametrize(("x_shape", "weight_shape", "contract"), [
    ((2, 5, 12), (12, 3, 4), 1), ((2, 5, 3, 4), (3, 4, 8), 2), ((7, 6), (6, 9), 1)])
def test_equals_tensordot(form, dtype, tolerance, x_shape, weight_shape, contract):
    random = np.random.default_rng(0)
    x = random.normal(size=x_shape).astype(dtype)
    weight = random.normal(size=weight_shape).astype(np.float32)
    weight = weight.astype(dtype).astype(np.float32)  # so that rounding it is exact
    y, pull = jax.vjp(lambda x, w: matmul(x, w, FORMS[form], contract), x, weight)
    truth, pull_truth = jax.vjp(
        lambda x, w: jnp.tensordot(x, w, contract, precision="highest"),
        x.astype(np.float32), weight)
    np.testing.assert_allclose(np.asarray(y, np.float32), truth, atol=tolerance, rtol=tolerance)
    d_y = random.normal(size=y.shape).astype(dtype)
    (d_x, d_weight), (d_x_truth, d_weight_truth) = pull(d_y), pull_truth(d_y.astype(np.float32))
    assert y.dtype == d_x.dtype == dtype and d_weight.dtype == jnp.float32
    np.testing.assert_allclose(np.asarray(d_x, np.float32), d_x_truth, atol=tolerance,
                               rtol=tolerance)
    np.testing.assert_allclose(d_weight, d_weight_truth, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("form", FORMS)
def test_weight_gradient_of_bfloat16_is_summed_and_kept_in_float32(form):
    # 300 products of 1: 300 is no bfloat16 number (8 bits), so neither sum nor result is rounded.
    x, weight = jnp.ones((301, 4), jnp.bfloat16), jnp.ones((4, 8))
    grad = jax.grad(lambda w: matmul(x, w, FORMS[form]).astype(jnp.float32).sum())(weight)
    np.testing.assert_array_equal(grad, 301.0)


def test_gradients_in_bfloat16_are_rounded_once():
    how = Execution(PrecisionConfig(gradients="bfloat16"), platform="tpu")
    x, weight = jnp.ones((301, 4), jnp.bfloat16), jnp.ones((4, 8))
    grad = jax.grad(lambda w: matmul(x, w, how).astype(jnp.float32).sum())(weight)
    assert grad.dtype == jnp.float32
    np.testing.assert_array_equal(grad, float(jnp.bfloat16(301)))  # 300 or 302: not 256, a stall
    wide = jax.grad(lambda w: matmul(x.astype(jnp.float32), w, how).sum())(weight)
    np.testing.assert_array_equal(wide, 301.0)
