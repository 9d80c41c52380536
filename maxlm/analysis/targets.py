"""The devices that a program is compiled for, by name, on a machine that has none of them."""

import dataclasses
import importlib.metadata
import os
import re
from typing import Any

import jax

from maxlm.analysis.chips import GPUS, TPUS, Chip, Gpu
from maxlm.config import ConfigError
from maxlm.config.schema import suggestion

GPU_NAME = re.compile(r"([a-z]\w+(?:-\w+)?)(?:[x×](\d+))?(?:[x×](\d+))?")
INSTALL = "pip install -e '.[aot]'"


@dataclasses.dataclass(frozen=True)
class Target:
    """Devices to compile for.

    Attributes:
      compiler: name and version, for example "libtpu 0.0.52".
    """

    name: str
    chip: Chip
    devices: list[Any]
    compiler: str


def find(name: str) -> Target:
    """The devices of a topology.

    Args:
      name: `v5p:4x4x4` and every other name that libtpu accepts; or `h100`, `h100x8` (a box of
        8), `h100x8x4` (4 such boxes).

    Raises:
      ConfigError: there is no such chip or shape, or its compiler is not installed.
    """
    if ":" in name:
        return _tpus(name)
    found = GPU_NAME.fullmatch(name)
    # `a100-80gbx8`: the pattern takes "80gbx8" as one word where no box size follows.
    chip, box, hosts = found.groups() if found else (name, None, None)
    while chip not in GPUS and (tail := re.fullmatch(r"(.*)[x×](\d+)", chip)):
        chip, box, hosts = tail[1], tail[2], box if hosts is None else hosts
    if chip not in GPUS:
        raise ConfigError(
            f"--topology: no chip {chip!r}; TPU: CHIP:SHAPE such as v5p:4x4x4 ({', '.join(TPUS)}), "
            f"GPU: NAME or NAMExGPUS or NAMExGPUSxHOSTS such as h100x8 ({', '.join(GPUS)}); "
            f"{suggestion(chip, [*GPUS, *TPUS])}")
    return _gpus(name, GPUS[chip], int(box or 1), int(hosts or 1))


def _tpus(name: str) -> Target:
    generation = name.partition(":")[0]
    if generation not in TPUS:
        raise ConfigError(f"--topology: no figures for TPU {generation!r} in "
                          f"maxlm/analysis/chips.py; {suggestion(generation, TPUS)}")
    version = _version("libtpu", name)
    # libtpu asks for the machine's own chips at start; these answers say that there are none.
    for variable, value in (("TPU_SKIP_MDS_QUERY", "1"), ("TPU_WORKER_HOSTNAMES", "localhost"),
                            ("TPU_ACCELERATOR_TYPE", "v5litepod-4"),
                            ("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")):
        os.environ.setdefault(variable, value)
    chip = TPUS[generation]
    shape = [int(size) for size in re.findall(r"\d+", name.partition(":")[2])]
    # Unless told, libtpu assumes that no dimension is a ring, and all-reduces instead of gathering.
    devices = _devices(name, platform="tpu", topology_name=name,
                       wrap=(*chip.rings(shape), False, False, False)[:3])
    return Target(name, chip, devices, f"libtpu {version}")


def _gpus(name: str, chip: Gpu, box: int, hosts: int) -> Target:
    package = next((p for p in ("jax-cuda12-pjrt", "jax-cuda13-pjrt") if _installed(p)),
                   "jax-cuda12-pjrt")
    version = _version(package, name)
    devices = _devices(name, platform="cuda", topology_name="",
                       target_config=chip.target_config(),
                       topology=f"{hosts}x1x{box}")  # slices x hosts of a slice x GPUs of a host
    return Target(name, chip, devices, f"{package} {version}")


def _devices(name: str, **description: Any) -> list[Any]:
    from jax.experimental import topologies  # libtpu reads the environment when it is loaded
    try:
        return list(topologies.get_topology_desc(**description).devices)
    except jax.errors.JaxRuntimeError as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"--topology: the compiler does not accept {name!r}: {reason}") from None


def _installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _version(package: str, topology: str) -> str:
    if not _installed(package):
        raise ConfigError(f"--topology={topology}: its compiler, {package}, is not installed; "
                          f"{INSTALL}")
    return importlib.metadata.version(package)
