"""Turns a full disk and a failed allocation into one-line errors."""

import contextlib
from collections.abc import Iterator

import jax

from maxlm.cli.outputs import full_disk
from maxlm.config import RunFailure


@contextlib.contextmanager
def naming_full_disk(where: object) -> Iterator[None]:
    """Turns a write that failed because the disk is full into a RunFailure that names the file."""
    try:
        yield
    except OSError as error:
        reason = full_disk(error)
        if reason is None:
            raise
        raise RunFailure(f"{error.filename or where} could not be written: {reason}. Free some "
                         "space and run the same command again") from error


@contextlib.contextmanager
def naming_no_memory(advice: str) -> Iterator[None]:
    """Turns an allocation that failed, on a device or on the host, into a RunFailure that says how
    much memory was requested.

    Args:
      advice: how much is needed, or which settings need less; appended to the message.
    """
    try:
        yield
    except (jax.errors.JaxRuntimeError, MemoryError) as error:
        reason = (str(error).splitlines() or ["out of host memory"])[0]
        # XLA's allocator on the CPU reports INTERNAL, those of accelerators RESOURCE_EXHAUSTED.
        if not (isinstance(error, MemoryError) or reason.startswith("RESOURCE_EXHAUSTED")
                or "out of memory" in reason.lower()):
            raise
        raise RunFailure(f"{reason.rstrip('.')}; {advice}") from error
