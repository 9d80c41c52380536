"""Reads a run's checkpoints and verifies their files.

    RUN/checkpoints/STEP/state/           arrays of TrainState (Orbax, OCDBT)
    RUN/checkpoints/STEP/meta/            JSON: config, plan, tokens seen
    RUN/checkpoints/STEP/checksums.json   size and checksum of each file

A directory named by a number is a complete checkpoint: it is renamed to that number after all its
files are written. The checksums detect files that are damaged later.
"""

import dataclasses
import json
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp
import xxhash
from etils import epath

from maxlm.config import ConfigError
from maxlm.training.checkpoint_status import newest_not_rejected

LISTING = "checksums.json"
# Orbax writes time stamps into _CHECKPOINT_METADATA while it renames the directory.
UNLISTED = (LISTING, "_CHECKPOINT_METADATA")


class CheckpointError(ConfigError):
    """A checkpoint that is damaged, missing, of another run, or cannot be written."""


@dataclasses.dataclass(frozen=True)
class Meta:
    """What is stored beside the arrays, as plain JSON."""

    config: dict[str, Any]  # the resolved config of the run
    plan: dict[str, Any]  # Plan.describe(), `hash` included
    tokens: int  # tokens trained on, up to and including this step


def file_sizes(directory: Path) -> dict[str, int]:
    """Relative path -> bytes of every file below `directory` except UNLISTED, sorted by path."""
    files = sorted(p for p in directory.rglob("*") if p.is_file() and p.name not in UNLISTED)
    return {file.relative_to(directory).as_posix(): file.stat().st_size for file in files}


def file_checksums(directory: Path, names: Iterable[str]) -> dict[str, str]:
    """Relative path -> hexadecimal xxh3-64 of the content of these files."""

    def checksum(name: str) -> tuple[str, str]:
        digest = xxhash.xxh3_64()
        with (directory / name).open("rb") as stream:
            while block := stream.read(1 << 22):
                digest.update(block)
        return name, digest.hexdigest()

    # Hashing and reading both release the GIL.
    with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as threads:
        return dict(threads.map(checksum, names))


def write_listing(directory: Path) -> None:
    """Writes LISTING: relative path -> [bytes, xxh3-64] of every file."""
    sizes = file_sizes(directory)
    checksums = file_checksums(directory, sizes)
    table = {name: [size, checksums[name]] for name, size in sizes.items()}
    (directory / LISTING).write_text(json.dumps(table, indent=1), encoding="utf-8")


def differences(saved: Any, wanted: Any, path: str) -> list[str]:
    """One line per leaf in which two JSON trees differ, with the leaf's dotted path."""
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


