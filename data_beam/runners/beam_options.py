"""Beam's options on the command line, with mistakes named and a fixed default runner."""

import logging
import os
import tempfile
from collections.abc import Callable, Sequence
from typing import NoReturn

import apache_beam as beam
from apache_beam.options.pipeline_options import (
    DirectOptions,
    PipelineOptions,
    StandardOptions,
    WorkerOptions,
    _BeamArgumentParser,
)
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner
from apache_beam.runners.runner import PipelineState, create_runner

from data_beam.runners.worker_processes import LocalRunner, start_fork_server
from maxlm.cli.command_line import Parser
from maxlm.config import ConfigError

DEFAULT_RUNNER = "FnApiRunner"  # Beam's own, DirectRunner, first tries to download the Prism runner

HELP = """Beam options (any may follow):
  --runner=FnApiRunner                     on this machine (the default)
  --direct_running_mode=multi_processing --direct_num_workers=2
                                           in several processes of this machine
  --runner=PortableRunner --job_endpoint=HOST:PORT --environment_type=...
                                           on a Beam job server
  --runner=DataflowRunner --project=... --region=... --temp_location=gs://...
                                           on Google Cloud (pip install apache-beam[gcp])"""


class _Parser(_BeamArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"Beam options: {message}")


def pipeline_options(argv: Sequence[str], own: Parser | None = None) -> PipelineOptions:
    """Beam options of a command line: the words that the command's own parser left. `own` is that
    parser, as a misspelt flag may be one of its own.

    Raises ConfigError for an option that Beam does not know (Beam itself would only log it), a
    value of the wrong type, and a runner that does not exist or is not installed.
    """
    parser = _Parser(add_help=False, allow_abbrev=False)
    for kind in PipelineOptions.__subclasses__():
        kind._add_argparse_args(parser)
    _, unknown = parser.parse_known_args(list(argv))
    if unknown:
        raise (own or Parser()).unknown(unknown[0], [
            name for action in parser._actions for name in action.option_strings])
    options = PipelineOptions(list(argv))
    standard = options.view_as(StandardOptions)
    if standard.runner is None:
        standard.runner = DEFAULT_RUNNER
    try:
        create_runner(standard.runner)
    except (ValueError, ImportError, AttributeError) as error:
        raise ConfigError(f"--runner={standard.runner}: {error}") from None
    number = options.view_as(DirectOptions).direct_num_workers
    if number < 0:
        raise ConfigError(f"--direct_num_workers={number}: must be 0 (one a core) or more")
    if _local_processes(options):
        try:
            start_fork_server()
        except OSError as error:
            raise ConfigError(
                f"--direct_running_mode=multi_processing: no worker processes with {error} for a "
                f"socket in {tempfile.gettempdir()!r}; set TMPDIR to a folder with a short path"
            ) from None
    workers = options.view_as(WorkerOptions)
    if workers.default_sdk_harness_log_level is None:  # Beam's INFO is about its own start and end
        workers.default_sdk_harness_log_level = "WARNING"
    return options


def _local_processes(options: PipelineOptions) -> bool:
    return (options.view_as(StandardOptions).runner == DEFAULT_RUNNER
            and options.view_as(DirectOptions).direct_running_mode == "multi_processing")


def local_workers(options: PipelineOptions) -> int:
    """Processes of this machine that work for a pipeline; 1 where the runner is another one."""
    number = options.view_as(DirectOptions).direct_num_workers
    return (number or os.cpu_count() or 1) if _local_processes(options) else 1


def in_this_process(options: PipelineOptions) -> PipelineOptions:
    """The same options without worker processes on this machine; others stay as they are."""
    if not _local_processes(options):
        return options
    return PipelineOptions.from_dictionary({
        **options.get_all_options(drop_default=True),
        "direct_running_mode": "in_memory", "direct_num_workers": 1})


def run_pipeline(options: PipelineOptions, build: Callable[[beam.Pipeline], None]) -> None:
    """Runs a pipeline that `build` fills, and waits for its end. Raises ConfigError if the runner
    refuses the options, RuntimeError if the job failed."""
    root = make_pipeline(options)
    build(root)
    state = root.run().wait_until_finish()
    if state != PipelineState.DONE:
        raise RuntimeError(f"the Beam job ended in state {state}; the output is incomplete")


def make_pipeline(options: PipelineOptions) -> beam.Pipeline:
    """An empty pipeline; warnings and errors of its workers are shown. Raises ConfigError if the
    runner refuses the options."""
    logging.getLogger().setLevel(logging.WARNING)
    # The local runner logs a worker's error with its traceback and then raises it all the same.
    logging.getLogger("apache_beam.runners.common").setLevel(logging.CRITICAL)
    runner = create_runner(options.view_as(StandardOptions).runner)
    try:
        return beam.Pipeline(LocalRunner() if type(runner) is FnApiRunner else runner, options)
    except ValueError as error:
        raise ConfigError(f"Beam options: {' '.join(str(error).split())}") from None
