"""What every test runs under: eight virtual CPU devices, set before jax is first imported.

Commands that tests start as separate processes inherit these variables; a test that needs another
number of devices sets XLA_FLAGS for its own process.
"""

import os
import signal
import sys
from pathlib import Path

# A shell without job control starts what it puts in the background with Ctrl-C ignored, and nohup
# with SIGHUP ignored; so would be the commands that tests interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = " ".join(
    [flag for flag in os.environ.get("XLA_FLAGS", "").split()
     if not flag.startswith("--xla_force_host_platform_device_count")]
    + ["--xla_force_host_platform_device_count=8"])
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # XLA's start-up chatter
os.environ["SOURCE_DATE_EPOCH"] = "0"  # equal inputs give equal bytes, dates too

assert "jax" not in sys.modules, "jax was imported before tests/conftest.py could set its devices"

REPOSITORY = Path(__file__).resolve().parent.parent
# Tests run commands as a user does, from the repository, whatever directory pytest started in.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])])
