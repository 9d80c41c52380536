"""The progress line."""

import re

import pytest

from maxlm.telemetry import console
from maxlm.telemetry.console import Progress, duration


@pytest.mark.parametrize(("seconds", "text"), [
    (0.4, "0:00"), (59.6, "1:00"), (125, "2:05"), (3599.7, "1:00:00"), (90061, "25:01:01")])
def test_duration(seconds, text):
    assert duration(seconds) == text


def row(step):
    return {"step": step, "loss": 3.14159, "grad_norm": 0.5, "learning_rate": 3e-4,
            "tokens_per_second": 12000.0}


def test_a_line_has_progress_speed_and_time_left(monkeypatch, capsys):
    clock = iter([100.0, 102.0, 104.0, 104.5, 106.0])
    monkeypatch.setattr(console.time, "monotonic", lambda: next(clock))
    progress = Progress(steps=20, interval=1.0, flops_per_token=5e8)
    progress.write(row(11))
    progress.write(row(13))  # 2 steps in 2 seconds: 7 steps, 7 seconds left
    progress.write(row(17))  # 6 steps in 4 seconds: 3 steps, 2 seconds left
    progress.write(row(18))  # within the interval: no line
    progress.write({"step": 18, "eval/loss": 3.0})  # not of a train step: no line
    progress.write(row(20))  # the last step always has one
    lines = capsys.readouterr().err.splitlines()
    assert [re.search(r"ETA (\S+)", line)[1] for line in lines] == ["?", "0:07", "0:02", "0:00"]
    assert lines[1] == ("step 13/20  65%  loss 3.1416  grad 0.50  lr 3.00e-04  12,000 tok/s  "
                        "6.000 TFLOP/s  ETA 0:07")
