"""For the fork server alone, which imports it: no traceback for a command that is gone.

A process that was just forked tells the command its number, and the command may have been
interrupted since.
"""

import sys
from types import TracebackType

_before = sys.excepthook


def _hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, BrokenPipeError):
        _before(kind, error, trace)


sys.excepthook = _hook
