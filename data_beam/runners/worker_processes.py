"""Beam's worker processes on this machine, forked from one that has imported what they run.

Beam starts each worker of `--direct_running_mode=multi_processing` as a new command for each
pipeline, which costs seconds of processor time for imports every time. Here one fork server, which
multiprocessing starts, has imported the modules and forks the workers of all pipelines. Without it
two processes are not 1.5 times as fast as one (docs/decisions.md has the figures).
"""

import contextlib
import logging
import multiprocessing
import os
import signal
import sys
import threading
import types
from collections.abc import Iterator
from multiprocessing import forkserver, resource_tracker
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

from maxlm.config.schema import ConfigError

_CONTEXT = multiprocessing.get_context("forkserver")
_PACKAGES = ("data_beam", "maxlm")
_IN_SERVER = "MAXLM_FORK_SERVER_STARTS"  # only the fork server sees it, at this import
_URN = "maxlm:env:forked_process:v1"  # of the environment of forked workers; without payload
_GRACE_SECONDS = 3  # how long a worker has to exit when its pipeline is done


def _hide_broken_pipes() -> None:
    """No traceback in the fork server, or in a worker that it just forked, when the command at the
    other end of the pipe is gone."""
    before = sys.excepthook

    def hook(kind: Any, error: Any, trace: Any) -> None:
        if not issubclass(kind, (BrokenPipeError, EOFError)):
            before(kind, error, trace)

    sys.excepthook = hook


if os.environ.pop(_IN_SERVER, ""):
    _hide_broken_pipes()


def start_fork_server() -> None:
    """Starts the fork server unless it runs, and does not wait for it. It imports the modules of
    this project that are imported here. Raises OSError if the folder for temporary files cannot
    hold its socket."""
    _CONTEXT.set_forkserver_preload([__name__, *sorted(
        name for name in sys.modules if name.partition(".")[0] in _PACKAGES)])
    resource_tracker.ensure_running()  # started later, it would reset the signal mask
    # A terminal sends Ctrl-C to the whole process group. The server and its workers inherit the
    # mask and ignore it: the command ends them.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    os.environ[_IN_SERVER] = "1"
    try:
        with _without_main_module():
            forkserver.ensure_running()
    finally:
        del os.environ[_IN_SERVER]
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _without_main_module() -> Iterator[None]:
    """Hides the running program: multiprocessing would run it again in each worker."""
    program = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = program


class LocalRunner(FnApiRunner):
    """Beam's local runner with forked workers. Raises ConfigError if one was killed or exited by
    itself."""

    def run_via_runner_api(self, pipeline_proto: Any, options: PipelineOptions) -> Any:
        for environment in pipeline_proto.components.environments.values():
            if environment.urn == python_urns.SUBPROCESS_SDK:
                environment.urn, environment.payload = _URN, b""
        _Handler.started.clear()
        with _no_logs_of_broken_streams():
            try:
                return super().run_via_runner_api(pipeline_proto, options)
            except Exception as error:
                deaths = [how for handler in _Handler.started if (how := handler.death())]
                if not deaths:
                    raise
                raise ConfigError(deaths[0]) from error
            finally:
                for handler in _Handler.started:
                    handler.closed.set()  # ends its watch


class _Handler(GrpcWorkerHandler):
    """The local runner's side of one worker process."""

    started: ClassVar[list["_Handler"]] = []  # all of the running pipeline, one at a time

    def __init__(self, _: None, state: Any, provision_info: Any, grpc_server: Any):
        super().__init__(state, provision_info, grpc_server)
        self._ended, self.closed = threading.Event(), threading.Event()
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
            start_fork_server()
            # A daemon, so that multiprocessing kills it when the command exits early.
            self._process = _CONTEXT.Process(target=_serve, args=(environment,), daemon=True)
            with _without_main_module():
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
        """When the process ends too early: answers pending and later requests with an error.

        Only this thread may wait for the process, because its status can be read only once.
        """
        self._process.join()
        self._status = self._process.exitcode
        self._ended.set()
        while self._status and not self.closed.wait(0.1):
            for name, future in list(self.control_conn._futures_by_id.items()):
                future.set(beam_fn_api_pb2.InstructionResponse(
                    instruction_id=name, error="the worker process ended"))

    def stop_worker(self) -> None:
        """Waits for the process to exit, and kills one that has not connected yet or still works
        for a pipeline that failed."""
        if not self._ended.wait(_GRACE_SECONDS):
            self._stopped = True
            self._process.kill()
            self._ended.wait()

    def death(self) -> str:
        """How the process died, or "" if it is alive or exited normally."""
        # A stream may break before the process has ended.
        if not self._ended.wait(1) or not self._status or self._stopped:
            return ""
        how = f"was killed by {signal.Signals(-self._status).name}" if self._status < 0 else (
            f"ended with status {self._status}")
        return (f"--direct_num_workers: a worker process {how}; the output is incomplete. If "
                "memory was full (see dmesg), run again with fewer workers")


WorkerHandler.register_environment(_URN, None)(_Handler)


@contextlib.contextmanager
def _no_logs_of_broken_streams() -> Iterator[None]:
    """When a process is gone, every thread of Beam that reads its stream logs a traceback. After
    an error it stays quiet: threads notice broken streams later."""
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
    yield
    threading.excepthook = before
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


def _serve(environment: dict[str, str]) -> None:
    """Main function of a worker process: Beam's own, without its lines about start and end."""
    os.environ.clear()
    os.environ.update(environment)
    # A user's function may start processes of its own.
    multiprocessing.current_process()._config["daemon"] = False  # pyright: ignore
    threading.Thread(target=_exit_with_the_command, daemon=True).start()
    logging.disable(logging.INFO)
    # Beam logs an error, prints it, logs it again with its traceback, and then reports it.
    for name in (sdk_worker.__name__, "apache_beam.runners.common"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    for module in (sdk_worker, log_handler):
        module.print = lambda *_, **__: None  # pyright: ignore
    with _no_logs_of_broken_streams():
        try:
            sdk_worker_main.main(sys.argv)
        except grpc.RpcError:  # the command is gone
            sys.exit(1)


def _exit_with_the_command() -> None:
    """A killed command cannot end its workers, and one not connected yet would wait for ever."""
    command = multiprocessing.parent_process()
    assert command is not None
    command.join()
    os._exit(1)
