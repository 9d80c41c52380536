"""Learning rates against lists computed by hand."""

import numpy as np
import pytest

from maxlm.config import Config, ConfigError, RunConfig, ScheduleConfig
from maxlm.training.schedule import learning_rate, resolve_schedule


def rates(steps: int, **settings) -> np.ndarray:
    schedule = ScheduleConfig(learning_rate=1.0, **settings)
    return np.array([learning_rate(schedule, steps, step) for step in range(steps)])


def test_warm_up_of_3_in_10_steps_with_cosine():
    # 1/3, 2/3, 1; then 0.1 + 0.9 (1 + cos(pi j/7)) / 2 for j = 1..7: cos(pi/7) = 0.9009688679,
    # cos(2 pi/7) = 0.6234898019, cos(3 pi/7) = 0.2225209340.
    golden = [1 / 3, 2 / 3, 1.0, 0.95543599, 0.83057041, 0.65013442, 0.44986558, 0.26942959,
              0.14456401, 0.1]
    np.testing.assert_allclose(rates(10, warmup_steps=3, final_fraction=0.1), golden, atol=1e-6)


@pytest.mark.parametrize(("steps", "settings", "golden"), [
    (4, {"warmup_steps": 0, "final_fraction": 0.0}, [1.0, 0.75, 0.25, 0.0]),
    (4, {"warmup_steps": 1, "final_fraction": 0.0}, [1.0, 0.75, 0.25, 0.0]),
    (4, {"warmup_steps": 4}, [0.25, 0.5, 0.75, 1.0]),
    (4, {"warmup_steps": 2, "name": "constant"}, [0.5, 1.0, 1.0, 1.0]),
    (1, {"warmup_steps": 0}, [1.0]),
    (1, {"warmup_steps": 1}, [1.0]),
])
def test_short_runs(steps, settings, golden):
    np.testing.assert_allclose(rates(steps, **settings), golden, atol=1e-6)


# -- a run that changes its length ----------------------------------------------------------------

PEAK = {"learning_rate": 1.0, "warmup_steps": 3, "final_fraction": 0.1}
# Of test_warm_up_of_3_in_10_steps_with_cosine.
TEN = [1 / 3, 2 / 3, 1.0, 0.95543599, 0.83057041, 0.65013442, 0.44986558, 0.26942959, 0.14456401,
       0.1]
# 0.1 + 0.9 (1 + cos(pi j/11)) / 2 for j = 2..11, that is steps 5 to 14 of a run of 14.
FOURTEEN = [0.92856414, 0.84468704, 0.73693677, 0.61404215, 0.48595785, 0.36306323, 0.25531296,
            0.17143586, 0.11822871, 0.1]


def config(run_steps: int, **schedule) -> Config:
    return Config(run=RunConfig(steps=run_steps), schedule=ScheduleConfig(**(PEAK | schedule)))


def started(run_steps: int, **schedule) -> Config:
    """The config as the first checkpoint of a run has it."""
    new = config(run_steps, **schedule)
    resolved, line = resolve_schedule(new, None, 0)
    assert line is None
    return resolved


def remaining(new: Config, saved: Config, step: int) -> tuple[Config, list[float], str | None]:
    """The config that the continued run stores, the rates of its steps, and the line."""
    stored, line = resolve_schedule(new, saved, step)
    return stored, [float(learning_rate(stored.schedule, new.run.steps, k))
                    for k in range(step, new.run.steps)], line


