"""Candidates become good or rejected by the steps and the evaluation after them."""

import dataclasses
import json
import math

import pytest

from maxlm.config import CheckpointConfig, ConfigError
from maxlm.training.checkpoint_status import (
    CANDIDATE,
    FILE,
    GOOD,
    REJECTED,
    CheckpointStatus,
    newest_not_rejected,
)

SOUND = {"loss": 5.0, "grad_norm": 1.0, "update_norm": 0.1, "param_norm": 10.0}
LIMITS = CheckpointConfig(confirm_steps=3, keep=2, max_update_ratio=0.5, max_loss_increase=2.0)


def train(status: CheckpointStatus, steps: range, save_every: int = 1, **metrics) -> str | None:
    """Takes these steps, all with the same metrics; returns the first problem."""
    for step in steps:
        if problem := status.after_step(step, {**SOUND, **metrics}):
            return problem
        if step % save_every == 0:
            status.add(step)
            status.of = {step: status.of[step] for step in sorted(status.preserved())}
    return None


@pytest.mark.parametrize(("metrics", "words"), [
    ({"loss": math.nan}, "the loss of step 1 is nan"),
    ({"loss": math.inf}, "the loss of step 1 is inf"),
    ({"grad_norm": math.inf}, "the grad_norm of step 1 is inf"),
    ({"update_norm": math.nan}, "the update_norm of step 1 is nan"),
    ({"param_norm": math.inf}, "the param_norm of step 1 is inf"),
    ({"update_norm": 5.01}, "the update of step 1 has 0.501 times the norm of the weights"),
    ({"update_norm": 1e30}, "the update of step 1 has 1e+29 times"),
    ({"update_norm": 5.0}, None), ({"loss": 1e30}, None)])  # the first loss is the reference
def test_a_step_is_sound_when_finite_and_its_update_is_within_bounds(metrics, words):
    problem = CheckpointStatus(LIMITS).after_step(1, SOUND | metrics)
    assert problem is None if words is None else problem and words in problem


def test_a_checkpoint_is_good_after_enough_sound_steps():
    status = CheckpointStatus(LIMITS)
    train(status, range(1, 5), save_every=2)
    assert status.of == {2: CANDIDATE, 4: CANDIDATE}
    train(status, range(5, 7), save_every=100)
    assert status.of == {2: GOOD, 4: CANDIDATE}
    train(status, range(7, 8), save_every=100)
    assert (status.of, status.last_good()) == ({2: GOOD, 4: GOOD}, 4)


def test_with_evaluations_one_has_to_follow_it_too():
    status = CheckpointStatus(LIMITS, "set")
    status.after_evaluation(0, 6.0)
    train(status, range(1, 6), save_every=5)
    status.after_evaluation(5, 6.0)  # of the weights that are saved, not after them
    train(status, range(6, 20), save_every=100)
    assert status.of == {5: CANDIDATE}
    status.after_evaluation(19, 6.0)
    assert status.of == {5: GOOD}


def test_an_evaluation_may_come_before_the_last_of_the_steps():
    status = CheckpointStatus(LIMITS, "set")
    train(status, range(1, 3), save_every=2)
    train(status, range(3, 4), save_every=100)
    status.after_evaluation(3, 6.0)
    assert status.of == {2: CANDIDATE}
    train(status, range(4, 6), save_every=100)
    assert status.of == {2: GOOD}


@pytest.mark.parametrize(("loss", "sound"), [
    (5.0, True), (7.9, True), (8.1, False), (1e4, False), (math.inf, False), (math.nan, False)])
def test_a_held_out_loss_is_compared_with_the_lowest_of_a_good_checkpoint(loss, sound):
    status = CheckpointStatus(LIMITS, "set")
    status.after_evaluation(0, 9.0)
    train(status, range(1, 5), save_every=1)
    status.after_evaluation(4, 6.0)
    assert status.of[1] == GOOD
    assert (status.after_evaluation(5, loss) is None) == sound


def test_a_loss_far_above_for_some_steps_confirms_nothing_and_for_many_ends_the_run():
    status = CheckpointStatus(LIMITS)
    train(status, range(1, 6), save_every=5)
    good = status.last_good()
    assert train(status, range(6, 8), save_every=100, loss=7.5) is None  # a spike of two steps
    assert train(status, range(8, 10), save_every=100) is None
    assert good is None and status.last_good() is None
    assert train(status, range(10, 11), save_every=100) is None
    assert status.last_good() == 5
    problem = train(status, range(11, 20), loss=7.5)
    assert problem and "the loss of the last 3 steps is above 7" in problem and "step 13" in problem
    assert train(status, range(20, 30), loss=6.9) is None


def test_the_reference_does_not_drift_up_with_the_loss():
    """A loss that rises slowly is compared with the lowest, not with the one before."""
    status = CheckpointStatus(LIMITS)
    for number in range(100):
        problem = train(status, range(5 * number + 1, 5 * number + 6), loss=3.0 + 0.25 * number)
        if problem:
            break
    assert number == 9  # the first above 3.0 + 2.0
    assert status.last_good() <= 45