def leaf_table(tree: Any) -> dict[str, str]:
    """Path -> 'dtype[shape]' of every array in a tree."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]

    def name(path: Any) -> str:
        parts = [getattr(k, "key", getattr(k, "name", getattr(k, "idx", k))) for k in path]
        return ".".join(str(part) for part in parts)

    return {name(path): f"{leaf.dtype}{list(leaf.shape)}" for path, leaf in leaves
            if hasattr(leaf, "shape")}


class Reader:
    """Reads the checkpoints under `workdir` and changes nothing there.

    Attributes:
      directory: RUN/checkpoints.
    """

    def __init__(self, workdir: str | os.PathLike[str]):
        self.directory = Path(workdir).resolve() / "checkpoints"

    def steps(self) -> list[int]:
        """Steps with a complete checkpoint, ascending."""
        if not self.directory.is_dir():
            return []
        return sorted(int(p.name) for p in self.directory.iterdir() if p.name.isdigit())

    def damage(self, step: int, part: int = 0, parts: int = 1) -> str | None:
        """What is wrong with the files of a checkpoint, or None.

        Args:
          part, parts: this process reads every `parts`-th file, from the `part`-th on. Names and
            lengths are compared for all files.
        """
        directory = self.directory / str(step)
        try:
            listing = json.loads((directory / LISTING).read_text(encoding="utf-8"))
            expected = {name: (int(size), str(checksum))
                        for name, (size, checksum) in listing.items()}
        except FileNotFoundError:
            return f"file {LISTING} is missing"
        except json.JSONDecodeError:
            return f"file {LISTING} is not valid JSON"
        except (AttributeError, TypeError, ValueError):
            return f"file {LISTING} is not a list of files"
        sizes = file_sizes(directory)
        for name, (size, _) in expected.items():
            if name not in sizes:
                return f"file {name} is missing"
            if sizes[name] != size:
                return f"file {name} has {sizes[name]} bytes instead of {size}"
        for name, checksum in file_checksums(directory, list(expected)[part::parts]).items():
            if checksum != expected[name][1]:
                return f"file {name} has changed (checksum)"
        return None

    def advice(self, damaged: int) -> str:
        """Which checkpoint to use in place of a damaged one. Verifies files, from the newest on."""
        others = [step for step in self.steps() if step != damaged]
        while (step := newest_not_rejected(self.directory.parent, others)) is not None:
            if self.damage(step) is None:
                return f"add --step={step} to use the newest sound checkpoint"
            others.remove(step)
        return "there is no sound checkpoint"

    def read_meta(self, step: int) -> Meta:
        """Config, plan and token count of a checkpoint.

        Raises:
          CheckpointError: no such step.
        """
        self.require(step)
        with ocp.Checkpointer(ocp.JsonCheckpointHandler()) as checkpointer:
            return Meta(**checkpointer.restore(self.directory / str(step) / "meta"))

    def restore_params(self, step: int, abstract: Any) -> Any:
        """The float32 weights alone.

        Args:
          step: one of `steps()`.
          abstract: parameter tree of `jax.ShapeDtypeStruct` with shardings.

        Raises:
          CheckpointError: no such step, or a parameter of another name, shape or dtype.
        """
        return self.restore_state(step, {"params": abstract})["params"]

    def restore_state(self, step: int, item: dict[str, Any]) -> dict[str, Any]:
        """Fields of a `TrainState`.

        Args:
          step: one of `steps()`.
          item: name of the field -> tree of `jax.ShapeDtypeStruct` with shardings.

        Raises:
          CheckpointError: no such step, or an array of another name, shape or dtype.
        """
        self.require(step)
        path = self.directory / str(step) / "state"
        with ocp.PyTreeCheckpointer() as checkpointer:
            stored = ocp.StandardCheckpointHandler().metadata(epath.Path(path))
            refuse_other_arrays(step, {name: stored.tree[name] for name in item}, item)
            return checkpointer.restore(path, args=ocp.args.PyTreeRestore(
                item=item, partial_restore=True,
                restore_args=ocp.checkpoint_utils.construct_restore_args(item)))

    def newest(self) -> int | None:
        """The newest checkpoint that was not rejected, from which a run resumes; None without any.

        Raises:
          ConfigError: the status file is damaged.
        """
        return newest_not_rejected(self.directory.parent, self.steps())

    def require(self, step: int) -> None:
        """Raises CheckpointError, listing the existing steps, when this checkpoint is missing."""
        if step not in self.steps():
            have = ", ".join(map(str, self.steps())) or "none"
            raise CheckpointError(
                f"no checkpoint of step {step} in {self.directory}; have: {have}")


def refuse_other_arrays(step: int, stored: Any, wanted: Any) -> None:
    """Raises CheckpointError unless both trees have the same arrays by path, shape and dtype."""
    have, want = leaf_table(stored), leaf_table(wanted)
    problems = [f"{name}: missing in the checkpoint" for name in want if name not in have]
    problems += [f"{name}: only in the checkpoint" for name in have if name not in want]
    problems += [f"{name}: checkpoint {have[name]}, this run {want[name]}"
                 for name in want if name in have and have[name] != want[name]]
    if problems:
        more = f" (and {len(problems) - 4} more)" if len(problems) > 4 else ""
        raise CheckpointError(f"checkpoint {step} does not fit: {'; '.join(problems[:4])}{more}")
