"""Reading back a corpus that `data_beam.prepare` wrote."""

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from data_beam.sinks import files
from maxlm.config.schema import ConfigError, suggestion

_ROWS = 256


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
        manifest = json.loads(files.read_bytes(path))
        listed = [DocumentFile(FileSystems.join(corpus, entry["file"]), entry["rows"],
                               entry["bytes"], entry["sha256"])
                  for entry in manifest["outputs"] if entry["file"].startswith("documents/")]
        sources = tuple(
            CorpusSource(name, entry["domain"], entry["licence"], entry["kept"], entry["bytes"],
                         entry["splits"]) for name, entry in manifest["sources"].items())
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"--corpus: {path} is no manifest of a corpus ({error!r})") from None
    listed.sort(key=lambda file: file.path)
    found = {entry.path: entry.size_in_bytes for entry in FileSystems.match(
        [FileSystems.join(corpus, "documents", "*")])[0].metadata_list}
    for file in listed:
        if found.get(file.path) != file.size:
            is_now = "is missing" if file.path not in found else (
                f"has {found[file.path]} bytes instead of {file.size}")
            raise ConfigError(f"--corpus: {file.path} {is_now}; make the corpus again with "
                              "python -m data_beam.prepare")
    digest = hashlib.sha256("\n".join(file.sha256 for file in listed).encode()).hexdigest()
    return CorpusFiles(tuple(listed), sources, digest)


def read_rows(path: str, columns: list[str]) -> Iterator[dict[str, Any]]:
    """Rows of a document file, a few hundred in memory at a time.

    Raises:
      ConfigError: the file lacks a column or is no Parquet.
    """
    with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as handle:
        try:
            parquet = pyarrow.parquet.ParquetFile(handle)
        except pyarrow.ArrowInvalid as error:
            raise ConfigError(f"--corpus: {path} is not a Parquet file ({error})") from None
        for column in columns:
            if column not in parquet.schema_arrow.names:
                raise ConfigError(f"--corpus: {path} has no column {column!r}; "
                                  f"{suggestion(column, parquet.schema_arrow.names)}")
        for batch in parquet.iter_batches(_ROWS, columns=columns):
            yield from batch.to_pylist()
