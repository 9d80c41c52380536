"""Reading a corpus that `data_beam.prepare` wrote."""

import dataclasses
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow.parquet
from apache_beam.io.filesystems import FileSystems

from data_beam.base import files, json_files
from maxlm.config.schema import ConfigError, suggestion

_ROWS = 256
_MANIFEST = {
    "outputs": [{"file": str, "rows": int, "bytes": int, "sha256": str}],
    "sources": {str: {"domain": str, "licence": str, "kept": int, "bytes": int,
                      "splits": {str: int}}},
}
_AGAIN = "remove the corpus and make it again with python -m data_beam.prepare"
DAMAGED = (pyarrow.ArrowException, OSError, UnicodeDecodeError)  # also of closed files


@dataclasses.dataclass(frozen=True)
class DocumentFile:
    """One Parquet file of clean documents."""

    path: str
    rows: int
    size: int
    sha256: str


@dataclasses.dataclass(frozen=True)
class CorpusSource:
    """What the manifest says of one source."""

    name: str
    domain: str
    licence: str
    documents: int
    bytes: int  # UTF-8 length of the texts
    splits: dict[str, int]  # documents by split


@dataclasses.dataclass(frozen=True)
class CorpusFiles:
    """The documents of a whole corpus."""

    files: tuple[DocumentFile, ...]  # sorted by path
    sources: tuple[CorpusSource, ...]  # in the order of the recipe
    fingerprint: str  # hash of the content of the files

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)


def find_documents(corpus: str, others: Sequence[str] = ()) -> CorpusFiles:
    """The document files of a corpus, a directory on any file system that Beam knows. `others` are
    more of its folders whose files must be whole, by their sizes.

    Raises ConfigError for no corpus there, an unfinished one, and one that lacks files of its
    manifest.
    """
    path = FileSystems.join(corpus, "manifest.json")
    if not FileSystems.exists(path):
        what = ("holds no manifest.json, so it is unfinished or no corpus"
                if FileSystems.exists(corpus) else "does not exist")
        raise ConfigError(f"--corpus: {corpus} {what}; make it with python -m data_beam.prepare")
    try:
        manifest = json_files.read(path, _MANIFEST)
    except json_files.NotThisKind as error:
        raise ConfigError(f"--corpus: {path} is damaged or no manifest of a corpus ({error}); "
                          f"{_AGAIN}") from None
    outputs = {FileSystems.join(corpus, entry["file"]): entry for entry in manifest["outputs"]}
    sources = tuple(
        CorpusSource(name, entry["domain"], entry["licence"], entry["kept"], entry["bytes"],
                     entry["splits"]) for name, entry in manifest["sources"].items())
    listed: list[DocumentFile] = []
    for folder in ("documents", *others):
        found = {entry.path: entry.size_in_bytes
                 for entry in files.match(FileSystems.join(corpus, folder), "*")}
        for path, entry in sorted(outputs.items()):
            if not entry["file"].startswith(f"{folder}/"):
                continue
            if found.get(path) != entry["bytes"]:
                is_now = "is missing" if path not in found else (
                    f"has {found[path]} bytes instead of {entry['bytes']}")
                raise ConfigError(f"--corpus: {path} {is_now}; {_AGAIN}")
            if folder == "documents":
                listed.append(DocumentFile(path, entry["rows"], entry["bytes"], entry["sha256"]))
    digest = hashlib.sha256("\n".join(file.sha256 for file in listed).encode()).hexdigest()
    return CorpusFiles(tuple(listed), sources, digest)


def read_rows(path: str, columns: list[str]) -> Iterator[dict[str, Any]]:
    """Rows of a document file, some hundred in memory at a time. Raises ConfigError if the file
    lacks a column, is damaged or no Parquet."""
    try:
        with files.open_raw(path) as handle:
            parquet = pyarrow.parquet.ParquetFile(handle)
            missing = [name for name in columns if name not in parquet.schema_arrow.names]
            if not missing:
                for batch in parquet.iter_batches(_ROWS, columns=columns):
                    yield from batch.to_pylist()
    except DAMAGED as error:
        raise ConfigError(damaged(path, error)) from None
    if missing:
        raise ConfigError(f"--corpus: {path} has no column {missing[0]!r}; "
                          f"{suggestion(missing[0], parquet.schema_arrow.names)}")


def damaged(path: str, error: BaseException) -> str:
    """The message for a file of a corpus that cannot be read."""
    if isinstance(error, OSError) and error.errno is not None:
        return f"--corpus: {path} cannot be read: {error.strerror}"
    kind = "a Parquet file" if path.endswith(".parquet") else "JSON"
    return (f"--corpus: {path} is damaged or not {kind} "
            f"({' '.join(str(error).split())}); {_AGAIN}")
