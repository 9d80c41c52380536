"""Logical axes: the one table that says which mesh axis each dimension of each array is split over.

Modules name the dimensions of their parameters and activations ("embed", "heads", ...). Nothing
but this table knows the mesh. It is made from the config and passed on with `Execution`. Two
dimensions of one array on one mesh axis, or a dimension that does not divide, are refused by name;
nothing is silently replicated.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec

from maxlm.config.schema import ConfigError, suggestion
from maxlm.config.trainer import ParallelConfig

MeshAxes = str | tuple[str, ...] | None
Rules = tuple[tuple[str, MeshAxes], ...]

# Parameters are split over fsdp along the width of the residual stream and over tensor along
# heads, inner width and vocabulary; activations over the batch, the length and over tensor.
_RULES: Rules = (
    # parameters
    ("layers", None),
    ("embed", "fsdp"),
    ("heads", "tensor"),
    ("kv_heads", "tensor"),
    ("head_dim", None),
    ("mlp", "tensor"),
    ("vocab", "tensor"),
    ("norm", None),
    # activations
    ("batch", ("data", "fsdp")),
    ("length", "context"),
    ("activation_embed", None),
)


def logical_rules(parallel: ParallelConfig) -> Rules:
    """The table of a run, first match wins: the entries of `parallel.rules`, then the built-in
    ones.

    Raises:
      ConfigError: an entry of the config names no logical axis of the built-in table.
    """
    names = [name for name, _ in _RULES]
    for i, rule in enumerate(parallel.rules):
        if rule.logical not in names:
            raise ConfigError(f"config.parallel.rules[{i}].logical: no logical axis "
                              f"{rule.logical!r}; {suggestion(rule.logical, names)}")
    return (*((rule.logical, rule.mesh) for rule in parallel.rules), *_RULES)


def mesh_axes(logical: str | None, rules: Rules) -> tuple[str, ...]:
    """The mesh axes of one logical axis, none for None.

    Raises:
      ConfigError: the table has no such logical axis.
    """
    if logical is None:
        return ()
    for name, axes in rules:
        if name == logical:
            return (axes,) if isinstance(axes, str) else tuple(axes or ())
    raise ConfigError(f"logical axis {logical!r} is not in the table of maxlm/parallel/rules.py; "
                      f"{suggestion(logical, [name for name, _ in rules])}")


def spec_for(
    logical_axes: Sequence[str | None],
    rules: Rules,
    *,
    shape: Sequence[int] | None = None,
    mesh: Mesh | AbstractMesh | None = None,
    name: str = "array",
) -> PartitionSpec:
    """The PartitionSpec of an array whose dimensions have these logical axes.

    Args:
      logical_axes: one name (or None) per dimension.
      rules: ordered table of (logical axis, mesh axis, several or None).
      shape, mesh: when both are given, that every dimension divides is checked.
      name: the array, for messages.

    Raises:
      ConfigError: two dimensions on one mesh axis, a dimension that does not divide, an unknown
        logical axis.
    """
    if shape is not None and len(shape) != len(logical_axes):
        raise ConfigError(f"{name}: {len(shape)} dimensions {tuple(shape)} but "
                          f"{len(logical_axes)} logical axes {tuple(logical_axes)}")
    entries: list[MeshAxes] = []
    owner: dict[str, str | None] = {}
    for dimension, logical in enumerate(logical_axes):
        axes = mesh_axes(logical, rules)
        for axis in axes:
            if axis in owner:
                raise ConfigError(f"{name}: dimensions {owner[axis]!r} and {logical!r} are both "
                                  f"laid on mesh axis {axis!r}; change one of them in the rules")
            owner[axis] = logical
        if shape is not None and mesh is not None:
            _check_divides(name, logical, shape[dimension], axes, mesh.shape)
        entries.append(axes[0] if len(axes) == 1 else axes or None)
    return PartitionSpec(*entries)


def _check_divides(name: str, logical: str | None, size: int, axes: tuple[str, ...],
                   mesh_shape: Mapping[str, int]) -> None:
    parts = 1
    for axis in axes:
        parts *= mesh_shape[axis]
    if size % parts:
        shown = " x ".join(f"{axis!r} of size {mesh_shape[axis]}" for axis in axes)
        raise ConfigError(f"{name}: dimension {logical!r} of size {size} does not divide over mesh "
                          f"axis {shown}; change config.parallel.{axes[-1]} or the model")


def parts(logical: str, rules: Rules, mesh: Mesh | AbstractMesh) -> int:
    """Into how many parts a dimension with this logical axis is split; 1 without a mesh."""
    if mesh.empty:
        return 1
    return math.prod(mesh.shape[axis] for axis in mesh_axes(logical, rules))


def constrain(x: jax.Array, logical_axes: Sequence[str | None], rules: Rules) -> jax.Array:
    """`x` with the layout of its logical axes on the ambient mesh (`jax.set_mesh`).

    Without an ambient mesh, or with one device, `x` itself: there is nothing to lay out.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty or mesh.size == 1:
        return x
    spec = spec_for(logical_axes, rules, shape=x.shape, mesh=mesh, name="activation")
    return jax.lax.with_sharding_constraint(x, spec)


def tree_shardings(abstract: Any, mesh: Mesh, rules: Rules) -> Any:
    """NamedSharding of every leaf of a tree of leaves with `shape` and `logical_axes`.

    Raises:
      ConfigError: see `spec_for`; the message names the parameter by its path.
    """
    def sharding(path: tuple, leaf: Any) -> NamedSharding:
        spec = spec_for(leaf.logical_axes, rules, shape=leaf.shape, mesh=mesh,
                        name=f"parameter {path_name(path)}")
        return NamedSharding(mesh, spec)

    return jax.tree_util.tree_map_with_path(
        sharding, abstract, is_leaf=lambda leaf: hasattr(leaf, "logical_axes"))


def path_name(path: Sequence[Any]) -> str:
    """`blocks/attention/query` from the path of a leaf."""
    return "/".join(str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", key))))
                    for key in path)


def table(abstract: Any, mesh: Mesh, rules: Rules) -> str:
    """One line a parameter: path, shape, logical axes, mesh axes, bytes on each device; a total."""
    shardings = tree_shardings(abstract, mesh, rules)
    rows = [("parameter", "shape", "logical axes", "mesh axes", "bytes/device")]
    total = 0
    leaves = jax.tree_util.tree_leaves_with_path(
        abstract, is_leaf=lambda leaf: hasattr(leaf, "logical_axes"))
    for (path, leaf), sharding in zip(leaves, jax.tree.leaves(shardings), strict=True):
        local = sharding.shard_shape(leaf.shape)
        size = leaf.dtype.itemsize
        for length in local:
            size *= length
        total += size
        rows.append((path_name(path), "x".join(map(str, leaf.shape)), ",".join(leaf.logical_axes),
                     ",".join("+".join((e,) if isinstance(e, str) else e) if e else "-"
                              for e in sharding.spec), f"{size:,}"))
    rows.append(("total", "", "", "", f"{total:,}"))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
                     .rstrip() for row in rows)