@pytest.mark.parametrize(("step", "steps", "choice", "golden"), [
    # Longer, from the last step and from the middle.
    (10, 14, "hold", [0.1, 0.1, 0.1, 0.1]),
    (4, 14, "hold", TEN[4:] + [0.1] * 4),
    (10, 14, "rewarm", [0.4, 0.7, 1.0, 0.1]),
    (10, 15, "rewarm", [0.4, 0.7, 1.0, 0.55, 0.1]),
    (2, 6, "rewarm", [2 / 3 + 1 / 9, 2 / 3 + 2 / 9, 1.0, 0.1]),
    (10, 14, "replan", FOURTEEN[-4:]),
    (4, 14, "replan", FOURTEEN),
    # Shorter.
    (4, 8, "hold", TEN[4:8]),
    (4, 8, "rewarm", [0.95543599 + 0.04456401 / 3, 0.95543599 + 0.04456401 * 2 / 3, 1.0, 0.1]),
    (4, 8, "replan", [0.68905765, 0.41094235, 0.18594235, 0.1]),
])
def test_rates_after_a_change_of_length(step, steps, choice, golden):
    new = config(steps, if_steps_change=choice)
    stored, rates_left, line = remaining(new, started(10), step)
    np.testing.assert_allclose(rates_left, golden, atol=1e-6)
    # The line has the rate before, the rate after, and what the other choices give.
    assert line is not None and f"schedule.if_steps_change={choice}" in line
    assert f"{TEN[step - 1]:.3g} at step {step}, {golden[0]:.3g} at step {step + 1}" in line
    for other in {"hold", "rewarm", "replan"} - {choice}:
        _, others_left, _ = remaining(config(steps, if_steps_change=other), started(10), step)
        assert f"{other}: {others_left[0]:.3g} at step {step + 1}, {others_left[-1]:.3g}" in line

    # The same command again, from a checkpoint in the middle, has the same rates and says nothing.
    _, again, line = remaining(new, stored, step + 2)
    assert (again, line) == (rates_left[2:], None)
    # So has the command without the choice.
    _, again, line = remaining(config(steps), stored, step + 2)
    assert (again, line) == (rates_left[2:], None)


def test_an_extension_of_an_extension():
    held, _, _ = remaining(config(14), started(10), 10)
    rewarmed, rates_left, _ = remaining(config(18, if_steps_change="rewarm"), held, 14)
    np.testing.assert_allclose(rates_left, [0.4, 0.7, 1.0, 0.1], atol=1e-6)
    _, rates_left, _ = remaining(config(20), rewarmed, 18)
    np.testing.assert_allclose(rates_left, [0.1, 0.1], atol=1e-6)
    # Shortened, then back to the length of the start: as if nothing had happened.
    short, _, _ = remaining(config(6), started(10), 4)
    _, rates_left, _ = remaining(config(10), short, 6)
    np.testing.assert_allclose(rates_left, TEN[6:], atol=1e-6)


def test_a_schedule_with_a_length_of_its_own():
    saved = started(14, steps=10)
    np.testing.assert_allclose([float(learning_rate(saved.schedule, 14, k)) for k in range(14)],
                               [*TEN, 0.1, 0.1, 0.1, 0.1], atol=1e-6)
    # Another length on the command line is a new plan.
    _, rates_left, line = remaining(config(14, steps=14), saved, 4)
    np.testing.assert_allclose(rates_left, FOURTEEN, atol=1e-6)
    assert line is not None and "planned was 0.831 at step 5" in line


@pytest.mark.parametrize("setting", [
    {"learning_rate": 0.5}, {"final_fraction": 0.5}, {"name": "constant"}, {"warmup_steps": 6}])
def test_a_change_of_the_curve_is_told(setting):
    _, rates_left, line = remaining(config(10, **setting), started(10), 4)
    assert line is not None
    assert f"0.955 at step 4, {rates_left[0]:.3g} at step 5" in line
    assert "planned was 0.831 at step 5, 0.1 at step 10" in line


def test_nothing_is_told_where_no_rate_changes():
    assert remaining(config(10), started(10), 4)[2] is None
    assert remaining(config(20, name="constant"), started(10, name="constant"), 10)[2] is None
    # A checkpoint from before the field existed: its schedule was planned for its run.steps.
    assert remaining(config(10), config(10), 4)[2] is None
    np.testing.assert_allclose(remaining(config(12), config(10), 10)[1], [0.1, 0.1], atol=1e-6)


def test_a_warm_up_must_fit():
    with pytest.raises(ConfigError, match=r"^config\.schedule\.warmup_steps: 3 is more than "
                                          r"schedule\.steps 12 - start_step 10; lower it"):
        resolve_schedule(config(12, if_steps_change="rewarm"), started(10), 10)
