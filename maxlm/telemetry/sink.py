"""What a sink is: a place that receives each row of metrics of a run."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maxlm.config import Config


@dataclasses.dataclass(frozen=True)
class RunStart:
    """What a sink may need to know when a run starts.

    Attributes:
      config: of the run.
      workdir: its directory.
      resume_step: last step of the checkpoint from which it resumes; -1 for initial weights that
        another command made, None without any checkpoint.
      report: prints a line for the user.
    """

    config: Config
    workdir: Path
    resume_step: int | None
    report: Callable[[str], None] = print


class Sink:
    """Base class. A new sink overrides `write`, is listed in `maxlm.telemetry.SINKS`, and is then
    used by the first process of each run whose config asks for it."""

    @classmethod
    def open(cls, run: RunStart) -> "Sink | None":
        """The sink for a run, or None if the config does not ask for it."""
        return cls()

    def write(self, row: dict[str, Any]) -> None:
        """Takes a row: `step`, and metrics of that step by name. Rows of a step may be several."""
        raise NotImplementedError

    def sync(self) -> None:
        """Returns when all rows are stored. Called before a checkpoint is saved."""

    def close(self) -> None:
        """Called when the run ends, even if it fails."""
