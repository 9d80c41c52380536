"""Start-up of several processes, one a host, that train as one (`jax.distributed`)."""

import argparse

import jax

from maxlm.config import ConfigError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags every multi-process command has."""
    group = parser.add_argument_group(
        "several processes",
        "On a TPU pod, GKE or Slurm, --distributed finds the others by itself; elsewhere start one "
        "process a host with the same address and count and its own id.")
    group.add_argument("--distributed", action="store_true", help="join the cluster's processes")
    group.add_argument("--coordinator_address", help="host:port of process 0")
    group.add_argument("--num_processes", type=int, help="how many processes there are")
    group.add_argument("--process_id", type=int, help="which of them this is, from 0")


def start(arguments: argparse.Namespace) -> None:
    """Joins the other processes, when the flags say that there are any.

    Raises:
      ConfigError: only some of the three explicit flags are given.
    """
    explicit = (arguments.coordinator_address, arguments.num_processes, arguments.process_id)
    if all(flag is None for flag in explicit):
        if arguments.distributed:
            jax.distributed.initialize()
        return
    names = ("--coordinator_address", "--num_processes", "--process_id")
    missing = [n for n, flag in zip(names, explicit, strict=True) if flag is None]
    if missing:
        raise ConfigError(f"{missing[0]}: must be set too; the three flags {', '.join(names)} "
                          "belong together")
    if not 0 <= arguments.process_id < arguments.num_processes:
        raise ConfigError(f"--process_id: must be from 0 to {arguments.num_processes - 1}, "
                          f"got {arguments.process_id}")
    jax.distributed.initialize(*explicit)
