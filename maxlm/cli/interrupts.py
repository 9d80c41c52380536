"""Ctrl-C and SIGTERM for every command: the first one cleans up, the second one exits at once.

A terminal sends SIGINT to the whole process group, and an impatient user presses Ctrl-C again. If
the second SIGINT raised KeyboardInterrupt too, it could break off the clean-up anywhere, for
example inside a library that then waits forever.
"""

import atexit
import itertools
import multiprocessing
import os
import signal
import sys
import threading
from typing import Any, NoReturn

STATUS = 130
"""Exit status after Ctrl-C, as in shells: 128 + SIGINT."""
TRY_AGAIN = os.EX_TEMPFAIL
"""Exit status 75, after SIGTERM: stopped from outside, nothing is wrong, start it again."""
# Signal handlers interrupt each other anywhere. So they use no lock, of which `threading.Event` has
# one: the second handler would wait for the first one forever.
_reports = itertools.count()
_pressed = False
_status = STATUS
_line = b"interrupted\n"


def pressed() -> bool:
    """Whether Ctrl-C was pressed or SIGTERM came since `clean_up_first`. An exception that comes
    out of a command may wrap KeyboardInterrupt: Beam's runners do so when user code is
    interrupted."""
    return _pressed


def end_at_once() -> None:
    """From now on the first Ctrl-C ends this process without clean-up: for times in which there is
    nothing to clean up, such as imports. A handler set by someone else stays, and so does an
    ignored signal (`nohup`)."""
    _replace(_end)


def clean_up_first(advice: str = "") -> None:
    """From now on the first Ctrl-C or SIGTERM raises KeyboardInterrupt, and the next one ends this
    process.

    Args:
      advice: what the user can do after the interruption, printed with it.
    """
    global _line, _pressed
    _line = f"interrupted{advice and ': '}{advice}\n".encode()
    _pressed = False
    _replace(_raise)


def leave() -> NoReturn:
    """Ends a command after KeyboardInterrupt, possibly wrapped in another exception.

    Exit handlers run. Threads are not waited for, because they may wait for what was interrupted.
    Child processes of multiprocessing are killed.
    """
    _replace(_end)
    _report()
    kill_children()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    atexit._run_exitfuncs()
    others = [thread for thread in threading.enumerate()
              if not thread.daemon and thread is not threading.main_thread()]
    if others:
        os._exit(_status)
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # what is left is short
    sys.exit(_status)


def kill_children() -> None:
    """Kills the processes that this one started with multiprocessing."""
    for child in multiprocessing.active_children():
        child.kill()


def _replace(handler: Any) -> None:
    """Sets the handler where the present one is Python's own or one of this module."""
    if threading.current_thread() is threading.main_thread():
        for number, default in ((signal.SIGINT, signal.default_int_handler),
                                (signal.SIGTERM, signal.SIG_DFL)):
            if signal.getsignal(number) in (default, _raise, _end):
                signal.signal(number, handler)


def _raise(number: int, _: object) -> None:
    global _status, _pressed
    _status = STATUS if number == signal.SIGINT else TRY_AGAIN
    _pressed = True
    _replace(_end)
    raise KeyboardInterrupt


def _end(number: int, _: object) -> None:
    kill_children()
    _report()
    os._exit(STATUS if number == signal.SIGINT else TRY_AGAIN)


def _report() -> None:
    if next(_reports) == 0:
        os.write(2, _line)  # the interrupted code may hold the lock of sys.stderr
