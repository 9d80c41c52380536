"""Batches of consecutive steps, prepared ahead of the step that needs them."""

import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Generator, Sequence
from multiprocessing import resource_tracker
from typing import Any

import grain
import numpy as np
from absl import flags

from maxlm.data.evaluation_plan import EvaluationPlan
from maxlm.data.plan import Plan

Batch = dict[str, np.ndarray]


def _end_with_parent() -> None:
    """Ends this worker when its parent is gone, and only then: it ignores signals to the whole
    process group, because the parent may need more batches before it stops. Without this, Grain's
    workers would wait for room in their queue forever after kill -9 of the parent."""
    parent = multiprocessing.parent_process()
    if parent is not None and threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    def watch(process: Any) -> None:
        process.join()
        os._exit(1)

    if parent is not None:
        threading.Thread(target=watch, args=(parent,), daemon=True).start()


def _start_resource_tracker() -> None:
    """Starts the process in which Python keeps track of shared memory. By itself it ignores SIGINT
    and SIGTERM, but a SIGHUP to the whole process group would end it."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # inherited
    try:
        resource_tracker.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class _Steps:
    """A plan seen as a random-access source: element i is step start + i."""

    def __init__(self, plan: Plan | EvaluationPlan, start: int, stop: int,
                 row_indices: Sequence[int]):
        self._plan = plan
        self._start = start
        self._stop = stop
        self._row_indices = tuple(int(row) for row in row_indices)

    def __len__(self) -> int:
        return max(0, self._stop - self._start)

    def __getitem__(self, index: Any) -> tuple[int, Batch]:
        step = self._start + int(index)
        return step, self._plan.rows(step, self._row_indices)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _end_with_parent()  # unpickled: this is a worker

    def __repr__(self) -> str:
        return f"steps {self._start} to {self._stop}"


def make_loader(
    plan: Plan | EvaluationPlan,
    start_step: int,
    stop_step: int,
    row_indices: Sequence[int],
    workers: int = 0,
    prefetch: int = 4,
) -> Generator[tuple[int, Batch], None, None]:
    """Iterates over (step, rows of this host).

    Args:
      plan: what the rows are.
      start_step, stop_step: first step, and the one after the last.
      row_indices: the rows of each batch that this host holds.
      workers: processes that prepare batches; 0 prepares them in threads of this process.
      prefetch: batches prepared ahead.

    Returns:
      A generator; `close()` ends its threads or processes.
    """
    if not flags.FLAGS.is_parsed():
        flags.FLAGS.mark_as_parsed()  # Grain's workers read its flags; the defaults are right.
    count = stop_step - start_step
    if count <= 0:
        return
    # A Grain worker that reaches its end leaves the last batch in shared memory, and Python warns
    # of the leak. So the workers get a few more steps than needed and are closed before the end.
    per_worker = -(-prefetch // max(1, workers))
    beyond = workers * (per_worker + 4)
    steps = grain.MapDataset.source(_Steps(plan, start_step, stop_step + beyond, row_indices))
    if workers:
        _start_resource_tracker()
        # Each worker prepares every workers-th step, in one thread.
        dataset = steps.to_iter_dataset(grain.ReadOptions(num_threads=1, prefetch_buffer_size=1))
        dataset = dataset.mp_prefetch(grain.MultiprocessingOptions(
            num_workers=workers, per_worker_buffer_size=per_worker))
    else:
        dataset = steps.to_iter_dataset(
            grain.ReadOptions(num_threads=min(prefetch, 2), prefetch_buffer_size=prefetch))
    iterator = iter(dataset)
    try:
        for step, batch in itertools.islice(iterator, count):
            if workers:
                # A worker's arrays are in shared memory, which is scarce; replacing them by copies
                # frees it.
                batch = {k: np.array(v) for k, v in batch.items()}
            yield step, batch
    finally:
        close = getattr(iterator, "close", None)
        if close is not None:
            close()
