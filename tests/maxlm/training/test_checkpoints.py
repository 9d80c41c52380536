"""Checkpoints: kept, checked, moved aside, refused; written while training goes on."""

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from maxlm.config import CheckpointConfig, ParallelConfig, RunFailure
from maxlm.parallel.mesh import make_mesh
from maxlm.training import checkpoints
from maxlm.training.checkpoint_reader import CheckpointError, Meta, Reader
from maxlm.training.checkpoints import Checkpointer
from maxlm.training.state import TrainState

META = Meta(config={"model": {"num_layers": 2}}, plan={"hash": "abc"}, tokens=2**40 + 1)
EVERY_STEP = CheckpointConfig(every_steps=1, keep=3)


def state_at(step: int, size: int = 64, parallel: ParallelConfig | None = None) -> TrainState:
    """Arrays that tell the step; the matrix is split over fsdp."""
    mesh = make_mesh(parallel or ParallelConfig(data=1, fsdp=8))
    split = NamedSharding(mesh, PartitionSpec("fsdp"))
    whole = NamedSharding(mesh, PartitionSpec())
    matrix = jax.random.normal(jax.random.key(step), (size, 16))
    return TrainState(
        step=jax.device_put(jnp.int32(step), whole),
        params={"matrix": jax.device_put(matrix, split),
                "scale": jax.device_put(jnp.full(3, 0.1) * step, whole)},
        opt_state=({"count": jax.device_put(jnp.int32(step), whole)},))


def abstract(state: TrainState) -> TrainState:
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding), state)


def save(workdir: Path, *steps: int, config: CheckpointConfig = EVERY_STEP) -> None:
    with Checkpointer(workdir, config) as checkpointer:
        for step in steps:
            checkpointer.save(step, state_at(step), META)


def assert_same(one: TrainState, other: TrainState) -> None:
    jax.tree.map(np.testing.assert_array_equal, one, other)


def newest(workdir: Path, template: TrainState | None = None):
    """restore_newest, and the lines it reported."""
    lines: list[str] = []
    with Checkpointer(workdir, EVERY_STEP) as checkpointer:
        found = checkpointer.restore_newest(
            abstract(template or state_at(0)), lambda step, meta: None, lines.append)
    return found, lines


@pytest.mark.parametrize("parallel", [
    ParallelConfig(data=1, fsdp=8), ParallelConfig(data=8), ParallelConfig(data=2, fsdp=4)])
def test_what_was_saved_comes_back_on_any_mesh(tmp_path, parallel):
    save(tmp_path, 7)
    (step, state, meta), lines = newest(tmp_path, state_at(0, parallel=parallel))
    assert (step, meta, lines) == (7, META, [])
    assert_same(state, state_at(7))
    assert state.params["matrix"].sharding == state_at(0, parallel=parallel).params[
        "matrix"].sharding


def test_no_checkpoint_yet(tmp_path):
    assert newest(tmp_path) == (None, [])


SOUND = {"loss": 5.0, "grad_norm": 1.0, "update_norm": 0.1, "param_norm": 10.0}


def on_disk(workdir: Path, folder: str = "checkpoints") -> list[int]:
    return sorted(int(p.name) for p in (workdir / folder).iterdir())


def train(checkpointer: Checkpointer, *steps: int, **metrics) -> None:
    """Saves after each of these steps."""
    for step in steps:
        checkpointer.after_step(step, SOUND | metrics)
        checkpointer.save(step, state_at(step), META)


KEEP_TWO = CheckpointConfig(every_steps=1, keep=2, confirm_steps=1)


def test_the_newest_good_ones_are_kept(tmp_path):
    with Checkpointer(tmp_path, KEEP_TWO) as checkpointer:
        train(checkpointer, 1, 2, 3, 4, 5)
        checkpointer.after_last_step(5)
    assert on_disk(tmp_path) == [4, 5]


def test_a_run_that_diverges_keeps_its_good_ones_and_resumes_there(tmp_path):
    with pytest.raises(RunFailure, match="last good checkpoint is of step 3, and the same comm"), (
            Checkpointer(tmp_path, KEEP_TWO)) as checkpointer:
        train(checkpointer, 1, 2, 3, 4)
        checkpointer.judge_by("an evaluation that does not come")
        train(checkpointer, 5, 6, 7, 8)
        checkpointer.after_step(9, SOUND | {"update_norm": 1e30})
    assert on_disk(tmp_path) == [2, 3, 7, 8]
    (step, state, _), lines = newest(tmp_path)
    assert step == 3 and len(lines) == 2
    assert_same(state, state_at(3))
    assert on_disk(tmp_path, "rejected_checkpoints") == [7, 8]
    with pytest.raises(RunFailure), Checkpointer(tmp_path, KEEP_TWO) as checkpointer:
        train(checkpointer, 4, 5)  # their places are free
        checkpointer.after_step(6, SOUND | {"loss": float("nan")})
    newest(tmp_path)
    assert on_disk(tmp_path) == [3, 4]
    assert on_disk(tmp_path, "rejected_checkpoints") == [5, 7, 8]


