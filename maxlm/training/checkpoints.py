"""Checkpoints: asynchronous Orbax saves, checked when read, refused when they are of another run.

    RUN/checkpoints/STEP/state/           arrays of TrainState (Orbax, OCDBT)
    RUN/checkpoints/STEP/meta/            JSON: config, plan, tokens seen
    RUN/checkpoints/STEP/checksums.json   size and checksum of each file
    RUN/damaged_checkpoints/STEP          what failed the check, moved out of the way

Orbax writes into a temporary directory and renames it, so a killed save leaves nothing that looks
like a checkpoint. A disk or copy may still damage files later; their checksums find that.
"""

import contextlib
import dataclasses
import errno
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp
import xxhash
from jax.experimental import multihost_utils

from maxlm.config import CheckpointConfig, ConfigError
from maxlm.training.state import TrainState

LISTING = "checksums.json"
# Orbax writes its own time stamps into this one while it renames the directory.
UNLISTED = (LISTING, "_CHECKPOINT_METADATA")

# Older than this many seconds of saving means a lost host or a dead disk (Orbax's own limit).
SAVE_TIMEOUT_SECONDS = 1200


class CheckpointError(ConfigError):
    """A checkpoint that is damaged, missing, of another run, or cannot be written."""


@dataclasses.dataclass(frozen=True)
class Meta:
    """What is stored beside the arrays. Everything is plain JSON."""

    config: dict[str, Any]  # the resolved config of the run
    plan: dict[str, Any]  # Plan.describe(), `hash` included
    tokens: int  # trained tokens up to and including this step


def _file_checksums(directory: Path) -> dict[str, list[Any]]:
    """Relative path -> [bytes, xxh3-64 of the content] of every file below, sorted."""
    table = {}
    for file in sorted(p for p in directory.rglob("*") if p.is_file() and p.name not in UNLISTED):
        digest = xxhash.xxh3_64()
        with file.open("rb") as stream:
            while block := stream.read(1 << 22):
                digest.update(block)
        table[file.relative_to(directory).as_posix()] = [file.stat().st_size, digest.hexdigest()]
    return table


def differences(saved: Any, wanted: Any, path: str) -> list[str]:
    """One line per leaf in which two JSON trees differ, named by its dotted path."""
    if isinstance(saved, dict) and isinstance(wanted, dict):
        lines = []
        for key in dict.fromkeys([*saved, *wanted]):
            if key not in saved or key not in wanted:
                have, lack = ("checkpoint", "this run") if key in saved else (
                    "this run", "the checkpoint")
                lines.append(f"{path}.{key}: only {have} has it, {lack} does not")
            else:
                lines += differences(saved[key], wanted[key], f"{path}.{key}")
        return lines
    if isinstance(saved, list) and isinstance(wanted, list) and len(saved) == len(wanted):
        return [line for i, (a, b) in enumerate(zip(saved, wanted, strict=True))
                for line in differences(a, b, f"{path}[{i}]")]
    return [] if saved == wanted else [f"{path}: checkpoint {saved!r}, this run {wanted!r}"]


def _explain(error: BaseException) -> str | None:
    """The operating system's reason for a failed write, looked for through the chain of causes."""
    seen: BaseException | None = error
    while seen is not None:
        text = str(seen)
        if isinstance(seen, OSError) and seen.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return os.strerror(seen.errno)
        for code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            if os.strerror(code) in text:  # tensorstore reports the text, not the number
                return os.strerror(code)
        seen = seen.__cause__ or seen.__context__
    return None


