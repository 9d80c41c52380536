"""Beam's own job service: its portable protocol, with workers in processes that it starts."""

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator


@contextlib.contextmanager
def portable_options() -> Iterator[list[str]]:
    """Options of a pipeline that runs in the service while the block lasts."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    service = subprocess.Popen(
        [sys.executable, "-m", "apache_beam.runners.portability.local_job_service_main",
         "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("localhost", port), 1):
                break
            assert service.poll() is None and time.monotonic() < deadline, "no job service"
            time.sleep(0.2)
        yield ["--runner=PortableRunner", f"--job_endpoint=localhost:{port}",
               "--environment_type=beam:env:harness_subprocess_python:v1",
               f"--environment_config={sys.executable} -m "
               "apache_beam.runners.worker.sdk_worker_main"]
    finally:
        service.terminate()
        service.wait(20)
