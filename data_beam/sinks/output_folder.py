"""The folder that a command writes: one run at a time, and only its own files are deleted."""

import contextlib
import fcntl
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from apache_beam.io.filesystems import FileSystems

from data_beam.base import files
from maxlm.config.schema import ConfigError

_MARKER = "made_by"
"""File in the temporary folder that names the command, from the start of a run to its end."""
_TEMPORARY_FILES = re.compile(
    rf"{files.TEMPORARY}/(?:{_MARKER}|listing\.jsonl?"
    r"|(?:reports/|progress/)?unfinished-[0-9a-f]{32}|parts/(?:\d+-)?[0-9a-f]{32}\.parquet"
    r"|reports/[\w.-]+\.json|progress/[0-9a-f]{32}\.json|work/[\w./-]+)")


@contextlib.contextmanager
def exclusive(output: str) -> Iterator[str]:
    """Makes the folder and locks it against other runs until the block ends.

    The lock is the kernel's, on the folder itself: it leaves no file and ends with the process.
    Remote file systems have none. A new folder that is still empty at the end is removed.

    Args:
      output: folder, local or on any file system that Beam knows.

    Yields:
      Its absolute path.

    Raises:
      ConfigError: it cannot be made, is a file, or another run is writing it.
    """
    if not files.is_local(output):
        yield output.rstrip("/")
        return
    output = str(Path(output).resolve())
    made = not os.path.exists(output)
    try:
        os.makedirs(output, exist_ok=True)
        folder = os.open(output, os.O_RDONLY | os.O_DIRECTORY)
    except (FileExistsError, NotADirectoryError):
        raise ConfigError(f"--output: {output} is, or lies below, a file; name a folder") from None
    except OSError as error:
        raise ConfigError(f"--output: cannot use {output}: {error.strerror}") from None
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(f"--output: another run is writing {output}; wait until it ends or "
                              "choose another --output") from None
        except OSError as error:  # some network file systems
            print(f"warning: {output} cannot be locked ({error.strerror}); start no second run on "
                  "it", file=sys.stderr)
        yield output
    finally:
        if made and os.path.isdir(output) and not os.listdir(output):
            os.rmdir(output)
        os.close(folder)


def is_unfinished(output: str, command: str) -> bool:
    """Whether a run of `command` began here and did not finish."""
    path = FileSystems.join(output, files.TEMPORARY, _MARKER)
    return FileSystems.exists(path) and files.read_bytes(path).strip() == command.encode()


def check_is_folder(output: str) -> None:
    """Checks that an output is a folder or does not exist.

    Raises:
      ConfigError: it is, or lies below, a file.
    """
    if files.is_local(output) and any(
            place.exists() and not place.is_dir() for place in (
                Path(output).resolve(), *Path(output).resolve().parents)):
        raise ConfigError(f"--output: {output} is, or lies below, a file; name a folder")


def check_begin(output: str, command: str, own: re.Pattern[str]) -> None:
    """Checks that `begin` may use a folder; see there.

    Raises:
      ConfigError: it holds files of something else.
    """
    marked = is_unfinished(output, command)
    for entry in files.match(output, "**"):
        name = entry.path[len(output.rstrip("/")) + 1:]
        if not marked or not (own.fullmatch(name) or _TEMPORARY_FILES.fullmatch(name)):
            raise ConfigError(f"--output: {output} holds files of something else ({name}); choose "
                              "a new or an empty folder")


