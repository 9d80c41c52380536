"""Faults of the machine, reported in one line."""

import contextlib
from collections.abc import Iterator

import jax

from maxlm.config import RunFailure
from maxlm.config.outputs import full_disk


@contextlib.contextmanager
def naming_full_disk(where: object) -> Iterator[None]:
    """Turns a write that failed for want of space into a RunFailure that names the place."""
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
    """Turns XLA's running out of memory into a RunFailure that says how much it asked for.

    Args:
      advice: which settings need less.
    """
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        reason, *_ = str(error).splitlines()
        if not reason.startswith("RESOURCE_EXHAUSTED"):
            raise
        raise RunFailure(f"{reason}; {advice}") from error
