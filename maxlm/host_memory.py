"""How the C library hands out host memory to a program that computes on the CPU.

XLA:CPU allocates its buffers anew in each step. As glibc does it by itself those are pages of 4 kB,
150,000 page faults in a step of 2 seconds, and both cores wait for them. With huge pages they are
400, and the step of `configs/bench_cpu.py` takes a fifth less in bfloat16 (docs/benchmarks.md).
glibc reads such settings when a program starts, so the program starts itself again. This module
imports nothing that takes long.
"""

import os
import sys
from pathlib import Path

VARIABLE = "GLIBC_TUNABLES"
SETTINGS = "glibc.malloc.hugetlb=1"
"""madvise(MADV_HUGEPAGE) for what malloc takes from the system; since glibc 2.35 (its manual,
section "Memory Allocation Tunables"). Nothing happens where the kernel allows no huge pages."""
_ACCELERATORS = ("nvidia0", "accel0", "vfio/0", "kfd")
"""Below /dev: NVIDIA GPU, TPU (two kinds of host), AMD GPU."""


def settings_apply(environment: dict[str, str], devices: Path = Path("/dev")) -> bool:
    """Whether a program in this environment should start again with `SETTINGS`.

    False if it has settings of its own, for another C library, and where JAX will compute on an
    accelerator: the buffers of a step are not in host memory then.
    """
    if VARIABLE in environment:
        return False
    try:
        library, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
    except (ValueError, OSError):  # no such name, or empty: another C library
        return False
    if library != "glibc" or tuple(map(int, version.split(".")[:2])) < (2, 35):
        return False
    platforms = environment.get("JAX_PLATFORMS", "")
    return platforms == "cpu" or (not platforms and not any(
        (devices / name).exists() for name in _ACCELERATORS))


def start_again() -> None:
    """Replaces this process by the same program with `SETTINGS`, where they apply.

    For the first lines of a program; the number of the process stays.
    """
    if settings_apply(dict(os.environ)):
        os.environ[VARIABLE] = SETTINGS
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
