"""Rows of the global batch on the devices that hold them."""

import jax
import numpy as np
import pytest

from maxlm.config import ConfigError, ParallelConfig
from maxlm.data.plan import Plan
from maxlm.parallel.batches import BATCH_DTYPES, ROW_DTYPES, BatchPlacement
from maxlm.parallel.mesh import make_mesh
from maxlm.parallel.rules import logical_rules
from tests import training_runs

RULES = logical_rules(ParallelConfig())


@pytest.mark.parametrize("parallel", [
    ParallelConfig(), ParallelConfig(data=1, fsdp=8), ParallelConfig(data=2, fsdp=2, tensor=2),
    ParallelConfig(data=1, tensor=8)])
def test_each_device_holds_its_rows_of_the_plan(parallel):
    mesh = make_mesh(parallel)
    placement = BatchPlacement(mesh, RULES, 8)
    plan = Plan.build(training_runs.config().data, 0)
    assert placement.local_rows == list(range(8))  # one process holds all
    wanted = plan.rows(3) | {"bytes": np.arange(8, dtype=np.int32)}
    for evaluation, dtypes in ((False, BATCH_DTYPES), (True, BATCH_DTYPES | ROW_DTYPES)):
        batch = placement.put(wanted, evaluation)
        assert set(batch) == set(dtypes)
        for name, array in batch.items():
            assert array.dtype == dtypes[name]
            np.testing.assert_array_equal(array, wanted[name])
            shards = mesh.shape["data"] * mesh.shape["fsdp"]
            for shard in array.addressable_shards:
                # Row-major over data and fsdp; the devices of a tensor group hold the same rows.
                d, _, f, _, _, _ = np.argwhere(mesh.devices == shard.device)[0]
                first = int(d * mesh.shape["fsdp"] + f) * 8 // shards
                np.testing.assert_array_equal(shard.data, wanted[name][first:first + 8 // shards])


def test_abstract_is_what_put_returns():
    placement = BatchPlacement(make_mesh(ParallelConfig(data=2, fsdp=4)), RULES, 16)
    plan = Plan.build(training_runs.config(data__batch_size=16).data, 0)
    rows = plan.rows(0) | {"bytes": np.arange(16, dtype=np.int32)}
    for name, wanted in placement.abstract(64, evaluation=True).items():
        array = placement.put(rows, evaluation=True)[name]
        assert (array.shape, array.dtype, array.sharding) == (
            wanted.shape, wanted.dtype, wanted.sharding)


@pytest.mark.parametrize(("rows", "accumulation", "words"), [
    (12, 1, "12 rows do not divide over data 2 x fsdp 4 with 1 microbatch(es); use a multiple of "
            "8, for example 8"),
    (24, 2, "use a multiple of 16, for example 16"),
    (4, 1, "use a multiple of 8, for example 8")])
def test_rows_that_do_not_divide(rows, accumulation, words):
    with pytest.raises(ConfigError) as caught:
        BatchPlacement(make_mesh(ParallelConfig(data=2, fsdp=4)), RULES, rows, accumulation)
    assert "config.data.batch_size" in str(caught.value) and words in str(caught.value)
    assert jax.device_count() == 8
