"""Learning rates against lists computed by hand."""

import numpy as np
import pytest

from maxlm.config import ScheduleConfig
from maxlm.training.schedule import learning_rate


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
