"""Huge pages for the host memory of a program that computes on the CPU: `--huge_pages`.

XLA:CPU allocates its buffers anew in each step. By default glibc backs them with pages of 4 kB:
150,000 page faults in a step of 2 seconds, which keep both cores waiting. With huge pages there are
400, and the step of `configs/bench_cpu.py` takes a fifth less time in bfloat16
(docs/benchmarks.md). glibc reads such settings when a program starts, so the program replaces
itself. This module imports nothing that takes long.
"""

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path

OPTION = "--huge_pages"
VARIABLE = "GLIBC_TUNABLES"
SETTINGS = "glibc.malloc.hugetlb=1"
"""madvise(MADV_HUGEPAGE) for what malloc takes from the system; since glibc 2.35 (its manual,
section "Memory Allocation Tunables"). It has no effect where the kernel allows no huge pages."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_... of glibc's malloc.h
_ACCELERATORS = ("nvidia0", "accel0", "vfio/0", "kfd")
"""Below /dev: NVIDIA GPU, TPU (two kinds of host), AMD GPU."""


def settings_apply(environment: dict[str, str], devices: Path = Path("/dev")) -> bool:
    """Whether a program in this environment gains from a restart with `SETTINGS`.

    False if it has settings of its own, with another C library, and where JAX will compute on an
    accelerator: the buffers of a step are not in host memory then.
    """
    if VARIABLE in environment or _glibc_version() < (2, 35):
        return False
    platforms = environment.get("JAX_PLATFORMS", "")
    return platforms == "cpu" or (not platforms and not any(
        (devices / name).exists() for name in _ACCELERATORS))


def _glibc_version() -> tuple[int, ...]:
    """Empty with another C library."""
    try:
        library, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
    except (ValueError, OSError):  # no such name, or empty
        return ()
    return tuple(map(int, version.split(".")[:2])) if library == "glibc" else ()


def restart_if_asked() -> None:
    """With `OPTION` on the command line, replaces this process by the same program with `SETTINGS`,
    where they apply, and says so where they do not.

    For the first lines of a program. The process id stays.
    """
    if OPTION not in sys.argv[1:] or os.environ.get(VARIABLE) == SETTINGS:
        return
    if not settings_apply(dict(os.environ)):
        print(f"note: {OPTION} has no effect here: it needs glibc 2.35 or later, JAX on the CPU, "
              f"and {VARIABLE} not set", file=sys.stderr, flush=True)
        return
    os.environ[VARIABLE] = SETTINGS
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


@contextlib.contextmanager
def trim_after_compile() -> Iterator[None]:
    """For restoring a checkpoint and for the first step: freed memory is returned to the system.

    Restored arrays that malloc took from its own heaps would stay there when the first step frees
    them: 6 % more than a fresh start has at its peak, of a model of 56 million parameters.
    Compiling leaves 190 MB of freed memory with malloc, and the first step 450 MB of buffers of 4
    to 16 MB that later steps do not need; together a quarter of the process's peak
    (docs/benchmarks.md). Afterwards malloc keeps what is freed, for the next step. Does nothing
    with another C library, or where the user has settings of their own.
    """
    if not _glibc_version() or os.environ.get(VARIABLE, SETTINGS) != SETTINGS:
        yield
        return
    library = ctypes.CDLL(None)
    library.malloc_trim(0)
    library.mallopt(_MMAP_THRESHOLD, 4 * 2**20)
    try:
        yield
    finally:
        library.mallopt(_MMAP_THRESHOLD, 32 * 2**20)  # the largest value that glibc accepts
        library.mallopt(_TRIM_THRESHOLD, 256 * 2**20)
