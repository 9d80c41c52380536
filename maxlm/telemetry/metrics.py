"""metrics.jsonl: one JSON object per line; on resume, rows after the checkpoint are removed."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maxlm.config import ConfigError
from maxlm.telemetry.sink import RunStart, Sink


def finite_row(row: dict[str, Any]) -> dict[str, Any]:
    """Makes a row valid JSON: NaN and infinities become null, and the field `nonfinite` has their
    values, as in {"loss": null, "nonfinite": {"loss": "nan"}}."""
    nonfinite = {name: str(value) for name, value in row.items()
                 if isinstance(value, float) and not math.isfinite(value)}
    return row | dict.fromkeys(nonfinite) | ({"nonfinite": nonfinite} if nonfinite else {})


class MetricsFile(Sink):
    """Appends rows to RUN/metrics.jsonl, without a buffer in this process."""

    def __init__(self, path: str | os.PathLike[str], resume_step: int | None,
                 report: Callable[[str], None] = lambda line: None):
        """Opens the file, keeping the rows up to and including `resume_step`.

        Later rows belong to steps that will be computed again, and a process that was killed while
        writing may have left an incomplete row. The shortened file replaces the old one by a
        rename, so a kill at this point loses nothing.

        Args:
          resume_step: None for a run without a checkpoint. If the file has rows of training steps
            then (the checkpoints may have been deleted), it is renamed to metrics.jsonl.old-N.
          report: called with a line about the renamed file.

        Raises:
          ConfigError: a line is not a row of metrics.
          IsADirectoryError: path is a directory.
        """
        self._path = Path(path)
        if resume_step is None:
            resume_step = -1
            _keep_rows_of_another_run(self._path, report)
        kept = [json.dumps(row) + "\n" for row in read_metrics(self._path)
                if row["step"] <= resume_step] if self._path.exists() else []
        temporary = self._path.with_name(self._path.name + ".tmp")
        temporary.write_text("".join(kept), encoding="utf-8")
        os.replace(temporary, self._path)
        # Unbuffered: on a full disk the write itself fails, and no flush fails again at exit.
        self._file = self._path.open("ab", buffering=0)

    @classmethod
    def open(cls, run: RunStart) -> "MetricsFile":
        return cls(run.workdir / "metrics.jsonl", run.resume_step, run.report)

    def write(self, row: dict[str, Any]) -> None:
        """Appends `finite_row(row)`. Raises OSError if it cannot be written completely."""
        line = memoryview((json.dumps(finite_row(row), allow_nan=False) + "\n").encode())
        while line:
            line = line[self._file.write(line):]

    def sync(self) -> None:
        """Returns when the rows are on the disk, where they must be before a checkpoint is."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def read_metrics(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The rows of a metrics file; an incomplete last line (killed while writing) is left out.

    Raises:
      ConfigError: a line is not a row of metrics.
    """
    rows = []
    for number, line in enumerate(Path(path).read_bytes().split(b"\n")[:-1], 1):
        if not line:
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict) or not isinstance(row.get("step"), int):
            raise ConfigError(f"{path}: line {number} is not a row of metrics of a step; move the "
                              "file away, or put the right one in its place")
        rows.append(row)
    return rows


def _keep_rows_of_another_run(path: Path, report: Callable[[str], None]) -> None:
    if not path.exists():
        return
    try:
        if not any(row["step"] > 0 for row in read_metrics(path)):
            return  # a run that was killed before its first step
    except ConfigError:
        pass  # not a metrics file of ours: keep it too
    number = 1
    while (old := path.with_name(f"{path.name}.old-{number}")).exists():
        number += 1
    os.rename(path, old)
    report(f"there is no checkpoint, but {path} has rows; they are kept in {old.name}")
