"""metrics.jsonl: one JSON object a row, cut back to the checkpoint when a run resumes."""

import json
import os
from pathlib import Path
from typing import Any


class MetricsFile:
    """Appends rows to RUN/metrics.jsonl; a row is with the system when `write` returns."""

    def __init__(self, path: str | os.PathLike[str], resume_step: int):
        """Opens the file, keeping the rows up to and including `resume_step`.

        Rows after it belong to steps that will be computed again (bit for bit the same), and a
        process killed while writing may have left half a row. The shortened file replaces the old
        one by a rename, so a kill here loses nothing either.
        """
        self._path = Path(path)
        kept = [json.dumps(row) + "\n" for row in read_metrics(self._path)
                if row["step"] <= resume_step] if self._path.exists() else []
        temporary = self._path.with_name(self._path.name + ".tmp")
        temporary.write_text("".join(kept), encoding="utf-8")
        os.replace(temporary, self._path)
        # Unbuffered: a row that does not fit on the disk fails here, and not once more at exit.
        self._file = self._path.open("ab", buffering=0)

    def write(self, row: dict[str, Any]) -> None:
        """Raises OSError when the row cannot be written whole, ValueError for NaN or infinity."""
        line = memoryview((json.dumps(row, allow_nan=False) + "\n").encode())
        while line:
            line = line[self._file.write(line):]

    def sync(self) -> None:
        """Returns when the rows are on the disk. A checkpoint must not outlive rows before it."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def read_metrics(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The rows of a metrics file; a torn last line (killed while writing) is left out."""
    text = Path(path).read_bytes()
    return [json.loads(line) for line in text.split(b"\n")[:-1] if line]
