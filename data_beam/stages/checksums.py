"""Are the files that a run goes on from still those that it wrote?

A disk or a copy can alter bytes and leave a file's size as it was.
"""

import hashlib
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

_BLOCK = 2**20
_THREADS = 8
_SECONDS = 5.0


def verified(done: dict[str, dict[str, Any]], folder: Callable[[str], str]
             ) -> dict[str, dict[str, Any]]:
    """The stages to go on from: those before the first one of which a file does not have its
    checksum. That stage is named in a line.

    Only files are read that the stages to come read: all of the last stage, and of those before
    what `finish` takes from every stage, that is all but the documents.

    Args:
      done: manifests of the stages that are whole by the sizes of their files, in order.
      folder: name of a stage -> the folder of its files.
    """
    checked: set[str] = set()
    while done:
        last = list(done)[-1]
        wanted = [(stage, FileSystems.join(folder(stage), entry["file"]), entry)
                  for stage, manifest in done.items() for entry in manifest["outputs"]
                  if stage == last or (last != "finish"
                                       and not entry["file"].startswith("documents/"))]
        wanted = [item for item in wanted if item[1] not in checked]
        digests = _digests([path for _, path, _ in wanted],
                           sum(entry["bytes"] for _, _, entry in wanted))
        bad = next(((stage, path) for (stage, path, entry), digest in zip(
            wanted, digests, strict=True) if digest != entry["sha256"]), None)
        if bad is None:
            break
        checked.update(path for _, path, _ in wanted)
        stage, path = bad
        print(f"{stage}: done again, as {path} does not have the checksum of its manifest",
              flush=True)
        names = list(done)
        done = {name: done[name] for name in names[:names.index(stage)]}
    return done


def _digests(paths: Sequence[str], total: int) -> list[str]:
    """SHA-256 of the files; tells now and then how far it is."""
    lock = threading.Lock()
    read, said = 0, time.monotonic()
    stop = threading.Event()

    def digest(path: str) -> str:
        nonlocal read, said
        result = hashlib.sha256()
        with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as handle:
            while not stop.is_set() and (block := handle.read(_BLOCK)):
                result.update(block)
                with lock:
                    read += len(block)
                    if time.monotonic() - said > _SECONDS:
                        said = time.monotonic()
                        print(f"checking finished stages: {read / 1e6:,.0f} of {total / 1e6:,.0f} "
                              "MB", file=sys.stderr, flush=True)
        return result.hexdigest()

    with ThreadPoolExecutor(_THREADS) as threads:
        try:
            return list(threads.map(digest, paths))
        except BaseException:
            stop.set()
            raise