def test_a_run_without_a_good_one_starts_again(tmp_path):
    with pytest.raises(RunFailure, match="No checkpoint is good"), (
            Checkpointer(tmp_path, EVERY_STEP)) as checkpointer:
        train(checkpointer, 1, 2)
        checkpointer.after_step(3, SOUND | {"loss": float("inf")})
    assert Reader(tmp_path).newest() is None
    found, lines = newest(tmp_path)
    assert found is None and len(lines) == 2
    assert on_disk(tmp_path) == []


def poisoned(state: TrainState, value: float) -> list[TrainState]:
    """The state with one entry that is not finite, in a weight or in the optimizer."""
    moments = {"mu": jnp.zeros(4), "nu": jnp.zeros(4)}
    return [
        state._replace(params=state.params | {"scale": state.params["scale"].at[2].set(value)}),
        state._replace(params=state.params | {
            "matrix": state.params["matrix"].at[-1, 0].set(value)}),
        state._replace(opt_state=(moments | {"nu": moments["nu"].at[0].set(value)},))]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("number", "name"), [
    (0, "params.scale"), (1, "params.matrix"), (2, "opt_state.0.nu")])
def test_what_is_not_finite_is_not_saved(tmp_path, value, number, name):
    with pytest.raises(RunFailure, match=f"after step 2 these arrays are not finite: {name}"), (
            Checkpointer(tmp_path, EVERY_STEP)) as checkpointer:
        train(checkpointer, 1)
        checkpointer.save(2, poisoned(state_at(2), value)[number], META)
    assert on_disk(tmp_path) == [1]


def test_what_is_not_finite_is_not_resumed_from(tmp_path, monkeypatch):
    """Of a version that saved it."""
    save(tmp_path, 1)
    monkeypatch.setattr(checkpoints, "nonfinite_arrays", lambda state: [])
    with Checkpointer(tmp_path, EVERY_STEP) as checkpointer:
        checkpointer.save(2, poisoned(state_at(2), np.nan)[0], META)
    monkeypatch.undo()
    (step, _, _), [line] = newest(tmp_path)
    assert step == 1 and "checkpoint 2 is not finite: params.scale" in line
    assert on_disk(tmp_path, "rejected_checkpoints") == [2]


def test_due_by_steps_and_by_minutes(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now[0])
    with Checkpointer(tmp_path, CheckpointConfig(every_steps=4, every_minutes=2)) as checkpointer:
        assert [step for step in range(1, 10) if checkpointer.due(step)] == [4, 8]
        now[0] = 119.0
        assert not checkpointer.due(3)
        now[0] = 120.0
        assert checkpointer.due(3)
        checkpointer.save(3, state_at(3), META)
        assert not checkpointer.due(5)
        now[0] = 240.0
        assert checkpointer.due(5)
    with Checkpointer(tmp_path, CheckpointConfig(every_steps=0, every_minutes=0)) as checkpointer:
        now[0] = 1e9
        assert not checkpointer.due(100)


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def files(workdir: Path, step: int) -> list[Path]:
    """The largest file, the structure's description, the meta data, the list of checksums."""
    directory = workdir / "checkpoints" / str(step)
    everything = [p for p in directory.rglob("*") if p.is_file()]
    return [max(everything, key=lambda p: p.stat().st_size), directory / "state" / "_METADATA",
            directory / "meta" / "metadata", directory / "checksums.json"]


def replaced(by: str) -> Callable[[Path], None]:
    def harm(file: Path) -> None:
        file.write_text(by)
    return harm


@pytest.mark.parametrize(("number", "harm", "words"), [
    (0, truncate, "bytes instead of"), (0, flip, "has changed"), (0, Path.unlink, "is missing"),
    (1, truncate, "bytes instead of"), (2, flip, "has changed"), (3, truncate, "not valid JSON"),
    (3, Path.unlink, "checksums.json is missing"), (3, replaced("[]"), "not a list of files"),
    (3, replaced('{"a": 1}'), "not a list of files"),
    (3, replaced('{"a": ["x"]}'), "not a list of files"),
    (3, replaced('{"a": [{}, ""]}'), "not a list of files")])
def test_a_damaged_file_is_named_and_the_checkpoint_before_is_used(tmp_path, number, harm, words):
    save(tmp_path, 1, 2)
    file = files(tmp_path, 2)[number]
    harm(file)
    (step, state, _), lines = newest(tmp_path)
    assert step == 1
    assert_same(state, state_at(1))
    assert len(lines) == 1
    assert "checkpoint 2 is damaged" in lines[0] and words in lines[0]
    assert file.relative_to(tmp_path / "checkpoints" / "2").as_posix() in lines[0]
    assert (tmp_path / "damaged_checkpoints" / "2").is_dir()
    save(tmp_path, 2)  # its place is free for the run that goes on
    assert newest(tmp_path)[0][0] == 2


