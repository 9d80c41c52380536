"""A limit that the system enforces as it does a full disk."""

import resource
import signal
from collections.abc import Callable


def file_size_limit(size: int) -> Callable[[], None]:
    """For `preexec_fn`: no file of the process, or of those it starts, may have more bytes."""
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit
