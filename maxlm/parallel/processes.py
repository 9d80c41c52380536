"""Start-up of several processes, one per host, that train one model (`jax.distributed`)."""

import argparse
import hashlib
import os
import sys
import threading

import jax
import numpy as np
from jax.experimental import multihost_utils

from maxlm.config import ConfigError, RunFailure


def start(arguments: argparse.Namespace) -> None:
    """Joins the other processes, if the flags say that there are any.

    Raises:
      ConfigError: only some of the three explicit flags are given.
      RunFailure: the address is taken, or there is no cluster to ask.

    Ends the process with status 1 when the others do not join in time.
    """
    explicit = (arguments.coordinator_address, arguments.num_processes, arguments.process_id)
    if all(flag is None for flag in explicit):
        if arguments.distributed:
            _join(arguments.start_timeout)
        return
    names = ("--coordinator_address", "--num_processes", "--process_id")
    missing = [n for n, flag in zip(names, explicit, strict=True) if flag is None]
    if missing:
        raise ConfigError(f"{missing[0]}: must be set too; the three flags {', '.join(names)} "
                          "belong together")
    if not 0 <= arguments.process_id < arguments.num_processes:
        raise ConfigError(f"--process_id: must be from 0 to {arguments.num_processes - 1}, "
                          f"got {arguments.process_id}")
    _join(arguments.start_timeout, *explicit)


def _join(timeout: int, address: str | None = None, count: int | None = None,
          process: int | None = None) -> None:
    me = "this process" if process is None else f"process {process} of {count}"
    where = f"at {address}" if address else "where the cluster says"

    def give_up() -> None:
        # JAX's own time-out ends the process from C++ with a stack trace, so this one is earlier.
        print(f"failed: {me} waited {timeout} s for the others {where}; start all of them with the "
              "same address and count, and check that they can reach it",
              file=sys.stderr, flush=True)
        os._exit(1)

    timer = threading.Timer(timeout, give_up)
    timer.daemon = True
    timer.start()
    # JAX's own handler of SIGTERM would replace that of maxlm.cli.stop_signals.
    jax.config.update("jax_enable_preemption_service", False)
    try:
        jax.distributed.initialize(address, count, process, initialization_timeout=timeout + 60)
    except (RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise RunFailure(f"{me} could not meet the others {where}: {reason}") from error
    finally:
        timer.cancel()


def process_index_and_count() -> tuple[int, int]:
    """Index of this process and number of processes; does not initialise a device."""
    if not jax.distributed.is_initialized():
        return 0, 1
    return jax.process_index(), jax.process_count()


def first_problem(problem: str | None) -> str | None:
    """The problem of the first process that has one, on every process; None when none has.

    Every process must call it at the same point: a process that stopped alone would leave the
    others waiting.
    """
    if process_index_and_count()[1] == 1:
        return problem
    text = np.zeros(4096, np.uint8)
    found = (problem or "").encode()[:len(text)]
    text[:len(found)] = np.frombuffer(found, np.uint8)
    everywhere = np.asarray(multihost_utils.process_allgather(text))  # [processes, 4096]
    for process, row in enumerate(everywhere):
        if row[0]:
            return f"{bytes(row).rstrip(bytes(1)).decode(errors='ignore')} (process {process})"
    return None


def require_same(**texts: str) -> None:
    """Checks that all processes have the same texts; others would cause hangs or wrong results.

    Raises:
      ConfigError: names what differs and on which processes; raised on all of them.
    """
    if jax.process_count() == 1:
        return
    digests = np.stack([np.frombuffer(hashlib.sha256(text.encode()).digest(), np.int32)
                        for text in texts.values()])
    everywhere = np.asarray(multihost_utils.process_allgather(digests))  # [processes, texts, 8]
    differs = (everywhere != everywhere[0]).any(axis=2)
    for number, what in enumerate(texts):
        if differs[:, number].any():
            others = ", ".join(map(str, np.flatnonzero(differs[:, number])))
            raise ConfigError(f"the {what} of process {others} is not that of process 0; give all "
                              "processes the same command and the same files")
