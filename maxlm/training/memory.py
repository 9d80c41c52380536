"""A lower bound of the memory of a training run, computed before anything is compiled.

The bound counts only what every compiled train step must hold at once, so a run that would fit is
never refused. A run that passes may still run out of memory.

Sizes are in bytes; in messages, in GB of 1e9 bytes.
"""

import dataclasses
import math
import os
from collections.abc import Iterable
from pathlib import Path

import jax
from jax.sharding import AbstractMesh, Mesh

from maxlm.config import MESH_AXES, Config, ConfigError
from maxlm.models.counts import param_count
from maxlm.parallel import processes
from maxlm.parallel.mesh import batch_shards
from maxlm.training.state import abstract_state

CHANGES = ("raise run.accumulation_steps, set model.remat to full, or split the model over more "
           "devices (parallel.fsdp, parallel.tensor)")


@dataclasses.dataclass(frozen=True)
class Needed:
    """Lower bound for one device.

    Attributes:
      state: float32 weights and moments.
      gradients: one number for each weight.
      activations: the input of each block for one microbatch.
      accumulated: whether the gradients of earlier microbatches are held during the backward pass.
    """

    state: int
    gradients: int
    activations: int
    accumulated: bool

    @property
    def total(self) -> int:
        # Without accumulation a block's input may be freed as its gradients appear.
        rest = sum if self.accumulated else max
        return self.state + rest((self.gradients, self.activations))


