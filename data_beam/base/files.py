"""Listing, reading, writing and deleting files on any file system that Beam knows."""

import hashlib
import io
import os
import re
import shutil
import stat
import uuid
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from apache_beam.io.filesystem import CompressionTypes, FileMetadata, FileSystem
from apache_beam.io.filesystems import FileSystems
from apache_beam.io.localfilesystem import LocalFileSystem

from maxlm.config.schema import ConfigError

TEMPORARY = "_temporary"  # folder inside an output for files that a run needs only while it runs


def shard_of(document_id: str, shards: int) -> int:
    """Shard of an id of hex digits: its first 64 bits modulo `shards`."""
    return int(document_id[:16], 16) % shards


def shard_name(kind: str, shard: int, shards: int, suffix: str) -> str:
    """`documents-00000-of-00004.parquet`."""
    return f"{kind}-{shard:05d}-of-{shards:05d}.{suffix}"


def is_local(path: str) -> bool:
    """Whether a path is on a file system of this machine."""
    return isinstance(FileSystems.get_filesystem(path), LocalFileSystem)


def no_folder(path: str) -> str | None:
    """Completes "the folder PATH ..." where a path of this machine is not a folder. None for a
    folder, and on other file systems: object stores have no folders."""
    if not is_local(path):
        return None
    try:
        return None if stat.S_ISDIR(os.stat(path.rstrip("/") or "/").st_mode) else (
            "is not a folder")
    except (FileNotFoundError, NotADirectoryError):
        return "does not exist"
    except OSError:  # `match` says what
        return None


class UnreadableFolder(ConfigError):
    """The files in a folder cannot be listed; the message names it."""

    def __init__(self, folder: str, error: OSError):
        super().__init__(f"cannot read the folder {folder!r} ({(error.strerror or '').lower()}); "
                         "make it readable, as with chmod u+rx")
        self.folder = folder


def match(root: str, pattern: str, enter: Callable[[str], bool] = lambda folder: True,
          unfollowed: Callable[[str], None] = lambda folder: None) -> Iterator[FileMetadata]:
    """Files below a folder, in no order. Everything but folders counts as a file, broken links too.
    Raises UnreadableFolder for a folder of this machine in which the pattern might match.

    Beam's own `match` and `delete` treat a whole path as a pattern, so that a folder called `[1]`
    is not found. Here `root` is taken literally; the pattern is a glob of paths below it, as Beam
    defines it: `**` crosses directories.

    `enter` decides whether to list a folder of this machine; it gets its path below `root` with a /
    at its end. `unfollowed` is called with the paths below `root` of symbolic links to folders in
    which the pattern might match. They are not followed: a file could be found twice, or without
    end. The folders that the pattern names before its first wildcard may be links.
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
            known = _metadata(entry) if isinstance(entry, str) else entry
            if known is not None:
                yield known


def _walk(root: str, pattern: str, start: str, enter: Callable[[str], bool],
          unfollowed: Callable[[str], None]) -> Iterator[str]:
    """Paths of the files in the folders, from `start` on, in which a pattern might match; see
    `match`."""
    levels: list[re.Pattern[str]] = []  # of the names of folders, by depth
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
        if isinstance(error, (FileNotFoundError, NotADirectoryError)):  # deleted, or never there
            return
        # The system's own folder at the top of a disk, which only root may read.
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


def _metadata(path: str) -> FileMetadata | None:
    """Metadata of a file of this machine, or None if it was deleted meanwhile."""
    try:
        status = os.stat(path)
    except OSError:  # perhaps a link: broken, to itself, or into a folder without permission
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return None
        except PermissionError as error:  # the folder may be listed, but its files not examined
            raise UnreadableFolder(os.path.dirname(path), error) from None
    return FileMetadata(path, status.st_size, status.st_mtime)


_IRREGULAR = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder",
              stat.S_IFCHR: "a character device", stat.S_IFBLK: "a block device"}


def irregular(path: str) -> str | None:
    """What a path of this machine is, in words, if it is not a regular file: opening or reading it
    might never end. None for a regular file and on other file systems. Raises OSError if it does
    not exist, is a broken link, or lacks permission."""
    if not is_local(path):
        return None
    mode = os.stat(path).st_mode
    return None if stat.S_ISREG(mode) else _IRREGULAR.get(stat.S_IFMT(mode), "not a regular file")


def remove(paths: list[str]) -> None:
    """Deletes files, each path taken literally."""
    for path in paths:
        if is_local(path):
            os.remove(path)
        else:
            FileSystems.delete([path])


def remove_folder(path: str) -> None:
    """Deletes a folder and everything in it, if it exists: object stores have no empty folders."""
    if is_local(path):
        if os.path.isdir(path):
            shutil.rmtree(path)
    else:
        remove([entry.path for entry in match(path, "**")])


def make_folder(path: str) -> None:
    """Creates a folder and its parents; no error if another worker did."""
    if not FileSystems.exists(path):
        try:
            FileSystems.mkdirs(path)
        except Exception:  # each file system has its own error; perhaps another worker made it
            if not FileSystems.exists(path):
                raise


class _Hashed(io.RawIOBase):
    """Counts and hashes the bytes written to a binary file, and leaves the file open when
    closed."""

    def __init__(self, handle: Any):
        self._handle, self.digest, self.size = handle, hashlib.sha256(), 0

    def write(self, data: Any) -> int:
        view = bytes(data)
        self._handle.write(view)
        self.digest.update(view)
        self.size += len(view)
        return len(view)

    def tell(self) -> int:
        return self.size

    def writable(self) -> bool:
        return True


def write_atomically(path: str, temporary: str, content: bytes | Callable[[Any], Any]
                     ) -> tuple[int, str]:
    """Writes a file under a temporary name and renames it when complete; returns its size in bytes
    and its SHA-256. An older file is replaced. `temporary` is an existing folder on the same file
    system for the unfinished file; `content` may be a function that writes to a binary handle, only
    forwards."""
    unfinished = FileSystems.join(temporary, f"unfinished-{uuid.uuid4().hex}")
    try:
        with create_raw(unfinished) as handle:
            hashed = _Hashed(handle)
            if callable(content):
                content(hashed)
            else:
                hashed.write(content)
        FileSystems.rename([unfinished], [path])
    except BaseException:
        if FileSystems.exists(unfinished):
            remove([unfinished])
        raise
    return hashed.size, hashed.digest.hexdigest()


def open_raw(path: str) -> BinaryIO:
    """The file's own bytes, never decompressed by Beam."""
    return FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)


def create_raw(path: str) -> BinaryIO:
    """A new file whose bytes Beam does not compress."""
    return FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED)


def read_bytes(path: str) -> bytes:
    with open_raw(path) as handle:
        return handle.read()
