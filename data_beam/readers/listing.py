"""Which files a recipe means, in an order that does not depend on the machine."""

import dataclasses
import fnmatch
import hashlib
from collections.abc import Sequence

from data_beam.config import InputConfig, RecipeConfig, SourceConfig
from data_beam.sinks import files
from maxlm.config.schema import ConfigError


@dataclasses.dataclass(frozen=True)
class File:
    """One file to read: `input` is its place in the source's list of inputs."""

    source: str
    input: int
    location: str
    """To open it by; bytes of its name that are no UTF-8 are surrogates, as Python has them."""
    path: str
    """Relative to the input's root, with / and the input's prefix: what the corpus records. Bytes
    that are no UTF-8 are written as `\\xff`."""
    size: int
    modified: float


def _readable(path: str) -> str:
    """A path whose bytes that are no UTF-8 are escaped; others stay as they are."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _list_input(source: SourceConfig, index: int) -> list[File]:
    config: InputConfig = source.inputs[index]
    root = config.root.rstrip("/\\") + "/"
    where = f"source {source.name!r}, input {index}"
    try:
        found = list(files.match(root, config.pattern))
    except Exception as error:  # Beam wraps each file system's own errors in its own.
        raise ConfigError(f"{where}: cannot list {root + config.pattern}: {error}") from None
    listed = []
    for entry in found:
        location = entry.path.replace("\\", "/")
        relative = _readable(location[len(root):] if location.startswith(root) else location)
        if any(fnmatch.fnmatchcase(relative, glob) for glob in config.exclude):
            continue
        listed.append(File(source.name, index, entry.path, config.prefix + relative,
                           entry.size_in_bytes, entry.last_updated_in_seconds or 0.0))
    if not listed:
        raise ConfigError(f"{where}: no file matches {root + config.pattern}")
    return listed


def _capped(listed: Sequence[File], max_bytes: int) -> list[File]:
    """Files in the order of their paths' hash until the next would pass `max_bytes`."""
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


def list_files(recipe: RecipeConfig) -> list[File]:
    """All files of a recipe, sorted by source (in the recipe's order) and path.

    Raises:
      ConfigError: a pattern that matches nothing, or two files of one source with one path.
    """
    result: list[File] = []
    for source in recipe.sources:
        listed = [file for i in range(len(source.inputs)) for file in _list_input(source, i)]
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
    return result


def fingerprint(listed: Sequence[File]) -> str:
    """SHA-256 over source, path, size and modification time of the files."""
    digest = hashlib.sha256()
    for file in listed:
        digest.update(f"{file.source}\0{file.path}\0{file.size}\0{file.modified!r}\n".encode())
    return digest.hexdigest()
