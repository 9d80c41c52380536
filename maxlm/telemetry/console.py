"""Lines on the console: the progress of a training run."""

import sys
import time
from typing import Any

from maxlm.models import counts
from maxlm.telemetry.sink import RunStart, Sink


def duration(seconds: float) -> str:
    """1:02:03 or 2:03, rounded to seconds."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"


class Progress(Sink):
    """Prints a line with loss, speed and time left, at most every `interval` seconds.

    The time left is based on the mean step time of this process, without its first step, which is
    slower.
    """

    def __init__(self, steps: int, interval: float, flops_per_token: float):
        self._steps = steps
        self._interval = interval
        self._flops_per_token = flops_per_token
        self._last_print = -float("inf")
        self._first: tuple[int, float] | None = None

    @classmethod
    def open(cls, run: RunStart) -> "Progress":
        config = run.config
        return cls(config.run.steps, config.telemetry.console_seconds,
                   counts.flops_per_token(config.model, config.data.sequence_length))

    def write(self, row: dict[str, Any]) -> None:
        """Prints a row of a train step. Rows without a training loss have no line here."""
        if "loss" not in row:
            return
        now = time.monotonic()
        step = int(row["step"])
        if self._first is None:
            self._first = (step, now)
        if now - self._last_print < self._interval and step != self._steps:
            return
        self._last_print = now
        done, seconds = step - self._first[0], now - self._first[1]
        left = duration(seconds / done * (self._steps - step)) if done else "?"
        width = len(str(self._steps))
        rate = row["tokens_per_second"]
        print(f"step {step:{width}d}/{self._steps} {100 * step / self._steps:3.0f}%  "
              f"loss {row['loss']:.4f}  grad {row['grad_norm']:.2f}  "
              f"lr {row['learning_rate']:.2e}  {rate:,.0f} tok/s  "
              f"{rate * self._flops_per_token / 1e12:.3f} TFLOP/s  ETA {left}",
              file=sys.stderr, flush=True)


def log(line: str) -> None:
    """Prints one line to standard error; standard output is for results."""
    print(line, file=sys.stderr, flush=True)
