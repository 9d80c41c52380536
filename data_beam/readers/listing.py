"""The files of a recipe, in an order that does not depend on the machine."""

import dataclasses
import fnmatch
import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from apache_beam.io.filesystem import FileSystem

from data_beam.base import files
from data_beam.config import InputConfig, RecipeConfig, SourceConfig
from maxlm.config.schema import ConfigError


@dataclasses.dataclass(frozen=True)
class File:
    """One file to read.

    The corpus records its path relative to the input's root, with / as separator and after the
    input's prefix; bytes that are not UTF-8 are written as `\\xff`.
    """

    source: str  # name
    input: int  # index in the source's list of inputs
    location: str  # path to open it by; bytes that are not UTF-8 are surrogates, as in Python
    path: str  # as the corpus records it
    size: int
    modified: float


def _readable(path: str) -> str:
    """A path with the bytes that are not UTF-8 escaped."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _root(config: InputConfig) -> str:
    return config.root.rstrip("/\\") + "/"


def _is_excluded(config: InputConfig, path: str) -> bool:
    """Whether an input excludes a file, by its readable path below the root."""
    return any(fnmatch.fnmatchcase(path, glob) for glob in config.exclude)


def _may_hold_files(inputs: Iterable[InputConfig], folder: str) -> bool:
    """Whether no input excludes all files of a folder: `*` crosses /, so that a glob that ends with
    it and matches `private/` matches everything below."""
    return not any(glob.endswith("*") and fnmatch.fnmatchcase(_readable(folder), glob)
                   for config in inputs for glob in config.exclude)


@dataclasses.dataclass(frozen=True)
class _Seen:
    """What was found while listing: locations of the files that a pattern matches, with excluded
    ones; and symbolic links to folders, which are not followed."""

    matched: set[str] = dataclasses.field(default_factory=set)
    links: set[str] = dataclasses.field(default_factory=set)


def _list_input(source: SourceConfig, index: int, seen: _Seen) -> list[File]:
    config: InputConfig = source.inputs[index]
    root = _root(config)
    where = f"source {source.name!r}, input {index}"
    wrong = files.no_folder(root)
    if wrong:
        raise ConfigError(f"{where}: the folder {config.root} {wrong}; correct its root")
    links: list[str] = []
    try:
        found = list(files.match(
            root, config.pattern, lambda folder: _may_hold_files([config], folder),
            lambda folder: links.append(root + folder)))
    except files.UnreadableFolder as error:
        exclude = (_readable(error.folder[len(root):]) + "/*",)
        raise ConfigError(f"{where}: {error}" + (
            f", or leave it out with exclude={exclude}" if len(error.folder) > len(root) else "")
        ) from None
    except Exception as error:  # each file system of Beam has its own errors
        raise ConfigError(f"{where}: cannot list {root + config.pattern}: {error}") from None
    seen.matched.update(entry.path for entry in found)
    seen.links.update(links)
    listed = []
    for entry in found:
        location = entry.path.replace("\\", "/")
        relative = _readable(location[len(root):] if location.startswith(root) else location)
        if _is_excluded(config, relative):
            continue
        listed.append(File(source.name, index, entry.path, config.prefix + relative,
                           entry.size_in_bytes, entry.last_updated_in_seconds or 0.0))
    if not listed:
        raise ConfigError(f"{where}: no file matches {root + config.pattern}"
                          + (f" ({unfollowed(links)})" if links else ""))
    return listed


def unfollowed(links: Sequence[str]) -> str:
    """A line about one or more symbolic links to folders."""
    one = len(links) == 1
    what = "link to a folder is" if one else "links to folders are"
    return (f"{len(links):,} symbolic {what} not followed, such as {min(links)!r}; to read what is "
            "there, move it in or make it an input of its own")


_KIND = re.compile(r"\.[a-z0-9_-]{1,12}(?:\.(?:gz|bz2|zst|xz))?\Z")
_WHOLE_FOLDER = re.compile(r"\*\*[^*?\[/]+")
_KINDS_SHOWN = 8


def _kinds(paths: Iterable[str]) -> str:
    """`.json 7, .xhtml 5`: suffixes in lower case, the most frequent first."""
    counts: Counter[str] = Counter()
    for path in paths:
        suffix = _KIND.search(path.rpartition("/")[2].lower().lstrip("."))
        counts[suffix[0] if suffix else "without suffix"] += 1
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown, others = ranked[:_KINDS_SHOWN], ranked[_KINDS_SHOWN:]
    return ", ".join([f"{kind} {count:,}" for kind, count in shown]
                     + ([f"others {sum(count for _, count in others):,}"] if others else []))


def _notes(recipe: RecipeConfig, seen: _Seen) -> Iterator[str]:
    """Notes for the user about files that are not listed, a line each."""
    if seen.links:
        yield f"warning: {unfollowed(sorted(seen.links))}"
    roots: dict[str, list[InputConfig]] = {}
    for source in recipe.sources:
        for config in source.inputs:
            roots.setdefault(_root(config), []).append(config)
    for root, inputs in roots.items():
        # Inputs that take a part of the folder leave out the rest on purpose.
        if not all(_WHOLE_FOLDER.fullmatch(config.pattern) for config in inputs):
            continue
        # A file that one input excludes is left out on purpose too.
        unread = [entry.path for entry in files.match(
                      root, "**", lambda folder, inputs=inputs: _may_hold_files(inputs, folder))
                  if entry.path not in seen.matched and not any(
                      _is_excluded(config, _readable(entry.path[len(root):])) for config in inputs)]
        if unread:
            yield (f"note: {len(unread):,} file{'' if len(unread) == 1 else 's'} under "
                   f"{root.rstrip('/')} {'is' if len(unread) == 1 else 'are'} of kinds that this "
                   f"recipe does not read ({_kinds(unread)})")


def _capped(listed: Sequence[File], max_bytes: int) -> list[File]:
    """Files in the order of the hashes of their paths, until the next would pass `max_bytes`."""
    chosen, total = [], 0
    for file in sorted(listed, key=lambda f: hashlib.sha256(f.path.encode()).digest()):
        if total + file.size > max_bytes:
            break
        total += file.size
        chosen.append(file)
    if not chosen:
        raise ConfigError(f"source {listed[0].source!r}: max_bytes {max_bytes} is less than its "
                          "first file; raise it")
    return chosen


def list_files(recipe: RecipeConfig, tell: Callable[[str], None] | None = None) -> list[File]:
    """All files of a recipe, sorted by source (in the recipe's order) and path.

    `tell` is called with a line about each thing that the user may miss: links to folders, and
    files of other kinds where the inputs take a whole folder by suffix. Raises ConfigError for a
    root that does not exist, a pattern that matches nothing, a folder that cannot be read, and two
    files of one source with the same path.
    """
    result: list[File] = []
    seen = _Seen()
    for source in recipe.sources:
        listed = [file for i in range(len(source.inputs)) for file in _list_input(source, i, seen)]
        by_path: dict[str, File] = {}
        for file in listed:
            other = by_path.setdefault(file.path, file)
            if other is not file:
                raise ConfigError(
                    f"source {source.name!r}: inputs {other.input} and {file.input} both have "
                    f"{file.path!r}; narrow a pattern or give one of them a prefix")
        if source.max_bytes:
            listed = _capped(listed, source.max_bytes)
        result.extend(sorted(listed, key=lambda f: f.path))
    if tell is not None:
        for note in _notes(recipe, seen):
            tell(note)
    return result


def refuse_output_among_inputs(recipe: RecipeConfig, output: str, names: Iterable[str]) -> None:
    """Raises ConfigError if an input reads one of the files (`names`) that the command writes below
    its output: a second run would read the corpus."""
    if not files.is_local(output):
        return
    output = os.path.realpath(output)
    for source in recipe.sources:
        for index, config in enumerate(source.inputs):
            if not files.is_local(config.root):
                continue
            below = os.path.relpath(output, os.path.realpath(config.root))
            if below == ".." or below.startswith("../"):
                continue
            wanted = re.compile(FileSystem.translate_pattern(config.pattern))
            for name in names:
                path = os.path.normpath(f"{below}/{name}")
                if wanted.match(path) and not _is_excluded(config, _readable(path)):
                    raise ConfigError(
                        f"--output: {output} lies in {config.root}, and input {index} of source "
                        f"{source.name!r} would read the corpus as its own ({path}); choose a "
                        "folder outside of the inputs")


def fingerprint(listed: Sequence[File]) -> str:
    """SHA-256 over source, path, size and modification time of the files."""
    digest = hashlib.sha256()
    for file in listed:
        digest.update(f"{file.source}\0{file.path}\0{file.size}\0{file.modified!r}\n".encode())
    return digest.hexdigest()
