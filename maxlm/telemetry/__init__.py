"""Where the metrics of a run go. A new sink is a subclass of `Sink` and an entry in `SINKS`."""

from maxlm.telemetry.console import Progress
from maxlm.telemetry.metrics import MetricsFile
from maxlm.telemetry.sink import RunStart, Sink

SINKS: list[type[Sink]] = [MetricsFile, Progress]


def open_sinks(run: RunStart) -> list[Sink]:
    """The sinks that the run's config asks for."""
    return [sink for kind in SINKS if (sink := kind.open(run)) is not None]
