"""Rows of the global batch: which ones this process computes, and how devices hold them."""

from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding

from maxlm.config import ConfigError
from maxlm.parallel.rules import Rules, mesh_axes, parts, spec_for

# What the model reads of a batch, each array [rows, sequence_length].
BATCH_DTYPES = {"tokens": np.int32, "targets": np.int32, "segment_ids": np.int32,
                "positions": np.int32, "weights": np.float32}
# What an evaluation also needs of each row, [rows].
ROW_DTYPES = {"source": np.int32, "bytes": np.int32}


class BatchPlacement:
    """Lays rows and length of a batch over the mesh; every process supplies only what its devices
    hold.

    Args:
      mesh: the mesh of the run.
      rules: the table of logical axes; "batch" and "length" are read.
      batch_size: rows of the global batch.
      accumulation_steps: microbatches that every device splits its own rows into.

    Raises:
      ConfigError: the rows do not divide.
    """

    def __init__(self, mesh: Mesh, rules: Rules, batch_size: int, accumulation_steps: int = 1):
        shards = parts("batch", rules, mesh)
        if batch_size % (shards * accumulation_steps):
            axes = " x ".join(f"{axis} {mesh.shape[axis]}" for axis in mesh_axes("batch", rules))
            below = batch_size // (shards * accumulation_steps) * shards * accumulation_steps
            raise ConfigError(
                f"config.data.batch_size: {batch_size} rows do not divide over {axes} with "
                f"{accumulation_steps} microbatch(es); use a multiple of "
                f"{shards * accumulation_steps}, for example "
                f"{below or shards * accumulation_steps}")
        self.batch_size = batch_size
        self.row_sharding = NamedSharding(mesh, spec_for(("batch",), rules))
        self.token_sharding = NamedSharding(mesh, spec_for(("batch", "length"), rules))
        indices: Any = self.row_sharding.addressable_devices_indices_map((batch_size,))
        held = {row for (rows,) in indices.values() for row in range(*rows.indices(batch_size))}
        self.local_rows: list[int] = sorted(held)
        # Global row -> position among the local rows.
        self._position = np.full(batch_size, -1)
        self._position[self.local_rows] = np.arange(len(self.local_rows))

    def put(self, rows: dict[str, np.ndarray], evaluation: bool = False) -> dict[str, jax.Array]:
        """Global arrays from this process's rows, in the order of `local_rows`.

        Args:
          rows: what a plan returns for `local_rows`.
          evaluation: with the arrays of `ROW_DTYPES`.
        """

        def place(have: np.ndarray) -> jax.Array:
            def part(index: Any) -> np.ndarray:
                return have[self._position[index[0]]][:, *index[1:]]

            return jax.make_array_from_callback(
                (self.batch_size, *have.shape[1:]), self._sharding(have.ndim), part)

        return {name: place(rows[name]) for name in self._names(evaluation)}

    def abstract(self, sequence_length: int, evaluation: bool = False) -> dict[str, Any]:
        """Shapes, dtypes and shardings of what `put` returns."""
        shapes = {name: (self.batch_size,) if name in ROW_DTYPES else
                  (self.batch_size, sequence_length) for name in self._names(evaluation)}
        return {name: jax.ShapeDtypeStruct(shapes[name], dtype,
                                           sharding=self._sharding(len(shapes[name])))
                for name, dtype in self._names(evaluation).items()}

    def _sharding(self, dimensions: int) -> NamedSharding:
        return self.row_sharding if dimensions == 1 else self.token_sharding

    @staticmethod
    def _names(evaluation: bool) -> dict[str, Any]:
        return BATCH_DTYPES | ROW_DTYPES if evaluation else BATCH_DTYPES
