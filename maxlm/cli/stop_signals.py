"""SIGTERM, SIGHUP and Ctrl-C for a command that saves its work before it exits.

    SIGTERM, SIGHUP   save within the grace time, exit status 75 (EX_TEMPFAIL: start it again)
    Ctrl-C            save, exit status 130; a second Ctrl-C exits at once, without saving

While there is nothing to save, each of them exits at once, with the same status.

Python runs signal handlers in the main thread, between two bytecodes, which is too late while that
thread compiles a program or waits for a device. So a thread of its own reads the signals from the
file descriptor of `signal.set_wakeup_fd`, to which they are written as they arrive.
"""

import os
import signal
import socket
import threading
import time
from types import TracebackType
from typing import Any, NoReturn

from maxlm.cli import interrupts

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def exit_at_once() -> None:
    """From now on, SIGTERM, SIGHUP and Ctrl-C end this process: for the time of the imports."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, lambda *_: _exit("", interrupts.TRY_AGAIN))
    interrupts.end_at_once()  # it leaves these handlers alone, and so does `clean_up_first`


class StopSignals:
    """Notes a signal for the main loop to read; as a context manager it sets the handlers.

    Signals that are ignored (`nohup`) stay ignored. Outside the main thread it does nothing.

    Args:
      grace_seconds: after SIGTERM or SIGHUP, the process exits at the latest after this time.

    Attributes:
      received: the first signal that asked for a stop, or None.
    """

    def __init__(self, grace_seconds: float):
        self.received: signal.Signals | None = None
        self._grace_seconds = grace_seconds
        self._something_to_save = False
        self._lock = threading.Lock()
        self._handlers: dict[int, Any] = {}

    @property
    def status(self) -> int:
        """Exit status of the command, once it has stopped."""
        return interrupts.STATUS if self.received == signal.SIGINT else interrupts.TRY_AGAIN

    def asked(self) -> bool:
        """Whether this process was asked to stop."""
        return self.received is not None

    def save_first(self) -> None:
        """From now on there is something to save: a signal is noted and does not exit at once."""
        with self._lock:
            self._something_to_save = True

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is not threading.main_thread():
            return self
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._wakeup = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for number in SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:
                self._handlers[number] = signal.signal(number, lambda *_: None)
                signal.siginterrupt(number, False)  # libraries' system calls go on
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if not hasattr(self, "_thread"):
            return
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup)
        self._writer.close()
        self._thread.join()
        self._reader.close()

    def _watch(self) -> None:
        deadline = None
        while True:
            self._reader.settimeout(deadline and max(deadline - time.monotonic(), 1e-3))
            try:
                numbers = self._reader.recv(64)
            except TimeoutError:
                _exit(f"not saved within {self._grace_seconds:g} s (--grace_seconds); the same "
                      "command continues from the newest checkpoint", self.status)
            if not numbers:
                return  # closed by __exit__
            for number in numbers:
                if number in self._handlers:
                    self._handle(signal.Signals(number))
                    if deadline is None and number != signal.SIGINT:
                        deadline = time.monotonic() + self._grace_seconds

    def _handle(self, number: signal.Signals) -> None:
        with self._lock:
            if not self._something_to_save:
                self.received = number
                _exit("nothing to save", self.status)
            if self.received is None:
                self.received = number
                _write("Ctrl-C: saving a checkpoint; press again to exit without it"
                       if number == signal.SIGINT else
                       f"{number.name}: saving a checkpoint, within {self._grace_seconds:g} s")
            elif number == signal.SIGINT:
                _exit("not saved", interrupts.STATUS)


def _exit(reason: str, status: int) -> NoReturn:
    interrupts.kill_children()
    _write(f"interrupted: {reason}" if reason else "interrupted")
    os._exit(status)


def _write(line: str) -> None:
    os.write(2, f"{line}\n".encode())  # the main thread may hold the lock of sys.stderr
