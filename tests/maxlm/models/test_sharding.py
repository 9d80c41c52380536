"""The model under a mesh gives the loss and gradients of one device."""

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from maxlm.config import ParallelConfig
from maxlm.models import transformer
from maxlm.parallel.mesh import make_mesh
from tests.maxlm.models.examples import FLOAT32, SMALL, packed_batch

BATCH = packed_batch([[40, 24], [64], [10, 20, 30], [63], [5] * 12, [33, 31], [64], [1, 50]],
                     64, SMALL.vocab_size)


def loss_and_grads(params, batch):
    return jax.value_and_grad(
        lambda p: transformer.loss(p, batch, SMALL, FLOAT32), has_aux=True)(params)


@pytest.mark.parametrize("sizes", [{"fsdp": 8}, {"tensor": 2, "fsdp": 4},
                                   {"data": 2, "fsdp": 2, "tensor": 2}, {"data": 8}])
def test_mesh_gives_the_loss_and_gradients_of_one_device(sizes):
    params = jax.jit(transformer.init_params, static_argnums=0)(SMALL, 0)
    (loss, weight), grads = jax.jit(loss_and_grads)(params, BATCH)

    mesh = make_mesh(ParallelConfig(**{"data": 1, **sizes}))
    shardings = transformer.param_shardings(SMALL, mesh, FLOAT32.rules)
    with jax.set_mesh(mesh):
        sharded_params = jax.jit(transformer.init_params, static_argnums=0,
                                 out_shardings=shardings)(SMALL, 0)
        batch = jax.device_put(BATCH, NamedSharding(mesh, PartitionSpec(("data", "fsdp"))))
        (mesh_loss, mesh_weight), mesh_grads = jax.jit(
            loss_and_grads, out_shardings=(None, shardings))(sharded_params, batch)

    jax.tree.map(np.testing.assert_array_equal, sharded_params, params)
    assert float(mesh_weight) == float(weight) == BATCH["weights"].sum()
    np.testing.assert_allclose(mesh_loss, loss, rtol=1e-6)
    scale = max(float(np.abs(g).max()) for g in jax.tree.leaves(grads))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6 * scale),
                 mesh_grads, grads)
