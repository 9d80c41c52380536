"""A Beam worker process on this machine, without Beam's lines about its own start and end.

    python -m data_beam.sdk_worker

Beam's own entry point logs all it does to standard error, whatever log level the job asks for. What
a worker's code raises is no matter of logs: it reaches the command.
"""

import logging
import sys

logging.disable(logging.WARNING)  # Beam warns of libraries that only Google Cloud needs.
from apache_beam.runners.worker import sdk_worker, sdk_worker_main  # noqa: E402


def main() -> None:
    logging.disable(logging.INFO)
    # Warns of folders that only containers have.
    logging.getLogger(sdk_worker_main.__name__).setLevel(logging.CRITICAL)
    # An error is logged, printed and logged again with its traceback, and then reported.
    for name in (sdk_worker.__name__, "apache_beam.runners.common"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    sdk_worker.print = lambda *_, **__: None  # pyright: ignore
    sdk_worker_main.main(sys.argv)


if __name__ == "__main__":
    main()
