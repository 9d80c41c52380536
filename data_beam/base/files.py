"""Whole files or none: a temporary name, then a rename, on any Beam file system."""

import errno
import hashlib
import os
import re
import shutil
import stat
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from apache_beam.io.filesystem import CompressionTypes, FileMetadata, FileSystem
from apache_beam.io.filesystems import FileSystems
from apache_beam.io.localfilesystem import LocalFileSystem

from maxlm.config.schema import ConfigError

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


class UnreadableFolder(ConfigError):
    """Nobody can tell which files are in a folder; the message names it."""

    def __init__(self, folder: str, error: OSError):
        super().__init__(f"cannot read the folder {folder!r} ({(error.strerror or '').lower()}); "
                         "make it readable, as with chmod u+rx")
        self.folder = folder


def match(root: str, pattern: str, enter: Callable[[str], bool] = lambda folder: True,
          unfollowed: Callable[[str], None] = lambda folder: None) -> Iterator[FileMetadata]:
    """Files below a folder, in no order: whatever is no folder, links to nothing among them.

    Beam's own `match` and `delete` take a whole path for a pattern, so that a folder called `[1]`
    is not found.

    Args:
      root: folder, taken literally.
      pattern: glob of paths below it, in Beam's words: `**` crosses directories.
      enter: whether a folder of this machine, by its path below `root` with a / at its end, is
        looked into.
      unfollowed: told the paths below `root` of symbolic links to folders in which the pattern
        might match: they are not followed, so that no file is found twice, or for ever. The
        folders that the pattern names before its first wildcard may be links.

    Raises:
      UnreadableFolder: of this machine, in which the pattern might match.
    """
    root = root.rstrip("/") + "/"
    literal = re.match(r"[^\[*?]*", pattern)
    assert literal is not None
    if is_local(root):
        found = _walk(root, pattern, os.path.dirname(literal[0]), enter, unfollowed)
    else:
        found = FileSystems.match([re.sub(r"[\[*?]", "?", root) + pattern])[0].metadata_list
    wanted = re.compile(FileSystem.translate_pattern(pattern))
    for entry in found:
        path = (entry if isinstance(entry, str) else entry.path).replace("\\", "/")
        if path.startswith(root) and wanted.match(path[len(root):]):
            known = _look(entry) if isinstance(entry, str) else entry
            if known is not None:
                yield known


def _walk(root: str, pattern: str, start: str, enter: Callable[[str], bool],
          unfollowed: Callable[[str], None]) -> Iterator[str]:
    """Paths of the files in those folders in which a pattern might match; see `match`.

    Args:
      start: folder below `root` to begin in.
    """
    levels: list[re.Pattern[str]] = []  # of the folders, as deep as / in the pattern tells
    *folders, last = pattern.split("/")
    for level in folders:
        if "**" in level or "?" in level or "[" in level:  # these match / too
            break
        levels.append(re.compile(FileSystem.translate_pattern(level)))
    deeper = len(levels) < len(folders) or any(mark in last for mark in ("**", "?", "["))

    def may_match(folder: str) -> bool:
        names = folder.split("/")
        return (deeper or len(names) <= len(levels)) and all(
            level.match(name) for level, name in zip(levels, names, strict=False))

    def failed(error: OSError) -> None:
        folder = os.fspath(error.filename)
        if isinstance(error, (FileNotFoundError, NotADirectoryError)):  # gone since, or never was
            return
        # The system's own at the top of a disk, for root alone, and of no user's files.
        if isinstance(error, PermissionError) and os.path.basename(folder) == "lost+found":
            return
        raise UnreadableFolder(folder, error)

    for directory, inner, names in os.walk(root + start, onerror=failed):
        below = directory[len(root):] + "/" if len(directory) > len(root) else ""
        entered = []
        for name in inner:
            if may_match(below + name) and enter(below + name + "/"):
                if os.path.islink(os.path.join(directory, name)):
                    unfollowed(below + name)
                else:
                    entered.append(name)
        inner[:] = entered
        for name in names:
            yield os.path.join(directory, name)


def _look(path: str) -> FileMetadata | None:
    """A file of this machine, or None if it is gone since."""
    try:
        status = os.stat(path)
    except OSError:  # perhaps a link, to nothing, to itself or to where nobody may look
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return None
        except PermissionError as error:  # the folder tells names and no more
            raise UnreadableFolder(os.path.dirname(path), error) from None
    return FileMetadata(path, status.st_size, status.st_mtime)


_IRREGULAR = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder",
              stat.S_IFCHR: "a character device", stat.S_IFBLK: "a block device"}


def irregular(path: str) -> str | None:
    """What is at a path of this machine if it is no regular file, in words: opening such a thing
    may never return, and reading it never end. None for a regular file and on other file systems.

    Raises:
      OSError: nothing is there, as with a link to nothing, or nobody may look.
    """
    if not is_local(path):
        return None
    mode = os.stat(path).st_mode
    return None if stat.S_ISREG(mode) else _IRREGULAR.get(stat.S_IFMT(mode), "no regular file")


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
