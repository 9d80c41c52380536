"""Which errors mean a full disk, or no memory."""

import errno
import os

import jax.numpy as jnp
import pytest

from maxlm.cli.outputs import full_disk
from maxlm.config import RunFailure
from maxlm.training.faults import naming_full_disk, naming_no_memory


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_found_behind_other_errors(code):
    reason = os.strerror(code)
    assert full_disk(OSError(code, reason)) == reason
    # As TensorStore reports it.
    assert full_disk(ValueError(f"RESOURCE_EXHAUSTED: Failed to write: {reason} [OS error]"))
    try:
        try:
            raise OSError(code, reason)
        except OSError as error:
            raise RuntimeError("the save failed") from error
    except RuntimeError as error:
        assert full_disk(error) == reason


def test_other_errors_stay_what_they_are():
    assert full_disk(OSError(errno.EIO, os.strerror(errno.EIO))) is None
    with pytest.raises(OSError, match="Input/output"), naming_full_disk("here"):
        raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_the_file_and_the_fix_are_named():
    with (pytest.raises(RunFailure, match=r"RUN could not be written: No space.*Free some space"),
          naming_full_disk("RUN"), open("/dev/full", "wb", buffering=0) as file):
        file.write(b"x")


def test_no_memory_is_one_line_with_what_needs_less():
    with (pytest.raises(RunFailure, match=r"^RESOURCE_EXHAUSTED: .* 70368744177664 bytes\.?; less"),
          naming_no_memory("less")):
        jnp.zeros(1 << 44).block_until_ready()
