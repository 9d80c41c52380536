"""A finished or running training run, opened for reading: config, weights, tokenizer."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
from jax.sharding import Mesh

from maxlm.config import (
    Config,
    ConfigError,
    ParallelConfig,
    build,
    from_config_dict,
    override,
)
from maxlm.data.tokenizer import Tokenizer
from maxlm.models import transformer
from maxlm.parallel.mesh import make_mesh
from maxlm.training.checkpoint_reader import CheckpointError, Reader


@dataclasses.dataclass(frozen=True)
class Run:
    """What reading commands need of a run.

    Attributes:
      step: of the checkpoint.
      config: stored in the checkpoint, with overrides and a mesh that fits this machine.
      mesh: over all devices here.
      params: float32 weights, laid out on `mesh`.
      tokenizer: the one the run was trained with.
    """

    step: int
    config: Config
    mesh: Mesh
    params: Any
    tokenizer: Tokenizer


def open_run(
    workdir: str | Path, step: int | None = None, overrides: Sequence[tuple[str, str]] = ()
) -> Run:
    """Reads a checkpoint's config and weights; the optimizer's arrays are left on disk.

    Args:
      workdir: `--workdir` of the training run.
      step: which checkpoint; None for the newest.
      overrides: (dotted field, text) as on the command line, applied to the stored config.

    Raises:
      ConfigError: no run there, no such checkpoint, a damaged one, a bad override.
    """
    workdir = Path(workdir)
    if not (workdir / "config.json").is_file():
        raise ConfigError(f"--workdir: {str(workdir)!r} holds no run (no config.json); give the "
                          "--workdir of python -m maxlm.train")
    reader = Reader(workdir)
    if not reader.steps():
        raise CheckpointError(f"--workdir: {str(workdir)!r} has no checkpoint yet")
    step = reader.steps()[-1] if step is None else step
    meta = reader.read_meta(step)
    if problem := reader.damage(step):
        others = ", ".join(str(s) for s in reader.steps() if s != step) or "none"
        raise CheckpointError(f"checkpoint {step} is damaged: {problem}; other steps: {others}")
    config = _resolve(meta.config, overrides)
    mesh = make_mesh(config.parallel)
    shardings = transformer.param_shardings(config.model, mesh)
    abstract = jax.tree.map(
        lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
        transformer.abstract_params(config.model), shardings,
        is_leaf=lambda leaf: hasattr(leaf, "logical_axes"))
    params = reader.restore_params(step, abstract)
    return Run(step, config, mesh, params, Tokenizer.load(workdir / "tokenizer.model"))


def _resolve(stored: dict[str, Any], overrides: Sequence[tuple[str, str]]) -> Config:
    face = build(Config, json.loads(json.dumps(stored))).to_config_dict()
    for name, text in overrides:
        override(face, Config, name, text)
    config = from_config_dict(Config, face)
    try:
        config.parallel.sizes(jax.device_count())
    except ConfigError:
        if any(name.startswith("parallel.") for name, _ in overrides):
            raise
        # Trained on another number of devices: spread the weights over those that are here.
        config = dataclasses.replace(config, parallel=ParallelConfig(data=1, fsdp=-1))
    return config