class Checkpointer:
    """Saves and restores the state of one run under `workdir`."""

    def __init__(self, workdir: str | os.PathLike[str], config: CheckpointConfig):
        self._config = config
        self._directory = Path(workdir).resolve() / "checkpoints"
        self._damaged = Path(workdir).resolve() / "damaged_checkpoints"
        self._last_save_time = time.monotonic()
        with self._reporting_failure("the checkpoint directory could not be made"):
            self._manager = ocp.CheckpointManager(
                self._directory,
                item_handlers={"state": ocp.StandardCheckpointHandler(),
                               "meta": ocp.JsonCheckpointHandler()},
                options=ocp.CheckpointManagerOptions(
                    max_to_keep=config.keep,
                    cleanup_tmp_directories=True,
                    enable_async_checkpointing=True,
                    async_options=ocp.AsyncOptions(
                        timeout_secs=SAVE_TIMEOUT_SECONDS,
                        post_finalization_callback=self._list_files),
                ),
            )

    def steps(self) -> list[int]:
        """Steps with a whole checkpoint, ascending."""
        return sorted(self._manager.all_steps())

    def due(self, step: int) -> bool:
        """Whether a checkpoint should be taken after `step`, by steps or by wall time.

        Hosts have different clocks, so the first one decides about time, every tenth step.
        """
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
        """Starts writing a checkpoint; returns when the arrays are copied, before they are written.

        Raises:
          CheckpointError: this or the previous save could not be written.
        """
        if step in self._manager.all_steps():
            return
        with self._reporting_failure(f"the checkpoint of step {step} could not be written"):
            self._manager.save(step, args=ocp.args.Composite(
                state=ocp.args.StandardSave(state._asdict()),
                meta=ocp.args.JsonSave(dataclasses.asdict(meta))))
        self._last_save_time = time.monotonic()

    def _list_files(self) -> None:
        """Writes the checksums into the checkpoint being written.

        Orbax calls this in its background thread when all files are there and before it renames
        the temporary directory, so a whole checkpoint always has its list.
        """
        if jax.process_index() != 0:
            return
        for directory in self._directory.glob(f"*{ocp.path.step.TMP_DIR_SUFFIX}*"):
            table = _file_checksums(directory)
            (directory / LISTING).write_text(json.dumps(table, indent=1), encoding="utf-8")

    def close(self) -> None:
        """Finishes the save under way; after this every saved checkpoint is whole and listed."""
        with self._reporting_failure("the last checkpoint could not be written"):
            self._manager.wait_until_finished()
        self._manager.close()

    @contextlib.contextmanager
    def _reporting_failure(self, what: str) -> Iterator[None]:
        try:
            yield
        except CheckpointError:
            raise
        except Exception as error:
            reason = _explain(error)
            if reason is None:
                raise
            whole = [int(p.name) for p in self._directory.glob("*") if p.name.isdigit()]
            rest = f"the newest whole one is of step {max(whole)}" if whole else "there is no other"
            raise CheckpointError(f"{what}: {reason} ({self._directory}); {rest}. Free some space "
                                  "and run the same command again") from error

    # -- reading -----------------------------------------------------------------------------

    def damage(self, step: int) -> str | None:
        """What is wrong with the files of a checkpoint, or None."""
        directory = self._directory / str(step)
        try:
            expected = json.loads((directory / LISTING).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return f"file {LISTING} is missing"
        except ValueError:
            return f"file {LISTING} is not valid JSON"
        found = _file_checksums(directory)
        for name, (size, checksum) in expected.items():
            if name not in found:
                return f"file {name} is missing"
            if found[name][0] != size:
                return f"file {name} has {found[name][0]} bytes instead of {size}"
            if found[name][1] != checksum:
                return f"file {name} has changed (checksum)"
        return None

    def restore_newest(
        self, abstract: TrainState, check: Callable[[Meta], None], report: Callable[[str], None]
    ) -> tuple[int, TrainState, Meta] | None:
        """The newest checkpoint whose files are intact.

        Args:
          abstract: see `restore`.
          check: raises when the checkpoint belongs to another run; called before arrays are read.
          report: gets a line for each damaged newer checkpoint, which is moved to
            RUN/damaged_checkpoints so that its step can be saved again.

        Returns:
          Step, state and meta, or None when the run has no checkpoint yet.

        Raises:
          CheckpointError: there are checkpoints, but all of them are damaged.
        """
        problems: dict[int, str] = {}
        for step in reversed(self.steps()):
            problem = self.damage(step) if jax.process_index() == 0 else None
            broken = problem is not None
            if jax.process_count() > 1:
                broken = bool(multihost_utils.broadcast_one_to_all(broken))
            if broken:
                problems[step] = f"checkpoint {step} is damaged: {problem}"
                continue
            meta = self.read_meta(step)
            check(meta)
            for other, line in problems.items():
                report(f"{line}; moved to {self._damaged / str(other)}")
                self._set_aside(other)
            return step, self.restore(step, abstract), meta
        if problems:
            raise CheckpointError(
                f"{'; '.join(problems.values())}; none of the checkpoints in {self._directory} can "
                "be used. Restore the files, or use another --workdir to start from step 0")
        return None

    def _set_aside(self, step: int) -> None:
        if jax.process_index() == 0:
            self._damaged.mkdir(exist_ok=True)
            target = self._damaged / str(step)
            while target.exists():
                target = target.with_name(target.name + "+")
            os.rename(self._directory / str(step), target)
        if jax.process_count() > 1:
            multihost_utils.sync_global_devices(f"set aside checkpoint {step}")
        self._manager.reload()

    def read_meta(self, step: int) -> Meta:
        """Config, plan and token count of a checkpoint.

        Raises:
          CheckpointError: no such step, or not readable.
        """
        if step not in self.steps():
            have = ", ".join(map(str, self.steps())) or "none"
            raise CheckpointError(
                f"no checkpoint of step {step} in {self._directory}; have: {have}")
        restored = self._manager.restore(step, args=ocp.args.Composite(meta=ocp.args.JsonRestore()))
        return Meta(**restored["meta"])

    def restore(self, step: int, abstract: TrainState) -> TrainState:
        """The arrays of a checkpoint, laid out as `abstract` says, on any number of devices.

        Args:
          step: one of `steps()`.
          abstract: `jax.ShapeDtypeStruct` leaves with shardings, from `state.abstract_state`.

        Raises:
          CheckpointError: an array is missing, superfluous, or of another shape or dtype.
        """
        stored = self._manager.item_metadata(step)["state"]
        wanted = _leaf_table(abstract._asdict())
        have = _leaf_table(stored.tree if hasattr(stored, "tree") else stored)
        problems = [f"{name}: missing in the checkpoint" for name in wanted if name not in have]
        problems += [f"{name}: only in the checkpoint" for name in have if name not in wanted]
        problems += [f"{name}: checkpoint {have[name]}, this run {wanted[name]}"
                     for name in wanted if name in have and have[name] != wanted[name]]
        if problems:
            more = f" (and {len(problems) - 4} more)" if len(problems) > 4 else ""
            raise CheckpointError(
                f"checkpoint {step} does not fit: {'; '.join(problems[:4])}{more}")
        restored = self._manager.restore(step, args=ocp.args.Composite(
            state=ocp.args.StandardRestore(abstract._asdict())))
        return TrainState(**restored["state"])


def _leaf_table(tree: Any) -> dict[str, str]:
    """Path -> 'dtype[shape]' of every array in a tree."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]

    def name(path: Any) -> str:
        parts = [getattr(k, "key", getattr(k, "name", getattr(k, "idx", k))) for k in path]
        return ".".join(str(part) for part in parts)

    return {name(path): f"{leaf.dtype}{list(leaf.shape)}" for path, leaf in leaves
            if hasattr(leaf, "shape")}
