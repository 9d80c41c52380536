"""Runs a kernel that XLA cannot partition on each device's own rows and heads."""

from collections.abc import Callable

import jax

from maxlm.parallel.execution import Execution
from maxlm.parallel.rules import spec_for


def by_rows_and_heads(
    kernel: Callable[..., jax.Array], query_BTHK: jax.Array, key_BTGK: jax.Array,
    value_BTGK: jax.Array, segments_BT: jax.Array, how: Execution,
) -> jax.Array:
    """kernel(query, key, value, segments) with the rows and heads that each device holds.

    Whole rows are needed: a length that is split is gathered.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty or mesh.size == 1:
        return kernel(query_BTHK, key_BTGK, value_BTGK, segments_BT)
    heads, kv_heads = (
        spec_for(("batch", None, name, None), how.rules, shape=x.shape, mesh=mesh, name="attention")
        for name, x in (("heads", query_BTHK), ("kv_heads", key_BTGK)))
    rows = spec_for(("batch", None), how.rules)
    # The kernels say nothing of how their results vary over the mesh, so it is not checked.
    return jax.shard_map(kernel, mesh=mesh, in_specs=(heads, kv_heads, kv_heads, rows),
                         out_specs=heads, check_vma=False)(
                             query_BTHK, key_BTGK, value_BTGK, segments_BT)