def begin(output: str, command: str, own: re.Pattern[str],
          keep: Callable[[str], bool] = lambda name: False) -> str:
    """Deletes the files of a stopped run and marks the folder as this command's until `finish`.

    Only files with names that the command writes are deleted, and only in a folder that it marked.

    Args:
      output: the folder.
      command: name of the command, as `data_beam.prepare`.
      own: paths below `output` that the command writes.
      keep: whether to keep a file of the command, by its path below `output`.

    Returns:
      The temporary folder.

    Raises:
      ConfigError: the folder holds files of something else. Nothing was deleted.
    """
    check_begin(output, command, own)
    marked = is_unfinished(output, command)
    temporary = FileSystems.join(output, files.TEMPORARY)
    marker = FileSystems.join(temporary, _MARKER)
    left = []
    for entry in files.match(output, "**"):
        name = entry.path[len(output.rstrip("/")) + 1:]
        if entry.path != marker and not keep(name):
            left.append(entry.path)
    files.remove(left)
    if not marked:
        files.make_folder(temporary)
        _mark(temporary, command)
    return temporary


@contextlib.contextmanager
def scratch(output: str, command: str) -> Iterator[str]:
    """A temporary folder for a command that works in a folder with other files, until the block
    ends. The files of a stopped run of the same command are removed first.

    Raises:
      ConfigError: there is one of another command.
    """
    temporary = FileSystems.join(output, files.TEMPORARY)
    if FileSystems.exists(temporary) and not is_unfinished(output, command):
        raise ConfigError(f"--output: {temporary} is there, and not of this command; run the one "
                          "that left it again, or remove it")
    finish(output, command)
    files.make_folder(temporary)
    try:
        with FileSystems.create(FileSystems.join(temporary, _MARKER),
                                compression_type=files.CompressionTypes.UNCOMPRESSED) as handle:
            handle.write(f"{command}\n".encode())
        yield temporary
    finally:
        files.remove_folder(temporary)


def check_reopen(output: str, own: re.Pattern[str], manifest: str) -> None:
    """Checks that `reopen` may use a folder; see there.

    Raises:
      ConfigError: it holds files of something else too.
    """
    root = output.rstrip("/") + "/"
    for entry in files.match(output, "**"):
        name = entry.path[len(root):]
        if name != manifest and not (own.fullmatch(name) or _TEMPORARY_FILES.fullmatch(name)):
            raise ConfigError(f"--output: {output} holds files of something else too ({name}); "
                              "choose a new or an empty folder")


def reopen(output: str, command: str, own: re.Pattern[str], manifest: str) -> None:
    """Marks a complete output as one that a run of `command` began, so that `begin` clears it.

    Args:
      output: the folder.
      command: name of the command.
      own: what the command writes beside the manifest.
      manifest: name of the file that marks a complete output; it is deleted.

    Raises:
      ConfigError: the folder holds files of something else too. Nothing was deleted.
    """
    check_reopen(output, own, manifest)
    temporary = FileSystems.join(output, files.TEMPORARY)
    files.make_folder(temporary)
    _mark(temporary, command)
    files.remove([FileSystems.join(output, manifest)])


def _mark(temporary: str, command: str) -> None:
    with FileSystems.create(FileSystems.join(temporary, _MARKER),
                            compression_type=files.CompressionTypes.UNCOMPRESSED) as handle:
        handle.write(f"{command}\n".encode())


def finish(output: str, command: str) -> None:
    """Removes the temporary folder of a run, if there is one of this command."""
    if is_unfinished(output, command):
        files.remove_folder(FileSystems.join(output, files.TEMPORARY))


def check_whole(output: str, sizes: Iterable[tuple[str, int | None]]) -> None:
    """Checks that a finished output still has its files.

    Args:
      output: the folder.
      sizes: path below it and bytes of each file of the manifest; None where it has no size.

    Raises:
      ConfigError: a file is missing or has another size; the first is named.
    """
    root = output.rstrip("/") + "/"
    found = {entry.path[len(root):]: entry.size_in_bytes for entry in files.match(output, "**")}
    for name, size in sizes:
        if name not in found or size not in (None, found[name]):
            what = "is missing" if name not in found else (
                f"has {found[name]:,} bytes instead of {size:,}")
            fix = f"make it again: python -m data_beam.report --corpus={output}" if name in (
                "report.html", "report.json") else f"remove {output} and run again"
            raise ConfigError(f"--output: {root}{name} {what}; {fix}")
