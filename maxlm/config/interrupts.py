"""Ctrl-C: a command cleans up at the first and ends at once at the second, with one line.

A terminal sends SIGINT to the whole group of processes, and who waits for a second presses again.
As an exception, the second would break off the clean-up of the first anywhere: in a library that
then waits for ever, say.
"""

import atexit
import multiprocessing
import os
import signal
import sys
import threading
from typing import Any, NoReturn

STATUS = 130
"""Exit status of an interrupted command: what shells give, 128 + SIGINT."""
_said = threading.Event()
_pressed = threading.Event()


def pressed() -> bool:
    """Whether Ctrl-C was pressed since `clean_up_first`: an exception that came out of a command
    may be KeyboardInterrupt in another's clothes, as Beam's runners dress those of a user's code.
    """
    return _pressed.is_set()


def end_at_once() -> None:
    """From now on the first Ctrl-C ends this process, without clean-up: for times in which there is
    nothing to clean up, like imports. Who has set another handler, or ignores the signal (`nohup`),
    keeps it."""
    _replace(_end)


def clean_up_first() -> None:
    """From now on the first Ctrl-C raises KeyboardInterrupt, and the next one ends this process."""
    _pressed.clear()
    _replace(_raise)


def leave() -> NoReturn:
    """Ends a command that KeyboardInterrupt, as such or not, has come out of.

    What was registered to be done at exit is done; threads are not waited for, as they may wait for
    what was interrupted. Child processes of multiprocessing are killed.
    """
    _replace(_end)
    _say()
    _kill_children()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    atexit._run_exitfuncs()
    others = [thread for thread in threading.enumerate()
              if not thread.daemon and thread is not threading.main_thread()]
    if others:
        os._exit(STATUS)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left that could take long
    sys.exit(STATUS)


def _replace(handler: Any) -> None:
    """Sets the handler in the place of Python's own or of one from here."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(
            signal.SIGINT) in (signal.default_int_handler, _raise, _end):
        signal.signal(signal.SIGINT, handler)


def _raise(*_: object) -> None:
    _pressed.set()
    signal.signal(signal.SIGINT, _end)
    raise KeyboardInterrupt


def _end(*_: object) -> None:
    _kill_children()
    _say()
    os._exit(STATUS)


def _say() -> None:
    if not _said.is_set():
        _said.set()
        os.write(2, b"interrupted\n")  # sys.stderr may be in use, below a signal handler


def _kill_children() -> None:
    for child in multiprocessing.active_children():
        child.kill()
