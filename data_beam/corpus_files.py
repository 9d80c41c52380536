"""Reading back a corpus that `data_beam.prepare` wrote."""

import dataclasses
import hashlib
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from data_beam.sinks import files, json_files
from maxlm.config.schema import ConfigError, suggestion

_ROWS = 256
_MANIFEST = {
    "outputs": [{"file": str, "rows": int, "bytes": int, "sha256": str}],
    "sources": {str: {"domain": str, "licence": str, "kept": int, "bytes": int,
                      "splits": {str: int}}},
}
_AGAIN = "remove the corpus and make it again with python -m data_beam.prepare"
DAMAGED = (pyarrow.ArrowException, OSError, UnicodeDecodeError)
"""What pyarrow raises for a damaged Parquet file."""


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
    bytes: int
    """UTF-8 length of the texts."""
    splits: dict[str, int]
    """Documents by split."""


@dataclasses.dataclass(frozen=True)
class CorpusFiles:
    """The documents of a whole corpus.

    Attributes:
      files: sorted by path.
      sources: in the order of the recipe.
      fingerprint: hash of the content of the files.
    """

    files: tuple[DocumentFile, ...]
    sources: tuple[CorpusSource, ...]
    fingerprint: str

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)


def find_documents(corpus: str) -> CorpusFiles:
    """The document files of a corpus.

    Args:
      corpus: directory, local or on any file system that Beam knows.

    Raises:
      ConfigError: no corpus there, an unfinished one, or one that lacks files of its manifest.
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
    listed = [DocumentFile(FileSystems.join(corpus, entry["file"]), entry["rows"], entry["bytes"],
                           entry["sha256"])
              for entry in manifest["outputs"] if entry["file"].startswith("documents/")]
    sources = tuple(
        CorpusSource(name, entry["domain"], entry["licence"], entry["kept"], entry["bytes"],
                     entry["splits"]) for name, entry in manifest["sources"].items())
    listed.sort(key=lambda file: file.path)
    found = {entry.path: entry.size_in_bytes
             for entry in files.match(FileSystems.join(corpus, "documents"), "*")}
    for file in listed:
        if found.get(file.path) != file.size:
            is_now = "is missing" if file.path not in found else (
                f"has {found[file.path]} bytes instead of {file.size}")
            raise ConfigError(f"--corpus: {file.path} {is_now}; {_AGAIN}")
    digest = hashlib.sha256("\n".join(file.sha256 for file in listed).encode()).hexdigest()
    return CorpusFiles(tuple(listed), sources, digest)


def read_rows(path: str, columns: list[str]) -> Iterator[dict[str, Any]]:
    """Rows of a document file, a few hundred in memory at a time.

    Raises:
      ConfigError: the file lacks a column, is damaged or no Parquet.
    """
    with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as handle:
        try:
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
    """The message for a document file that cannot be read."""
    return (f"--corpus: {path} is damaged or not a Parquet file ({' '.join(str(error).split())}); "
            f"{_AGAIN}")
