"""Two processes that train as one, started as a user starts them."""

import json
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest

from maxlm.config import ParallelConfig
from maxlm.data.plan import Plan
from maxlm.parallel.batches import BatchPlacement
from maxlm.parallel.mesh import make_mesh
from maxlm.parallel.rules import logical_rules
from maxlm.training import step as steps
from maxlm.training.state import abstract_state, init_state
from tests import training_runs as runs

TWENTY = {"run__steps": 20, "checkpoint__every_steps": 10, "evals__every_steps": 20}


def one_device_losses(count: int) -> list[float]:
    config = runs.config(run__steps=count)
    mesh = make_mesh(ParallelConfig(), jax.devices()[:1])
    placement = BatchPlacement(mesh, logical_rules(config.parallel), config.data.batch_size)
    plan = Plan.build(config.data, 0)
    state = init_state(config, mesh)
    step = steps.compile_train_step(config, mesh, abstract_state(config, mesh),
                                    placement.abstract(config.data.sequence_length))
    losses = []
    for number in range(count):
        state, metrics = step(state, placement.put(plan.rows(number)))
        losses.append(float(metrics["loss"]))
    return losses


def assert_two_processes_equal_one(tmp_path: Path, **parallel) -> None:
    pair, alone = tmp_path / "pair", tmp_path / "alone"
    errors = runs.finish_pair(runs.start_pair(pair, **TWENTY, **parallel))
    assert "4 cpu device(s) of 2 process(es)" in errors[0]
    assert "step" not in errors[1]  # only the first process prints progress
    losses = runs.losses(pair)
    np.testing.assert_allclose([losses[step] for step in range(1, 21)], one_device_losses(20),
                               rtol=0, atol=1e-5)

    # Damage in a file that the second process checks is found by both.
    listing = json.loads((pair / "checkpoints" / "20" / "checksums.json").read_text())
    victim = pair / "checkpoints" / "20" / list(listing)[1]
    victim.write_bytes(bytes([victim.read_bytes()[0] ^ 1]) + victim.read_bytes()[1:])
    shutil.copytree(pair, tmp_path / "damaged")
    errors = runs.finish_pair(runs.start_pair(tmp_path / "damaged", **TWENTY, **parallel))
    assert "has changed (checksum) (process 1); moved to" in errors[0]
    assert "resuming after step 10 of 20" in errors[0]
    assert runs.rows(tmp_path / "damaged") == runs.rows(pair)

    # One process continues, on another mesh, from what two processes saved after 10 steps.
    shutil.copytree(pair, alone)
    shutil.rmtree(alone / "checkpoints" / "20")
    assert runs.run(alone, parallel__data=1, parallel__fsdp=8, **TWENTY) == 0
    both, one = runs.rows(pair), runs.rows(alone)
    assert [row["step"] for row in both] == [row["step"] for row in one]
    for row, other in zip(both, one, strict=True):
        assert row.keys() == other.keys()
        for name in row.keys() & {"loss", "eval/loss", "eval/prose/loss", "eval/code/loss"}:
            assert abs(row[name] - other[name]) < 1e-5, (row["step"], name)
        for name in row.keys() & {"tokens", "learning_rate", "eval/tokens"}:
            assert row[name] == other[name]


def test_two_processes_equal_one(tmp_path):
    assert_two_processes_equal_one(tmp_path, parallel__data=2, parallel__fsdp=2)


@pytest.mark.slow
@pytest.mark.parametrize("parallel", [
    {"parallel__data": 1, "parallel__fsdp": 4}, {"parallel__data": 1, "parallel__tensor": 4}],
    ids=json.dumps)
def test_parameters_split_over_processes(tmp_path, parallel):
    assert_two_processes_equal_one(tmp_path, **parallel)


def test_processes_with_different_settings_do_not_train(tmp_path):
    errors = runs.finish_pair(runs.start_pair(tmp_path, second={"run__seed": 1}), status=2)
    for text in errors:
        [line] = [line for line in text.splitlines() if line.startswith("error: ")]
        assert "the config of process 1 is not that of process 0" in line
        assert "Traceback" not in text


def test_damage_found_by_one_process_ends_both(tmp_path):
    """The second process reads the last shard."""
    shutil.copytree(runs.tokens(), tmp_path / "tokens")
    [*_, shard] = sorted((tmp_path / "tokens" / "train").glob("prose-*.array_record"))
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    pair = runs.start_pair(tmp_path / "run", data__tokens=str(tmp_path / "tokens"))
    errors = runs.finish_pair(pair, 2)
    for text in errors:
        [line] = [line for line in text.splitlines() if line.startswith("error: ")]
        assert f"{shard}: its checksum is not that of the manifest" in line
        assert line.endswith("(process 1)") and "Traceback" not in text


def test_a_process_that_never_joins_is_reported(tmp_path):
    process = runs.start(tmp_path, f"--coordinator_address=localhost:{runs.free_port()}",
                         "--num_processes=2", "--process_id=0", "--start_timeout=2")
    errors = runs.finish(process, 1)
    [line] = [line for line in errors.splitlines() if line.startswith("failed: ")]
    assert "process 0 of 2 waited 2 s for the others at localhost:" in line
    assert "Traceback" not in errors and "stack trace" not in errors
