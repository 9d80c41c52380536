"""The command line of `python -m maxlm.train`."""

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path

from maxlm.cli import host_memory
from maxlm.cli.command_line import Parser
from maxlm.config import Config, ConfigError, local_path, resolve_config, split_overrides


def parse_arguments(argv: Sequence[str], description: str | None
                    ) -> tuple[argparse.Namespace, Config]:
    """The flags, and the config with its overrides.

    Raises:
      ConfigError: a mistake in either.
    """
    parser = Parser(prog="python -m maxlm.train", description=description, fields=Config)
    parser.add_argument("--config", required=True, help="a config file, for example configs/7b.py")
    parser.add_argument("--workdir", required=True, help="directory of this run; made if missing")
    parser.add_argument(
        "--compilation_cache", default=str(Path.home() / ".cache" / "maxlm" / "compiled"),
        help="where compiled programs are kept for the next start; '' for none (%(default)s)")
    parser.add_argument(
        "--grace_seconds", type=float, default=25.0, metavar="SECONDS",
        help="SIGTERM and SIGHUP save a checkpoint and exit with status 75, at the latest after "
        "this time; choose less than the time after which the scheduler kills the process, often "
        "30 s (%(default)s)")
    parser.add_argument(
        "--new_evaluation_set", action="store_true",
        help="resume although the texts that evaluations score have changed; metrics.jsonl says "
        "from which step")
    parser.add_argument(
        host_memory.OPTION, action="store_true", help="on the CPU: restart with huge pages, which "
        "makes a step up to a fifth shorter (glibc 2.35 or later)")
    add_process_arguments(parser)
    rest, overrides = split_overrides(argv)
    arguments = parser.parse_args(rest)
    if not arguments.grace_seconds > 0:
        raise ConfigError(f"--grace_seconds: must be above 0, got {arguments.grace_seconds}")
    arguments.workdir = local_path(arguments.workdir, "--workdir")
    config = resolve_config(Config, arguments.config, overrides)
    return arguments, dataclasses.replace(config, data=config.data.with_absolute_paths())


def add_process_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags that `maxlm.parallel.processes.start` reads."""
    group = parser.add_argument_group(
        "several processes",
        "On a TPU pod, GKE or Slurm, --distributed finds the others by itself; elsewhere start one "
        "process a host with the same address and count and its own id.")
    group.add_argument("--distributed", action="store_true", help="join the cluster's processes")
    group.add_argument("--coordinator_address", help="host:port of process 0")
    group.add_argument("--num_processes", type=int, help="how many processes there are")
    group.add_argument("--process_id", type=int, help="which of them this is, from 0")
    group.add_argument(
        "--start_timeout", type=int, default=300, metavar="SECONDS",
        help="how long the processes wait for each other at start (default: %(default)s)")
