"""Saves checkpoints asynchronously with Orbax, and restores the newest complete one of a run.

    RUN/checkpoints/STEP/            see maxlm/training/checkpoint_reader.py
    RUN/checkpoint_status.json       which of them are good, see maxlm/training/checkpoint_status.py
    RUN/damaged_checkpoints/STEP     moved here because a file failed its checksum
    RUN/rejected_checkpoints/STEP    moved here on resume, because the run diverged after it

Orbax writes into a temporary directory and renames it at the end, so a killed save leaves no
directory that could be taken for a checkpoint.
"""

import contextlib
import dataclasses
import functools
import logging
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

import jax
import orbax.checkpoint as ocp
from jax.experimental import multihost_utils

from maxlm.config import CheckpointConfig, RunFailure
from maxlm.parallel import processes
from maxlm.telemetry.console import log
from maxlm.training.checkpoint_reader import (
    CheckpointError,
    Meta,
    Reader,
    refuse_other_arrays,
    write_listing,
)
from maxlm.training.checkpoint_status import FILE, REJECTED, CheckpointStatus
from maxlm.training.faults import full_disk
from maxlm.training.state import TrainState, nonfinite_arrays

# A save that takes longer than this many seconds fails (a lost host, a dead disk). Orbax's limit.
SAVE_TIMEOUT_SECONDS = 1200
_DAMAGED, _REJECTED = "damaged_checkpoints", "rejected_checkpoints"