def test_a_diverging_run_keeps_its_last_good_checkpoint_whatever_it_saves():
    status = CheckpointStatus(LIMITS, "set")
    train(status, range(1, 5))
    status.after_evaluation(4, 5.0)
    train(status, range(5, 500), loss=6.9)  # each step is just within bounds
    good = status.last_good()
    assert good == 3 and good in status.preserved()  # before the last sound evaluation
    assert status.after_evaluation(500, 7.5)
    status.reject_candidates()
    assert set(status.of.values()) == {GOOD, REJECTED}
    assert status.last_good() == good


@pytest.mark.parametrize(("of", "preserved"), [
    ({}, set()),
    ({1: GOOD}, {1}),
    ({1: GOOD, 2: GOOD, 3: GOOD}, {2, 3}),
    ({1: GOOD, 4: CANDIDATE, 8: CANDIDATE, 12: CANDIDATE, 16: CANDIDATE}, {1, 12, 16}),
    (dict.fromkeys(range(1, 21), CANDIDATE), {17, 18, 20}),
    ({1: GOOD, 2: GOOD, 3: GOOD, 4: CANDIDATE}, {2, 3, 4}),
    ({1: GOOD, 2: REJECTED, 3: REJECTED}, {1, 2, 3}),
])
def test_keep_counts_good_ones_and_few_candidates_stay(of, preserved):
    status = CheckpointStatus(LIMITS)
    status.of = dict(of)
    assert status.preserved() == preserved


def test_further_candidates_stay_where_keep_has_room():
    status = CheckpointStatus(dataclasses.replace(LIMITS, keep=8))
    status.of = {1: GOOD, **dict.fromkeys(range(2, 12), CANDIDATE)}
    assert status.preserved() == {1, 5, 6, 7, 8, 9, 10, 11}


@pytest.mark.parametrize("save_every", [1, 2, 3, 5, 7, 50])
def test_however_often_it_saves_a_run_gets_good_checkpoints(save_every):
    status = CheckpointStatus(LIMITS, "set")
    for step in range(1, 401):
        train(status, range(step, step + 1), save_every)
        assert len(status.of) <= LIMITS.keep + 3
        if step % 20 == 0:
            status.after_evaluation(step, 5.0)
            if step > save_every + LIMITS.confirm_steps:
                assert step - status.last_good() <= save_every + 2 * LIMITS.confirm_steps


def test_the_last_checkpoint_is_good_when_the_last_steps_were_sound():
    status = CheckpointStatus(LIMITS)
    train(status, range(1, 3))
    assert status.after_last_step(2) is None
    assert status.of == {1: GOOD, 2: GOOD}
    train(status, range(3, 5), loss=7.5)
    assert status.after_last_step(4)
    assert status.last_good() == 2


def test_weights_to_start_from_are_good():
    status = CheckpointStatus(LIMITS)
    status.add(0)
    assert train(status, range(1, 2), update_norm=math.nan)
    status.reject_candidates()
    assert status.last_good() == 0


def test_what_is_stored_goes_on_after_a_restart(tmp_path):
    file = tmp_path / FILE
    status = CheckpointStatus(LIMITS, "set")
    status.after_evaluation(0, 9.0)
    train(status, range(1, 7))
    status.after_evaluation(6, 4.0)
    status.write(file)
    stored = json.loads(file.read_text())
    assert stored["losses"] == {"train": 5.0, "set": 4.0}
    other = CheckpointStatus(LIMITS, "set")
    other.read(file, [*status.of, 99])
    assert other.of == {**status.of, 99: CANDIDATE}
    assert other.after_evaluation(7, 6.1)  # compared with what the run had before
    other.evaluation_set = "another set"
    assert other.after_evaluation(7, 6.1) is None
    other.read(file, [])  # the checkpoints were deleted
    assert other.of == {} and other.last_good() is None


@pytest.mark.parametrize("content", [
    "", "{", "[]", '{"losses": {}}', '{"losses": {"a": "b"}, "checkpoints": {}}',
    '{"losses": {}, "checkpoints": {"1": 2}}'])
def test_a_damaged_file_is_named(tmp_path, content):
    (tmp_path / FILE).write_text(content)
    with pytest.raises(ConfigError, match=f"{FILE}: damaged; delete it"):
        CheckpointStatus(LIMITS).read(tmp_path / FILE, [1])


def test_readers_take_the_newest_that_was_not_rejected(tmp_path):
    assert newest_not_rejected(tmp_path, [1, 2]) == 2  # nothing is known
    status = CheckpointStatus(LIMITS)
    status.of = {1: GOOD, 2: CANDIDATE, 3: REJECTED}
    status.write(tmp_path / FILE)
    assert newest_not_rejected(tmp_path, [1, 2, 3]) == 2
    assert newest_not_rejected(tmp_path, [3]) is None
