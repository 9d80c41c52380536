"""Beam's worker processes on this machine, forked from one that has imported what they run.

Beam starts each worker of `--direct_running_mode=multi_processing` as a command of its own, anew
for each pipeline: seconds of processor time for imports, every time. Here a fork server forks the
workers of all pipelines.
"""

import contextlib
import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import grpc
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability import python_urns
from apache_beam.portability.api import beam_fn_api_pb2
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner
from apache_beam.runners.portability.fn_api_runner.worker_handlers import (
    GrpcWorkerHandler,
    WorkerHandler,
)
from apache_beam.runners.worker import data_plane, log_handler, sdk_worker, sdk_worker_main
from google.protobuf import json_format, text_format

from data_beam.runners import fork_server
from maxlm.config.schema import ConfigError

_URN = "maxlm:env:forked_process:v1"
"""Of the environment of a pipeline whose workers are these; no payload."""
_GRACE_SECONDS = 3
"""For a worker to end when its pipeline has."""


class LocalRunner(FnApiRunner):
    """Beam's local runner; its worker processes are forked.

    Raises:
      ConfigError: a worker process did not end by itself: the kernel killed it, say.
    """

    def run_via_runner_api(self, pipeline_proto: Any, options: PipelineOptions) -> Any:
        for environment in pipeline_proto.components.environments.values():
            if environment.urn == python_urns.SUBPROCESS_SDK:
                environment.urn, environment.payload = _URN, b""
        _Handler.started.clear()
        with _without_lines_on_broken_streams():
            try:
                return super().run_via_runner_api(pipeline_proto, options)
            except Exception as error:
                ends = [end for handler in _Handler.started if (end := handler.violent_end())]
                if not ends:
                    raise
                raise ConfigError(ends[0]) from error
            finally:
                for handler in _Handler.started:
                    handler.release()


class _Handler(GrpcWorkerHandler):
    """What Beam's local runner has of one worker process."""

    started: ClassVar[list["_Handler"]] = []
    """All those of the pipeline that runs: a process runs one at a time."""

    def __init__(self, _: None, state: Any, provision_info: Any, grpc_server: Any):
        super().__init__(state, provision_info, grpc_server)
        self._ended, self._closed = threading.Event(), threading.Event()
        self._status: int | None = None
        self._stopped = False

    def start_worker(self) -> None:
        environment = {
            **os.environ,
            "WORKER_ID": self.worker_id,
            "CONTROL_API_SERVICE_DESCRIPTOR": text_format.MessageToString(
                self.control_api_service_descriptor()),
            "LOGGING_API_SERVICE_DESCRIPTOR": text_format.MessageToString(
                self.logging_api_service_descriptor()),
            "PIPELINE_OPTIONS": json_format.MessageToJson(
                self.provision_info.provision_info.pipeline_options)}
        self.started.append(self)
        try:
            fork_server.start()
            # A daemon: one that a command which is being interrupted has no hold of yet is ended
            # when it exits.
            self._process = fork_server.CONTEXT.Process(
                target=_serve, args=(environment,), daemon=True)
            with fork_server.without_main_module():
                self._process.start()
            threading.Thread(target=self._watch, daemon=True).start()
        except BaseException as error:
            self._ended.set()
            if isinstance(error, (OSError, EOFError)):
                raise ConfigError(
                    "--direct_num_workers: a worker process could not be started, because the "
                    f"process it is forked from ended ({type(error).__name__}); run again"
                ) from error
            raise

    def _watch(self) -> None:
        """If the process ends before its time: answers what it was asked, and will be.

        No other thread may ask for the end of the process: its status can be read only once.
        """
        self._process.join()
        self._status = self._process.exitcode
        self._ended.set()
        while self._status and not self._closed.wait(0.1):
            for name, future in list(self.control_conn._futures_by_id.items()):
                future.set(beam_fn_api_pb2.InstructionResponse(
                    instruction_id=name, error="the worker process ended"))

    def stop_worker(self) -> None:
        """Waits for the end of the process, which was told that there is no more to do. Or was not:
        it has not connected yet, as the command was interrupted; or it works on for a pipeline that
        has failed."""
        if not self._ended.wait(_GRACE_SECONDS):
            self._stopped = True
            self._process.kill()
            self._ended.wait()

    def release(self) -> None:
        """Ends the watch."""
        self._closed.set()

    def violent_end(self) -> str:
        """How the process ended, or "" if it was well or is alive."""
        # A broken stream may be known before the end of the process.
        if not self._ended.wait(1) or not self._status or self._stopped:
            return ""
        how = f"was killed by {signal.Signals(-self._status).name}" if self._status < 0 else (
            f"ended with status {self._status}")
        return (f"--direct_num_workers: a worker process {how}; what is there is not taken for "
                "whole. If memory was full (see dmesg), run again with fewer workers")


WorkerHandler.register_environment(_URN, None)(_Handler)


@contextlib.contextmanager
def _without_lines_on_broken_streams() -> Iterator[None]:
    """When the process at the other end is gone, each of Beam's threads that reads a stream tells
    of it with a traceback, or two."""
    loggers = [logging.getLogger(name) for name in (
        data_plane.__name__, GrpcWorkerHandler.__module__, sdk_worker_main.__name__)]
    levels = [logger.level for logger in loggers]
    before = threading.excepthook

    def hook(arguments: Any) -> None:
        if not issubclass(arguments.exc_type, grpc.RpcError):
            before(arguments)

    threading.excepthook = hook
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        threading.excepthook = before
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _serve(environment: dict[str, str]) -> None:
    """Main function of a worker process: Beam's own, without its lines about start and end."""
    os.environ.clear()
    os.environ.update(environment)
    # What a user's function does in it may need processes of its own.
    multiprocessing.current_process()._config["daemon"] = False  # pyright: ignore
    threading.Thread(target=_end_with_the_command, daemon=True).start()
    logging.disable(logging.INFO)
    # An error is logged, printed and logged again with its traceback, and then reported.
    for name in (sdk_worker.__name__, "apache_beam.runners.common"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    for module in (sdk_worker, log_handler):
        module.print = lambda *_, **__: None  # pyright: ignore
    with _without_lines_on_broken_streams():
        try:
            sdk_worker_main.main(sys.argv)
        except grpc.RpcError:  # the command is gone, and this process with it
            sys.exit(1)


def _end_with_the_command() -> None:
    """A command that was killed cannot end its workers, and one that has not connected to it by
    then would wait for ever."""
    command = multiprocessing.parent_process()
    assert command is not None
    command.join()
    os._exit(1)
