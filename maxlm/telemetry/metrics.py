"""metrics.jsonl: one JSON object a row, cut back to the checkpoint when a run resumes."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maxlm.config import ConfigError


def finite_row(row: dict[str, Any]) -> dict[str, Any]:
    """The row as JSON can have it: NaN and infinities are null, and the field `nonfinite` names
    them, as in {"loss": null, "nonfinite": {"loss": "nan"}}."""
    nonfinite = {name: str(value) for name, value in row.items()
                 if isinstance(value, float) and not math.isfinite(value)}
    return row | dict.fromkeys(nonfinite) | ({"nonfinite": nonfinite} if nonfinite else {})


class MetricsFile:
    """Appends rows to RUN/metrics.jsonl; a row is with the system when `write` returns."""

    def __init__(self, path: str | os.PathLike[str], resume_step: int | None,
                 report: Callable[[str], None] = lambda line: None):
        """Opens the file, keeping the rows up to and including `resume_step`.

        Rows after it belong to steps that will be computed again (bit for bit the same), and a
        process killed while writing may have left half a row. The shortened file replaces the old
        one by a rename, so a kill here loses nothing either.

        Args:
          resume_step: None for a run that starts from nothing. Whose training rows lie there then
            nobody knows (the checkpoints may have been deleted), so such a file is kept beside
            the new one, as metrics.jsonl.old-N.
          report: gets a line that says so.

        Raises:
          ConfigError: the rows to be kept are not of this kind.
          IsADirectoryError: path is one.
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
        # Unbuffered: a row that does not fit on the disk fails here, and not once more at exit.
        self._file = self._path.open("ab", buffering=0)

    def write(self, row: dict[str, Any]) -> None:
        """Appends a row, as `finite_row` has it. Raises OSError when it cannot be written whole."""
        line = memoryview((json.dumps(finite_row(row), allow_nan=False) + "\n").encode())
        while line:
            line = line[self._file.write(line):]

    def sync(self) -> None:
        """Returns when the rows are on the disk. A checkpoint must not outlive rows before it."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def read_metrics(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The rows of a metrics file; a torn last line (killed while writing) is left out.

    Raises:
      ConfigError: a line is no row.
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
        pass  # whatever it is, somebody wrote it
    number = 1
    while (old := path.with_name(f"{path.name}.old-{number}")).exists():
        number += 1
    os.rename(path, old)
    report(f"there is no checkpoint, but {path} has rows; they are kept in {old.name}")
