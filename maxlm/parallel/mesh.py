"""The device mesh: always all six axes, in a fixed order, including those of size 1."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import mesh_utils
from jax.sharding import AxisType, Mesh

from maxlm.config.trainer import MESH_AXES, ParallelConfig

# Mesh axes over which the rows of a batch are split.
BATCH_AXES = ("data", "fsdp")


def make_mesh(parallel: ParallelConfig, devices: Sequence[Any] | None = None) -> Mesh:
    """The mesh of a run, axes `MESH_AXES`.

    Args:
      parallel: one size per axis; -1 takes the devices that are left.
      devices: what to lay out, all devices of all processes when None. Devices with coordinates in
        a torus are laid out along it.

    Raises:
      ConfigError: the sizes do not multiply to the number of devices.
    """
    devices = jax.devices() if devices is None else list(devices)
    shape = tuple(parallel.sizes(len(devices)).values())
    if len(devices) == 1:
        grid = np.asarray(devices, dtype=object).reshape(shape)
    else:
        # An axis of the mesh may be a part of a dimension of the torus: tensor 2 on 4 x 4 chips.
        grid = mesh_utils.create_device_mesh(shape, devices, allow_split_physical_axes=True)
    return Mesh(grid, MESH_AXES, axis_types=(AxisType.Auto,) * len(MESH_AXES))


def batch_shards(mesh: Mesh | jax.sharding.AbstractMesh) -> int:
    """Into how many parts the rows of a batch are split."""
    return int(np.prod([mesh.shape[axis] for axis in BATCH_AXES]))
