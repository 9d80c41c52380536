"""Opens a training run, finished or not, for reading: config, weights, tokenizer."""

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
from jax.sharding import Mesh

from maxlm.cli import outputs
from maxlm.config import (
    Config,
    ConfigError,
    ParallelConfig,
    build,
    from_config_dict,
    local_path,
    natures,
    override,
    to_plain,
)
from maxlm.data.tokenizer import Tokenizer, find_tokenizer
from maxlm.models import transformer
from maxlm.parallel.mesh import make_mesh
from maxlm.training.checkpoint_reader import CheckpointError, Meta, Reader


@dataclasses.dataclass(frozen=True)
class Run:
    """What `maxlm.evaluate` and `maxlm.generate` need of a run.

    Attributes:
      step: of the checkpoint.
      config: stored in the checkpoint, with overrides and a mesh that fits this machine.
      mesh: over all devices here.
      params: float32 weights, laid out on `mesh`.
      tokenizer: the one the run was trained with.
      plan: what the run reads, as stored in the checkpoint (see `maxlm.training.resume`).
    """

    step: int
    config: Config
    mesh: Mesh
    params: Any
    tokenizer: Tokenizer
    plan: dict[str, Any]


def open_run(
    workdir: str | Path, step: int | None = None, overrides: Sequence[tuple[str, str]] = ()
) -> Run:
    """Reads a checkpoint's config and weights; the optimizer's arrays are left on disk.

    Args:
      workdir: `--workdir` of the training run.
      step: which checkpoint; None for the one from which the run would resume.
      overrides: (dotted field, text) as on the command line, applied to the stored config. Only
        fields that do not change the model are allowed.

    Raises:
      ConfigError: no run there, no such checkpoint, a damaged one, a bad override.
    """
    step, meta, config, tokenizer = open_config(workdir, step, overrides)
    mesh = make_mesh(config.parallel)
    shardings = transformer.param_shardings(config.model, mesh)
    abstract = jax.tree.map(
        lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
        transformer.abstract_params(config.model), shardings,
        is_leaf=lambda leaf: hasattr(leaf, "logical_axes"))
    params = Reader(workdir).restore_params(step, abstract)
    return Run(step, config, mesh, params, tokenizer, meta.plan)


def open_config(
    workdir: str | Path, step: int | None = None, overrides: Sequence[tuple[str, str]] = ()
) -> tuple[int, Meta, Config, Tokenizer]:
    """Reads all that `open_run` reads except the weights: step, `Meta`, the config with a mesh that
    fits this machine, the tokenizer. Arguments and errors are those of `open_run`."""
    workdir = local_path(workdir, "--workdir")
    if not (workdir / "config.json").is_file():
        raise ConfigError(f"--workdir: {str(workdir)!r} holds no run (no config.json); give the "
                          "--workdir of python -m maxlm.train")
    reader = Reader(workdir)
    newest = reader.newest()
    if not reader.steps():
        raise CheckpointError(f"--workdir: {str(workdir)!r} has no checkpoint yet")
    step = newest if step is None else step
    if step is None:
        raise CheckpointError(f"--workdir: the run in {str(workdir)!r} has diverged and has no "
                              "good checkpoint; run it again with other settings, or give --step")
    reader.require(step)
    if problem := reader.damage(step):
        raise CheckpointError(f"checkpoint {step} is damaged: {problem}; {reader.advice(step)}")
    meta = reader.read_meta(step)
    config = _resolve(meta.config, overrides)
    tokenizer_path = find_tokenizer(workdir)
    tokenizer = Tokenizer.load(tokenizer_path, "--workdir")
    trained_with = meta.plan.get("tokenizer_sha256", tokenizer.sha256)
    if tokenizer.sha256 != trained_with:
        raise CheckpointError(
            f"{tokenizer_path}: not the tokenizer the run was trained with (sha256 "
            f"{tokenizer.sha256[:12]}, the checkpoint says {trained_with[:12]}); copy it back from "
            "the directory of the tokens")
    return step, meta, config, tokenizer


def write_run_files(config: Config, workdir: Path, tokenizer: Tokenizer) -> None:
    """Writes config.json and the tokenizer's files, which evaluate and generate read."""
    text = json.dumps(to_plain(config), indent=2) + "\n"
    for name, content in {"config.json": text.encode(), **tokenizer.files}.items():
        temporary = workdir / f"{name}.tmp"
        temporary.write_bytes(content)
        os.replace(temporary, workdir / name)


def _refuse_another_model(name: str) -> None:
    """Only fields that leave model and training as they were may be overridden on reading."""
    fixed = {field for field, affects in natures(Config).items()
             if affects & {"model", "training"}}
    if name not in fixed:
        return
    free: dict[str, list[str]] = {}
    for field in natures(Config):
        free.setdefault(field.partition(".")[0], []).append(field)
    names = []
    for section, fields in free.items():
        found = [field for field in fields if field not in fixed]
        names += [f"{section}.*"] if found == fields else found
    raise ConfigError(
        f"config.{name}: belongs to the trained run and cannot be changed here; what can: "
        + ", ".join(f"config.{name}" for name in names))


def stored_config(stored: dict[str, Any]) -> Config:
    """The config inside a checkpoint. Fields that it lacks take their defaults.

    Raises:
      CheckpointError: it has a field that this version of maxlm does not know.
    """
    try:
        return build(Config, json.loads(json.dumps(stored)))
    except ConfigError as error:
        raise CheckpointError("--workdir: its checkpoints were written by another version of maxlm "
                              f"({error})") from None


def _resolve(stored: dict[str, Any], overrides: Sequence[tuple[str, str]]) -> Config:
    table = stored_config(stored).to_config_dict()
    for name, text in overrides:
        override(table, Config, name, text)
        _refuse_another_model(name)
    config = from_config_dict(Config, table)
    try:
        config.parallel.sizes(jax.device_count())
    except ConfigError:
        if any(name.startswith("parallel.") for name, _ in overrides):
            raise
        # Trained on another number of devices: split the weights over the devices here.
        config = dataclasses.replace(config, parallel=ParallelConfig(data=1, fsdp=-1))
    return config


@contextlib.contextmanager
def sole_user(workdir: Path) -> Iterator[None]:
    """Holds the lock of a run, so that no other command trains in the same directory.

    If the block raises ConfigError before a checkpoint exists, what this start has made is removed.
    """
    new = [path for path in (workdir / "checkpoints", workdir / "lock", workdir, *workdir.parents)
           if not path.exists()]
    try:
        workdir.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ConfigError(f"--workdir: {str(workdir)!r} is, or lies below, a file; a directory is "
                          "needed") from None
    if jax.process_index() != 0:
        yield
        return
    with (workdir / "lock").open("w") as lock:
        outputs.lock(lock, f"--workdir: another process is training in {workdir}")
        try:
            yield
        except ConfigError:
            _remove_empty(new)
            raise


def _remove_empty(paths: Sequence[Path]) -> None:
    """Removes empty files and folders, until one is not empty."""
    with contextlib.suppress(OSError):  # a folder that is not empty
        for path in paths:
            if path.is_dir():
                path.rmdir()
            elif path.exists():
                path.unlink()