def needed(config: Config, mesh: Mesh | AbstractMesh) -> Needed:
    """The lower bound for the train step of this configuration on each device of the mesh.

    All gradients exist at the same time, because they are clipped by their global norm. Over
    several microbatches they are summed in float32; those of a single microbatch may stay in the
    compute dtype.

    Raises:
      ConfigError: a parameter cannot be divided over the mesh as the rules say.
    """
    abstract = abstract_state(config, mesh)  # pyright: ignore[reportArgumentType]: shapes only

    def size(tree: object) -> int:
        return sum(math.prod(leaf.sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize
                   for leaf in jax.tree.leaves(tree))

    compute = jax.numpy.dtype(config.precision.compute).itemsize
    accumulated = config.run.accumulation_steps > 1
    rows = config.data.batch_size // (batch_shards(mesh) * config.run.accumulation_steps)
    width = config.model.embed_dim // mesh.shape["tensor"]
    return Needed(
        state=size(abstract),
        gradients=size(abstract.params) * (4 if accumulated else compute) // 4,
        activations=rows * config.data.sequence_length * width * compute * config.model.num_layers,
        accumulated=accumulated)


def available() -> tuple[int, str] | None:
    """The most memory that each local device can have, and a description of it; None if unknown.

    On an accelerator: the part of its memory that XLA may use. On the CPU: the host's memory and
    swap, or the limit of the control group, divided by the number of devices.
    """
    devices = jax.local_devices()
    if devices[0].platform == "cpu":
        limit = host_memory()
        if limit is None:
            return None
        name = "of host memory" + (f" for each of {len(devices)} devices" if len(devices) > 1
                                   else "")
        return limit // len(devices), name
    try:
        limits = [(device.memory_stats() or {}).get("bytes_limit", 0) for device in devices]
    except jax.errors.JaxRuntimeError:
        return None
    if not all(limits):
        return None
    kind = f"on each {devices[0].device_kind}"
    if devices[0].platform == "gpu":
        kind += " for XLA (XLA_PYTHON_CLIENT_MEM_FRACTION of its memory)"
    return min(limits), kind


def host_memory(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> int | None:
    """The most memory that this process can have: the smaller of physical memory and the lowest
    limit of its control groups (version 1 or 2), plus swap. None on a system without /proc."""
    try:
        lines = (line.split() for line in (proc / "meminfo").read_text().splitlines())
        table = {words[0]: int(words[1]) * 1024 for words in lines if len(words) > 1}
        physical, swap = table["MemTotal:"], table.get("SwapTotal:", 0)
    except (OSError, KeyError, ValueError):
        return None
    return min([physical, *_cgroup_limits(proc, cgroups)]) + swap


def _cgroup_limits(proc: Path, cgroups: Path) -> Iterable[int]:
    """The limits of this process's control group and of those above it."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, name = cgroups, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = cgroups / "memory", "memory.limit_in_bytes"
        else:
            continue
        # Inside a container the path may be that of the host. Then the root has the limit.
        folder = Path(os.path.normpath(f"{root}/{path}"))
        for place in {folder, *folder.parents, root}:
            if place.is_relative_to(root):
                try:
                    yield int((place / name).read_text())
                except (OSError, ValueError):  # no such group here, or "max"
                    continue


def refuse_too_large(config: Config, mesh: Mesh) -> str:
    """Checks the lower bound against the available memory.

    Returns:
      A text for a later out-of-memory error: what the run needs, what is available, and which
      settings need less.

    Raises:
      ConfigError: the lower bound is above the available memory, here or in another process. The
        message says what would fit.
    """
    need, there = needed(config, mesh), available()
    text = (f"training needs at least {_gb(need.total)} on each device ({_gb(need.state)} for "
            f"weights and optimizer, {_gb(need.gradients)} for gradients, {_gb(need.activations)} "
            "for activations)")
    too_large = None
    if there is not None:
        limit, where = there
        text += f", and there are {_gb(limit)} {where}"
        if need.total > limit:
            too_large = f"config.model: {text}. {what_would_fit(limit, config, mesh)}"
    if problem := processes.first_problem(too_large):
        raise ConfigError(problem)
    return f"{text}. To need less, {CHANGES}"


def what_would_fit(limit: int, config: Config, mesh: Mesh) -> str:
    """The smallest changes that bring the lower bound to at most `limit` bytes on each device."""
    rows = config.data.batch_size // batch_shards(mesh)
    if steps := _fewest_microbatches(limit, config, mesh, rows):
        return f"What could fit: run.accumulation_steps={steps}"
    least = needed(_with_microbatches(config, rows), mesh)
    if least.state + least.gradients < limit:
        choices = ["shorter rows (data.sequence_length)", "fewer layers"]
    else:
        parameters = param_count(config.model)
        choices = [f"a model of at most {parameters * limit / least.total / 1e9:.2g} billion "
                   f"parameters instead of {parameters / 1e9:.2g}"]
    return "What could fit: " + ", or ".join([*_more_devices(limit, config, mesh), *choices])


def _more_devices(limit: int, config: Config, mesh: Mesh) -> list[str]:
    """The fewest devices of this kind that could hold the run, with their settings; or nothing."""
    batch = config.data.batch_size
    for devices in range(mesh.size, batch + 1):
        if batch % devices:
            continue
        wider = AbstractMesh(tuple(devices if axis == "fsdp" else 1 for axis in MESH_AXES),
                             MESH_AXES)
        try:
            steps = _fewest_microbatches(limit, config, wider, batch // devices)
        except ConfigError:  # a parameter cannot be divided by so many
            continue
        if steps:
            settings = ["parallel.data=1", "parallel.fsdp=-1"] + (
                [f"run.accumulation_steps={steps}"] if steps != config.run.accumulation_steps
                else [])
            return [f"{devices} such devices with {', '.join(settings[:-1])} and {settings[-1]}"]
    return []


def _fewest_microbatches(limit: int, config: Config, mesh: Mesh | AbstractMesh, rows: int
                         ) -> int | None:
    """The smallest run.accumulation_steps that fits, of those from the present number on; a smaller
    one only where these do not divide the rows. None if nothing fits.

    Args:
      rows: of a batch, on each device.
    """
    if needed(_with_microbatches(config, rows), mesh).total > limit:
        return None  # not even with one row a microbatch
    present = config.run.accumulation_steps
    valid = [steps for steps in range(1, rows + 1) if rows % steps == 0]
    return next((steps for steps in sorted(valid, key=lambda steps: (steps < present, steps))
                 if needed(_with_microbatches(config, steps), mesh).total <= limit), None)


def _with_microbatches(config: Config, steps: int) -> Config:
    return dataclasses.replace(
        config, run=dataclasses.replace(config.run, accumulation_steps=steps))


def _gb(size: float) -> str:
    return f"{size / 1e9:,.1f} GB"
