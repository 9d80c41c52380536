"""The folder that a command writes: one run at a time, complete or marked as unfinished.

A command deletes only files that it wrote.
"""

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from apache_beam.io.filesystem import FileMetadata
from apache_beam.io.filesystems import FileSystems

from data_beam.base import files
from maxlm.cli import outputs
from maxlm.config.schema import ConfigError

_MARKER = "made_by"  # file in the temporary folder while a run is unfinished; it names the command
_TEMPORARY_FILES = re.compile(
    rf"{files.TEMPORARY}/(?:{_MARKER}|listing\.jsonl?"
    r"|(?:reports/|progress/)?unfinished-[0-9a-f]{32}|parts/(?:\d+-)?[0-9a-f]{32}\.parquet"
    r"|reports/[\w.-]+\.json|progress/[0-9a-f]{32}\.json|work/[\w./-]+)")


@contextlib.contextmanager
def exclusive(output: str) -> Iterator[str]:
    """Makes the folder, on any file system that Beam knows, and locks it against other runs until
    the block ends; yields its absolute path.

    The kernel locks the folder itself: that leaves no file and ends with the process. Remote file
    systems have no lock. A folder made here and still empty at the end is removed. Raises
    ConfigError if it cannot be made, is a file, or another run is writing it.
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
            outputs.lock(folder, f"--output: another run is writing {output}; wait until it ends "
                         "or choose another --output")
        except OSError as error:  # some network file systems
            print(f"warning: {output} cannot be locked ({error.strerror}); start no second run on "
                  "it", file=sys.stderr)
        yield output
    finally:
        if made and os.path.isdir(output) and not os.listdir(output):
            os.rmdir(output)
        os.close(folder)


@contextlib.contextmanager
def naming_full_disk(where: str, what: str = "", field: str = "--output") -> Iterator[None]:
    """Turns the error of a full disk or a used-up quota into a ConfigError of one line. It names
    the folder that is written, what it does not hold yet, and the flag or variable that names the
    folder."""
    try:
        yield
    except Exception as error:
        full = outputs.full_disk(error)
        if full is None:
            raise
        incomplete = f"; there is no complete {what} yet" if what else ""
        raise ConfigError(f"{field}: cannot write to {where}: {full.lower()}{incomplete}. Make "
                          "room and run again") from error


def finished(output: str, name: str, read: Callable[[str], Any],
             difference: Callable[[Any], str | None],
             fix: str = "choose another --output or remove it") -> Any | None:
    """The description that a command writes last as file `name`, if the output is there and of
    these inputs; None without one.

    `read` reads it from a path; `difference` says how it differs from what this run would write, or
    None. Raises ConfigError if it is damaged, or if it differs, with the `fix`.
    """
    path = FileSystems.join(output, name)
    if not FileSystems.exists(path):
        return None
    try:
        found = read(path)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"--output: {path} is damaged or from another command ({error}); choose "
                          "another --output, or remove it and run again") from None
    different = difference(found)
    if different is not None:
        raise ConfigError(f"--output: {output} {different}; {fix}")
    return found


def other_inputs(what: str, inputs: Mapping[str, Any]) -> Callable[[Any], str | None]:
    """For `finished`: which of the inputs of a description are other ones."""
    def difference(found: Any) -> str | None:
        changed = [name for name, value in inputs.items() if found["inputs"].get(name) != value]
        return f"holds a {what} made with another {', '.join(changed)}" if changed else None

    return difference


def is_unfinished(output: str, command: str) -> bool:
    """Whether a run of `command` started here and did not finish."""
    path = FileSystems.join(output, files.TEMPORARY, _MARKER)
    return FileSystems.exists(path) and files.read_bytes(path).strip() == command.encode()


def check_is_folder(output: str) -> None:
    """Raises ConfigError if an output is, or lies below, a file."""
    if files.is_local(output) and any(
            path.exists() and not path.is_dir() for path in (
                Path(output).resolve(), *Path(output).resolve().parents)):
        raise ConfigError(f"--output: {output} is, or lies below, a file; name a folder")


def _entries(output: str) -> Iterator[tuple[str, FileMetadata]]:
    """Path below a folder and metadata of each file in it."""
    for entry in files.match(output, "**"):
        yield entry.path[len(output.rstrip("/")) + 1:], entry


def check_begin(output: str, command: str, own: re.Pattern[str]) -> None:
    """Raises ConfigError if a folder has files this command did not write: `begin` must not use
    it."""
    marked = is_unfinished(output, command)
    for name, _ in _entries(output):
        if not marked or not (own.fullmatch(name) or _TEMPORARY_FILES.fullmatch(name)):
            raise ConfigError(f"--output: {output} contains files this command did not write "
                              f"({name}); choose a new or an empty folder")


def begin(output: str, command: str, own: re.Pattern[str],
          keep: Callable[[str], bool] = lambda name: False) -> str:
    """Deletes the files of a stopped run and marks the folder as this command's until `finish`;
    returns its temporary folder.

    It deletes only files with names that the command writes (`own`: paths below the output),
    without those to `keep`, and only in a folder that it marked. Raises ConfigError if the folder
    contains files this command did not write; then nothing was deleted.
    """
    check_begin(output, command, own)
    marker = f"{files.TEMPORARY}/{_MARKER}"
    files.remove([entry.path for name, entry in _entries(output)
                  if name != marker and not keep(name)])
    if not is_unfinished(output, command):
        _mark(output, command)
    return FileSystems.join(output, files.TEMPORARY)


@contextlib.contextmanager
def scratch(output: str, command: str) -> Iterator[str]:
    """A temporary folder inside a folder with other files, until the block ends. What a stopped run
    of the same command left there is removed first. Raises ConfigError if another command left a
    temporary folder."""
    temporary = FileSystems.join(output, files.TEMPORARY)
    if FileSystems.exists(temporary) and not is_unfinished(output, command):
        raise ConfigError(f"--output: {temporary} exists and is not of this command; run the one "
                          "that left it again, or remove it")
    finish(output, command)
    try:
        _mark(output, command)
        yield temporary
    finally:
        files.remove_folder(temporary)


def check_reopen(output: str, own: re.Pattern[str], manifest: str) -> None:
    """Raises ConfigError if a folder contains other files too, so that `reopen` must not use it."""
    for name, _ in _entries(output):
        if name != manifest and not (own.fullmatch(name) or _TEMPORARY_FILES.fullmatch(name)):
            raise ConfigError(f"--output: {output} contains other files too ({name}); "
                              "choose a new or an empty folder")


def reopen(output: str, command: str, own: re.Pattern[str], manifest: str) -> None:
    """Turns a complete output into an unfinished one of `command`, so that `begin` clears it:
    deletes the manifest, whose presence means that the output is complete. `own` is what the
    command writes beside it. Raises ConfigError if the folder contains other files too; then
    nothing was deleted."""
    check_reopen(output, own, manifest)
    _mark(output, command)
    files.remove([FileSystems.join(output, manifest)])


def _mark(output: str, command: str) -> None:
    temporary = FileSystems.join(output, files.TEMPORARY)
    files.make_folder(temporary)
    with files.create_raw(FileSystems.join(temporary, _MARKER)) as handle:
        handle.write(f"{command}\n".encode())


def finish(output: str, command: str) -> None:
    """Removes the temporary folder of a run, if there is one of this command."""
    if is_unfinished(output, command):
        files.remove_folder(FileSystems.join(output, files.TEMPORARY))


def check_files(output: str, sizes: Iterable[tuple[str, int | None]]) -> None:
    """Raises ConfigError if a finished output lacks a file, or one has another size; the first is
    named. `sizes` has the path below the output and the bytes of each file of the manifest; None
    where it has no size."""
    found = {name: entry.size_in_bytes for name, entry in _entries(output)}
    for name, size in sizes:
        if name not in found or size not in (None, found[name]):
            what = "is missing" if name not in found else (
                f"has {found[name]:,} bytes instead of {size:,}")
            fix = f"make it again: python -m data_beam.report --corpus={output}" if name in (
                "report.html", "report.json") else f"remove {output} and run again"
            raise ConfigError(f"--output: {output.rstrip('/')}/{name} {what}; {fix}")
