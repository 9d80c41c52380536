"""Steps that follow each other, in one Beam pipeline or in one each.

A step reads the files that the steps before it left and leaves its own. In one pipeline it starts
when a grouping under a single key has seen all that the step before did, which saves the start-up
of workers (seconds for each pipeline); apart, what a step needs in memory is free again before the
next one, and the launching process can look at its outcome.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import apache_beam as beam

from data_beam.base.stage_context import Context

Step = Callable[[Any], Any]
"""From a PCollection of one element, which arrives when the step may start, to a PCollection of
whatever it has done last."""


def shard_numbers(start: Any, order: Sequence[int]) -> Any:
    """PCollection of the shard numbers, spread over the workers in this order."""
    return (start | "Shard numbers" >> beam.FlatMap(lambda _: order)
            | "Spread shards" >> beam.Reshuffle())


def _one(_: Any) -> tuple[None, None]:
    return None, None


def _once(element: tuple[None, Any]) -> Iterator[None]:
    yield None


class _Then(beam.PTransform):
    """One element, once the step before has done all of its work."""

    def __init__(self, step: Step):
        super().__init__()
        self._step = step

    def expand(self, start: Any) -> Any:  # type: ignore[override]
        done = self._step(start)
        return ((start, done)  # `done` alone may be empty
                | "Start and done" >> beam.Flatten()
                | "One key" >> beam.Map(_one)
                | "All done" >> beam.GroupByKey()
                | "Once" >> beam.FlatMap(_once))


def run(context: Context, steps: dict[str, Step], together: bool) -> None:
    """Runs steps by their names, one after the other."""
    def build(root: beam.Pipeline, names: list[str]) -> None:
        start = root | "Start" >> beam.Create([None], reshuffle=False)
        for name in names:
            start = start | name >> _Then(steps[name])

    for names in [list(steps)] if together else [[name] for name in steps]:
        context.pipeline(lambda root, names=names: build(root, names))
