import threading

import numpy as np
import pytest

from maxlm.config import DataConfig
from maxlm.data.loader import make_loader
from maxlm.data.plan import Plan
from tests import token_corpora


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "tokens"
    rng = np.random.default_rng(0)
    token_corpora.random_split(path, "train", {
        name: [rng.integers(2, 60, 20).tolist() for _ in range(2)] for name in "ab"})
    return Plan.build(DataConfig(tokens=str(path), sequence_length=32, batch_size=5,
                                 packing="best_fit"), 0)


def check(plan, batches, start, rows):
    for step, batch in batches:
        assert step == start
        expected = plan.rows(step, rows)
        assert set(batch) == set(expected)
        for name, array in expected.items():
            np.testing.assert_array_equal(batch[name], array)
            assert batch[name].dtype == array.dtype
        start += 1
    return start


@pytest.mark.parametrize("prefetch", [1, 4])
def test_threads_give_the_rows_of_the_plan(plan, prefetch):
    assert check(plan, make_loader(plan, 3, 60, [0, 2, 4], 0, prefetch), 3, [0, 2, 4]) == 60


def test_processes_give_the_rows_of_the_plan(plan):
    assert check(plan, make_loader(plan, 7, 16, range(5), workers=2, prefetch=4), 7, range(5)) == 16


def test_stop_and_start_again_changes_nothing(plan):
    whole = dict(make_loader(plan, 0, 20, range(5)))
    loader = make_loader(plan, 0, 20, range(5))
    for _ in range(9):
        next(loader)
    loader.close()
    for step, batch in make_loader(plan, 9, 20, range(5)):
        np.testing.assert_array_equal(batch["tokens"], whole[step]["tokens"])


def test_nothing_left_to_do_is_an_empty_loader(plan):
    assert list(make_loader(plan, 5, 5, range(5))) == []
    assert list(make_loader(plan, 6, 5, range(5))) == []


def test_close_ends_the_threads(plan):
    before = threading.active_count()
    for _ in range(3):
        loader = make_loader(plan, 0, 1000, range(5), prefetch=8)
        next(loader)
        loader.close()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and "grain" in thread.name.lower():
            thread.join(timeout=10)
    assert threading.active_count() <= before + 1


def test_loader_does_not_follow_or_change_numpy_state(plan):
    np.random.seed(5)
    before = np.random.get_state()[1].tolist()
    first = list(make_loader(plan, 0, 4, range(5)))
    assert np.random.get_state()[1].tolist() == before
    np.random.seed(6)
    for (_, one), (_, two) in zip(first, make_loader(plan, 0, 4, range(5)), strict=True):
        np.testing.assert_array_equal(one["tokens"], two["tokens"])


def test_a_damaged_record_stops_the_loader(tmp_path):
    token_corpora.random_split(tmp_path / "t", "train", {"a": [[40] * 50]})
    plan = Plan.build(DataConfig(tokens=str(tmp_path / "t"), sequence_length=32, batch_size=5), 0)
    shard = tmp_path / "t" / "train" / "a-00000-of-00001.array_record"
    shard.write_bytes(bytes(shard.stat().st_size))
    with pytest.raises(Exception, match="a-00000-of-00001"):
        list(make_loader(plan, 0, 50, range(5)))
