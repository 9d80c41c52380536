"""What every command that writes files needs: one run at a time, and a full disk named as such."""

import errno
import fcntl
import os
from typing import Any

from maxlm.config.schema import ConfigError

# No space, over the quota, over the largest file size that this process may write.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def full_disk(error: BaseException) -> str | None:
    """The operating system's reason when a write failed for want of space, else None.

    Looks through the chain of causes, and at texts: TensorStore reports no error number, and Beam
    wraps a worker's error in its own.
    """
    seen: BaseException | None = error
    while seen is not None:
        for code in _FULL:
            if getattr(seen, "errno", None) == code or os.strerror(code) in str(seen):
                return os.strerror(code)
        seen = seen.__cause__ or seen.__context__
    return None


def lock(handle: Any, busy: str) -> None:
    """Locks an open file or folder until it is closed or the process ends.

    Args:
      handle: a file object or descriptor.
      busy: the message when another process holds the lock.

    Raises:
      ConfigError: another process holds it.
      OSError: the file system has no locks.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigError(busy) from None
