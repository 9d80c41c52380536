"""The process that worker processes on this machine are forked from: it has imported what they run.

It is multiprocessing's, which imports and does nothing else: it has no threads of a pipeline.
"""

import contextlib
import multiprocessing
import signal
import sys
import types
from collections.abc import Iterator, Sequence
from multiprocessing import forkserver, resource_tracker

CONTEXT = multiprocessing.get_context("forkserver")
_PACKAGES = ("data_beam", "maxlm")
_QUIET = "data_beam.runners.fork_server_quiet"


def start_early(module: str, argv: Sequence[str]) -> None:
    """Starts the process if a command is going to ask for it, to import while the command itself
    imports.

    Args:
      module: the command's.
      argv: its words, which are not checked here.
    """
    if any(word.endswith("multi_processing") for word in argv):
        with contextlib.suppress(OSError):  # the command will ask again, and say what is wrong
            start([module])


def start(modules: Sequence[str] = ()) -> None:
    """Starts the process, unless it runs, and does not wait for it.

    Args:
      modules: what it imports; by default, the modules of this project that are imported here by
        now.

    Raises:
      OSError: there is no place for its socket, in the folder for temporary files.
    """
    CONTEXT.set_forkserver_preload([_QUIET, *(modules or sorted(
        name for name in sys.modules if name.partition(".")[0] in _PACKAGES))])
    resource_tracker.ensure_running()  # it would undo the mask
    # The server and its workers inherit the mask: at Ctrl-C, which the whole group of processes
    # gets, the command ends them.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        with without_main_module():
            forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def without_main_module() -> Iterator[None]:
    """Hides the program that runs: multiprocessing would run it once more in each worker, to find
    there what it defines, and workers need nothing of it."""
    program = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = program