def test_what_a_killed_save_left_is_gone_at_once(tmp_path):
    save(tmp_path, 1)
    left = tmp_path / "checkpoints" / f"2{ocp.path.step.TMP_DIR_SUFFIX}123"
    (left / "state").mkdir(parents=True)
    (left / "state" / "part").write_bytes(b"x")
    with Checkpointer(tmp_path, CheckpointConfig()) as checkpointer:
        assert not left.exists()
        assert checkpointer.steps() == [1]


def test_processes_share_the_files_of_a_checkpoint(tmp_path):
    """Each file is looked into by one process, and by no other."""
    save(tmp_path, 1)
    reader = Reader(tmp_path)
    for file in sorted(files(tmp_path, 1)[:3]):
        whole = file.read_bytes()
        flip(file)
        found = [problem for part in range(3) if (problem := reader.damage(1, part, 3))]
        assert len(found) == 1 and file.name in found[0]
        file.write_bytes(whole)
    assert [reader.damage(1, part, 50) for part in range(50)] == [None] * 50


def test_when_all_are_damaged_nothing_is_moved(tmp_path):
    save(tmp_path, 1, 2)
    for step in (1, 2):
        truncate(files(tmp_path, step)[0])
    with pytest.raises(CheckpointError, match=r"checkpoint 2 is damaged.*checkpoint 1 is damaged"):
        newest(tmp_path)
    assert sorted(p.name for p in (tmp_path / "checkpoints").iterdir()) == ["1", "2"]
    assert not (tmp_path / "damaged_checkpoints").exists()


def test_a_killed_save_leaves_nothing_that_counts(tmp_path):
    save(tmp_path, 1)
    torn = tmp_path / "checkpoints" / "2.orbax-checkpoint-tmp"
    shutil.copytree(tmp_path / "checkpoints" / "1", torn)
    found, lines = newest(tmp_path)
    assert (found[0], lines) == (1, [])
    assert not torn.exists()


def other_state(**params) -> TrainState:
    state = state_at(1)
    merged = {**state.params, **params}
    return state._replace(params={k: v for k, v in merged.items() if v is not None})


@pytest.mark.parametrize(("saved", "wanted", "message"), [
    (other_state(scale=None), None, r"params\.scale: missing in the checkpoint"),
    (other_state(bias=jnp.zeros(2)), None, r"params\.bias: only in the checkpoint"),
    (other_state(scale=jnp.zeros(4)), None,
     r"params\.scale: checkpoint float32\[4\], this run float32\[3\]"),
    (other_state(scale=jnp.zeros(3, jnp.bfloat16)), None, r"params\.scale: checkpoint bfloat16"),
    (state_at(1)._replace(opt_state=()), None, r"opt_state\.0\.count: missing"),
])
def test_arrays_that_do_not_fit_are_named(tmp_path, saved, wanted, message):
    with Checkpointer(tmp_path, EVERY_STEP) as checkpointer:
        checkpointer.save(1, saved, META)
    with pytest.raises(CheckpointError, match=message):
        newest(tmp_path)


def test_the_check_of_the_run_comes_before_anything_is_moved(tmp_path):
    save(tmp_path, 1, 2)
    truncate(files(tmp_path, 2)[0])

    def refuse(step: int, meta: Meta) -> None:
        raise CheckpointError("of another run")

    with (pytest.raises(CheckpointError, match="of another run"),
          Checkpointer(tmp_path, EVERY_STEP) as checkpointer):
        checkpointer.restore_newest(abstract(state_at(0)), refuse, lambda line: None)
    assert (tmp_path / "checkpoints" / "2").is_dir()


def test_training_goes_on_while_a_checkpoint_is_written(tmp_path, monkeypatch):
    """`save` returns at once, and what is written are the values of that step, though the steps
    after it reuse the memory they lay in."""
    gate = threading.Event()
    list_files = Checkpointer._write_checksums

    def wait_and_list(self) -> None:
        assert gate.wait(timeout=60)
        list_files(self)

    monkeypatch.setattr(Checkpointer, "_write_checksums", wait_and_list)
    state = state_at(1, size=1 << 16)  # 4 MiB
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state)
    advance = jax.jit(lambda s: jax.tree.map(lambda leaf: leaf + 1, s), donate_argnums=0,
                      out_shardings=shardings)
    state = advance(state)
    snapshot = jax.tree.map(lambda leaf: np.array(leaf, copy=True), state)
    with Checkpointer(tmp_path, EVERY_STEP) as checkpointer:
        checkpointer.save(1, state, META)
        for _ in range(50):
            state = advance(state)
        jax.block_until_ready(state)
        assert not (tmp_path / "checkpoints" / "1").exists()  # still being written
        gate.set()
    (step, restored, _), _ = newest(tmp_path, state)
    assert step == 1
    assert_same(restored, snapshot)
    assert int(state.step) == int(snapshot.step) + 50
