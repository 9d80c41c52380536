"""Beam's command line, with mistakes named and the runner pinned."""

from collections.abc import Sequence

from apache_beam.options.pipeline_options import (
    PipelineOptions,
    StandardOptions,
    WorkerOptions,
    _BeamArgumentParser,
)

from maxlm.config.schema import ConfigError, suggestion

DEFAULT_RUNNER = "FnApiRunner"
"""Beam's own default, DirectRunner, first tries to download the Prism runner."""

HELP = """Beam options (any may follow):
  --runner=FnApiRunner                     on this machine (the default)
  --direct_running_mode=multi_processing --direct_num_workers=2
                                           in several processes of this machine
  --runner=PortableRunner --job_endpoint=HOST:PORT --environment_type=...
                                           on a Beam job server
  --runner=DataflowRunner --project=... --region=... --temp_location=gs://...
                                           on Google Cloud (pip install apache-beam[gcp])"""


def pipeline_options(argv: Sequence[str]) -> PipelineOptions:
    """Beam options of a command line.

    Raises:
      ConfigError: an option that Beam does not know; Beam itself would only log it.
    """
    parser = _BeamArgumentParser(add_help=False, allow_abbrev=False)
    for kind in PipelineOptions.__subclasses__():
        kind._add_argparse_args(parser)
    try:
        _, unknown = parser.parse_known_args(list(argv))
    except SystemExit:
        raise ConfigError("a Beam option has a wrong value (see above)") from None
    if unknown:
        names = [name for action in parser._actions for name in action.option_strings]
        name = unknown[0].partition("=")[0]
        raise ConfigError(f"unknown option {name}; {suggestion(name, names)}"
                          if name.startswith("--") else f"unexpected argument {name!r}; see --help")
    options = PipelineOptions(list(argv))
    standard = options.view_as(StandardOptions)
    if standard.runner is None:
        standard.runner = DEFAULT_RUNNER
    workers = options.view_as(WorkerOptions)
    if workers.default_sdk_harness_log_level is None:  # Beam's INFO tells of its own start and end.
        workers.default_sdk_harness_log_level = "WARNING"
    return options