@functools.cache
def _suppress_duplicate_disk_full_logs() -> None:
    """Keeps a full disk to the one line that the command prints.

    Orbax and asyncio log the same error with tracebacks. The other TensorStore writes of that save
    raise "Event loop is closed" in callbacks, which reaches `sys.unraisablehook`.
    """

    def is_disk_full(record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return error is not None and full_disk(error) is not None

    for name in ("absl", "asyncio"):
        logging.getLogger(name).addFilter(lambda record: not is_disk_full(record))
    previous_hook = sys.unraisablehook

    def ignore_closed_event_loop(unraisable: Any) -> None:
        callback = unraisable.object is None and isinstance(unraisable.exc_value, RuntimeError)
        if not (callback and str(unraisable.exc_value) == "Event loop is closed"):
            previous_hook(unraisable)

    sys.unraisablehook = ignore_closed_event_loop


class _KeepGood:
    """Orbax's preservation policy: keeps the checkpoints that `CheckpointStatus` preserves."""

    def __init__(self, status: CheckpointStatus):
        self._status = status

    def should_preserve(self, checkpoints: Sequence[Any], *, context: Any) -> list[bool]:
        """Orbax deletes the others once the checkpoint being saved is on disk."""
        preserved = self._status.preserved()
        self._status.of = {step: self._status.of[step] for step in sorted(preserved)}
        return [checkpoint.step in preserved for checkpoint in checkpoints]


class Checkpointer:
    """Saves and restores the state of one run under `workdir`.

    As a context manager it finishes the save in progress, also when the block raises.
    """

    def __init__(self, workdir: str | os.PathLike[str], config: CheckpointConfig):
        self._config = config
        self.reader = Reader(workdir)
        self._directory = self.reader.directory
        self._workdir = Path(workdir).resolve()
        self._status = CheckpointStatus(config)
        self._status.read(self._workdir / FILE, self.reader.steps())
        self._written = dict(self._status.of)
        self._last_save_time = time.monotonic()
        self._closed = False
        _suppress_duplicate_disk_full_logs()
        self._remove_unfinished()
        with self._reporting_failure():
            self._manager = ocp.CheckpointManager(
                self._directory,
                item_handlers={"state": ocp.StandardCheckpointHandler(),
                               "meta": ocp.JsonCheckpointHandler()},
                options=ocp.CheckpointManagerOptions(
                    preservation_policy=_KeepGood(self._status),
                    enable_async_checkpointing=True,
                    async_options=ocp.AsyncOptions(
                        timeout_secs=SAVE_TIMEOUT_SECONDS,
                        post_finalization_callback=self._write_checksums),
                ),
            )

    def _unfinished(self) -> Iterator[Path]:
        """Directories of saves that are in progress or were killed."""
        return self._directory.glob(f"*{ocp.path.step.TMP_DIR_SUFFIX}*")

    def _remove_unfinished(self) -> None:
        """Deletes the directories of killed saves.

        Orbax would do it in a thread that nothing waits for: a command that exits early, for
        example on a config error, would print that thread's traceback.
        """
        if jax.process_index() == 0:
            for directory in self._unfinished():
                shutil.rmtree(directory)

    def steps(self) -> list[int]:
        """Steps with a complete checkpoint, ascending."""
        return sorted(self._manager.all_steps())

    def due(self, step: int) -> bool:
        """Whether a checkpoint should be saved after `step`, by steps or by wall time.

        Hosts have different clocks, so with several processes the first one decides about wall
        time, every tenth step.

        Raises:
          RunFailure: the save in progress has failed; the disk is full.
        """
        with self._reporting_failure():
            self._manager.check_for_errors()
        if self._config.every_steps and step % self._config.every_steps == 0:
            return True
        if not self._config.every_minutes:
            return False
        late = time.monotonic() - self._last_save_time >= self._config.every_minutes * 60
        if jax.process_count() > 1:
            if step % 10:
                return False
            late = bool(multihost_utils.broadcast_one_to_all(late))
        return late

    def save(self, step: int, state: TrainState, meta: Meta) -> None:
        """Starts a save; returns when the arrays are copied, before they are written.

        Raises:
          RunFailure: an array is not finite; this or the previous save could not be written; the
            disk is full.
        """
        if names := nonfinite_arrays(state):
            self._diverged(f"after step {step} these arrays are not finite: {_listed(names)}")
        with self._reporting_failure():
            self._status.add(step)
            self._write_status()
            saved = self._manager.save(step, args=ocp.args.Composite(
                state=ocp.args.StandardSave(state._asdict()),
                meta=ocp.args.JsonSave(dataclasses.asdict(meta))))
        assert saved, f"Orbax skipped the checkpoint of step {step}"
        self._last_save_time = time.monotonic()

    def judge_by(self, evaluation_set: str | None) -> None:
        """Sets the evaluation set (None: no evaluations). Called before the first step."""
        self._status.evaluation_set = evaluation_set

    def after_step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Judges a step and the checkpoints before it.

        Raises:
          RunFailure: the run has diverged. Names the last good checkpoint.
        """
        self._judged(self._status.after_step(step, metrics))

    def after_evaluation(self, step: int, loss: float) -> None:
        """Judges a held-out loss and the checkpoints before it; raises as `after_step`."""
        self._judged(self._status.after_evaluation(step, loss))

    def after_last_step(self, step: int) -> None:
        """Judges the last checkpoint of a complete run and deletes those that are not preserved;
        raises as `after_step`."""
        self._judged(self._status.after_last_step(step))
        with self._reporting_failure():
            self._manager.wait_until_finished()
        for other in set(self.steps()) - self._status.preserved():
            self._manager.delete(other)
            del self._status.of[other]
        self._write_status()

    def _judged(self, problem: str | None) -> None:
        if problem:
            self._diverged(problem)
        if self._status.of != self._written:
            self._write_status()

    def _diverged(self, problem: str) -> NoReturn:
        """Rejects the checkpoints that are not confirmed and raises RunFailure."""
        self._status.reject_candidates()
        self._write_status()
        good = self._status.last_good()
        raise RunFailure(f"the run has diverged: {problem}. " + (
            "No checkpoint is good, so the same command starts from step 0" if good is None else
            f"The last good checkpoint is of step {good}, and the same command resumes there")
            + ". Before, lower the learning rate or the clip norm, or look at the documents of the "
            "last batches")

    def _write_status(self) -> None:
        self._written = dict(self._status.of)
        if jax.process_index() == 0:
            self._status.write(self._workdir / FILE)

    def _write_checksums(self) -> None:
        """Writes the checksums into the checkpoint being saved.

        Orbax calls this in its background thread after all files are written and before it renames
        the temporary directory, so every complete checkpoint has its checksums.
        """
        if jax.process_index() != 0:
            return
        for directory in self._unfinished():
            write_listing(directory)

    def close(self) -> None:
        """Finishes the save in progress; then every saved checkpoint is complete."""
        if self._closed:
            return
        self._closed = True
        try:
            with self._reporting_failure():
                self._manager.wait_until_finished()
        finally:
            self._manager.close()

    def __enter__(self) -> "Checkpointer":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        try:
            self.close()
        except RunFailure as second:
            if error is None:
                raise
            log(f"failed too: {second}")  # the block's own error propagates

    @contextlib.contextmanager
    def _reporting_failure(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            reason = full_disk(error)
            if reason is None:
                raise
            steps = self.reader.steps()
            rest = f"the newest complete one is of step {steps[-1]}" if steps else (
                "there is no other")
            raise RunFailure(f"a checkpoint could not be written to {self._directory}: {reason}; "
                             f"{rest}. Free some space and run the same command again") from error

    def restore_newest(
        self, abstract: TrainState, check: Callable[[int, Meta], None],
        report: Callable[[str], None]
    ) -> tuple[int, TrainState, Meta] | None:
        """Restores the newest checkpoint that was not rejected and has intact files, finite arrays.

        That is the newest good one, or a newer candidate if the run was interrupted.

        Args:
          abstract: see `restore`.
          check: called with step and meta before the arrays are read; raises when the checkpoint
            belongs to another run.
          report: called with a line for each newer checkpoint. These are moved to
            RUN/damaged_checkpoints or RUN/rejected_checkpoints so that their steps can be saved
            again.

        Returns:
          Step, state and meta, or None when the run has no checkpoint yet, or only rejected ones.

        Raises:
          CheckpointError: no checkpoint can be used, and at least one is damaged.
        """
        # Without shared storage each process would restore another checkpoint.
        processes.require_same(**{f"list of checkpoints in {self._directory}":
                                  str([self.steps(), self._status.of])})
        problems: dict[int, tuple[str, str]] = {}  # step -> problem, folder to move it to
        for step in reversed(self.steps()):
            problem = processes.first_problem(
                self.reader.damage(step, *processes.process_index_and_count()))
            if problem is not None:
                problems[step] = f"checkpoint {step} is damaged: {problem}", _DAMAGED
                continue
            meta = self.reader.read_meta(step)
            check(step, meta)
            if self._status.of.get(step) == REJECTED:
                problems[step] = f"checkpoint {step} is of a run that diverged after it", _REJECTED
                continue
            state = self.restore(step, abstract)
            if names := nonfinite_arrays(state):
                problems[step] = f"checkpoint {step} is not finite: {_listed(names)}", _REJECTED
                continue
            self._set_aside(problems, report)
            return step, state, meta
        if any(folder == _DAMAGED for _, folder in problems.values()):
            raise CheckpointError(
                f"{'; '.join(line for line, _ in problems.values())}; none of the checkpoints in "
                f"{self._directory} can be used. Restore the files, or use another --workdir to "
                "start from step 0")
        self._set_aside(problems, report)
        return None

    def _set_aside(self, problems: Mapping[int, tuple[str, str]], report: Callable[[str], None]
                   ) -> None:
        for step, (line, folder) in problems.items():
            target = self._workdir / folder / str(step)
            if jax.process_index() == 0:
                target.parent.mkdir(exist_ok=True)
                if folder == _REJECTED and target.exists():  # from an earlier attempt
                    shutil.rmtree(target)
                while target.exists():
                    target = target.with_name(target.name + "+")
                os.rename(self._directory / str(step), target)
            report(f"{line}; moved to {target}")
            self._status.of.pop(step, None)
        if problems:
            if jax.process_count() > 1:
                multihost_utils.sync_global_devices("set checkpoints aside")
            self._manager.reload()
            self._write_status()

    def restore(self, step: int, abstract: TrainState) -> TrainState:
        """Restores the arrays of a checkpoint with the shardings of `abstract`.

        Args:
          step: one of `steps()`.
          abstract: `jax.ShapeDtypeStruct` leaves with shardings, from `state.abstract_state`.

        Raises:
          CheckpointError: an array is missing, unexpected, or of another shape or dtype.
        """
        stored = self._manager.item_metadata(step)["state"]
        refuse_other_arrays(step, stored.tree, abstract._asdict())
        restored = self._manager.restore(step, args=ocp.args.Composite(
            state=ocp.args.StandardRestore(abstract._asdict())))
        return TrainState(**restored["state"])


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
