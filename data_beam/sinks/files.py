"""Whole files or none: a temporary name, then a rename, on any Beam file system."""

import errno
import hashlib
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from apache_beam.io.filesystem import CompressionTypes, FileMetadata, FileSystem
from apache_beam.io.filesystems import FileSystems
from apache_beam.io.localfilesystem import LocalFileSystem

TEMPORARY = "_temporary"
"""Folder inside an output for what a run needs only while it runs."""


def shard_of(document_id: str, shards: int) -> int:
    """Shard of an id of hex digits: its first 64 bits modulo `shards`."""
    return int(document_id[:16], 16) % shards


def shard_name(kind: str, shard: int, shards: int, suffix: str) -> str:
    """`documents-00000-of-00004.parquet`."""
    return f"{kind}-{shard:05d}-of-{shards:05d}.{suffix}"


def is_local(path: str) -> bool:
    """Whether a path is on a file system of this machine."""
    return isinstance(FileSystems.get_filesystem(path), LocalFileSystem)


def match(root: str, pattern: str) -> Iterator[FileMetadata]:
    """Files below a folder, in no order.

    Beam's own `match` and `delete` take a whole path for a pattern, so that a folder called `[1]`
    is not found.

    Args:
      root: folder, taken literally.
      pattern: glob of paths below it, in Beam's words: `**` crosses directories.
    """
    root = root.rstrip("/") + "/"
    literal = re.match(r"[^\[*?]*", pattern)
    assert literal is not None
    if is_local(root):
        found = _walk(root + os.path.dirname(literal[0]))
    else:
        found = FileSystems.match([re.sub(r"[\[*?]", "?", root) + pattern])[0].metadata_list
    wanted = re.compile(FileSystem.translate_pattern(pattern))
    for entry in found:
        path = entry.path.replace("\\", "/")
        if path.startswith(root) and wanted.match(path[len(root):]):
            yield entry


def _walk(folder: str) -> Iterator[FileMetadata]:
    for directory, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(directory, name)
            try:
                status = os.stat(path)
            except FileNotFoundError:  # gone since, or a link to nowhere
                continue
            yield FileMetadata(path, status.st_size, status.st_mtime)


def remove(paths: list[str]) -> None:
    """Deletes files, each path taken literally."""
    for path in paths:
        if is_local(path):
            os.remove(path)
        else:
            FileSystems.delete([path])


def remove_folder(path: str) -> None:
    """Deletes a folder and what is in it, if it is there: object stores have no empty folders."""
    if is_local(path):
        if os.path.isdir(path):
            shutil.rmtree(path)
    else:
        remove([entry.path for entry in match(path, "**")])


_DISK_FULL = tuple(os.strerror(code) for code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


def disk_full(error: BaseException) -> str | None:
    """The system's words when `error` is a full disk or a quota. Beam wraps the error of a worker
    in its own; the text survives."""
    return next((text.lower() for text in _DISK_FULL if text in str(error)), None)


def make_folder(path: str) -> None:
    """Creates a folder and its parents; no error if another worker did."""
    if not FileSystems.exists(path):
        try:
            FileSystems.mkdirs(path)
        except Exception:  # each file system has its own error; what counts is that it is there.
            if not FileSystems.exists(path):
                raise


class _Hashed:
    """A binary file that counts and hashes what goes through it."""

    def __init__(self, handle: Any):
        self._handle, self._digest, self.size = handle, hashlib.sha256(), 0
        self.closed = False

    def write(self, data: Any) -> int:
        view = bytes(data)
        self._handle.write(view)
        self._digest.update(view)
        self.size += len(view)
        return len(view)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        self._handle.flush()

    def close(self) -> None:  # the owner of the real handle closes it.
        self.closed = True

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def write_atomically(path: str, temporary: str, write: Callable[[Any], None]) -> tuple[int, str]:
    """Writes a file through `write(handle)` and gives it its name once it is whole.

    Args:
      path: final place; an older file there is replaced.
      temporary: existing folder on the same file system for the unfinished file.
      write: gets a binary handle that can be written only forwards.

    Returns:
      Size in bytes and SHA-256.
    """
    unfinished = FileSystems.join(temporary, f"unfinished-{uuid.uuid4().hex}")
    try:
        with FileSystems.create(
                unfinished, compression_type=CompressionTypes.UNCOMPRESSED) as handle:
            hashed = _Hashed(handle)
            write(hashed)
        FileSystems.rename([unfinished], [path])
    except BaseException:
        if FileSystems.exists(unfinished):
            remove([unfinished])
        raise
    return hashed.size, hashed.hexdigest()


def read_bytes(path: str) -> bytes:
    """The whole file."""
    with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as handle:
        return handle.read()
