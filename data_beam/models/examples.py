"""Labelled examples for a classifier, from JSON lines or Parquet."""

import dataclasses
import io
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import xxhash
from apache_beam.io.filesystems import FileSystems

from data_beam.base import files
from data_beam.readers import streams
from maxlm.config.schema import ConfigError, suggestion


@dataclasses.dataclass(frozen=True)
class Examples:
    """Texts and their labels, [n] int64."""

    texts: list[str]
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.texts)

    def split(self, held_out: float, seed: int) -> tuple["Examples", "Examples"]:
        """Examples to learn from and a share held out, by a hash of the text: equal texts are never
        on both sides."""
        apart = np.array([
            xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"), seed=seed)
            < held_out * 2**64 for text in self.texts], bool)
        return self._where(~apart), self._where(apart)

    def _where(self, keep: np.ndarray) -> "Examples":
        return Examples([text for text, kept in zip(self.texts, keep, strict=True) if kept],
                        self.labels[keep])


def read(path: str, text_field: str, label_field: str, highest: int) -> Examples:
    """The examples of a file.

    Args:
      path: JSON lines (plain, gzip, zstd or bzip2) or Parquet, told by content.
      text_field, label_field: names of fields or columns.
      highest: labels are whole numbers from 0 to this.

    Raises:
      ConfigError: the file does not exist or is damaged; an example without a text or a label, or
        with a label that is none. The message names the line or row.
    """
    if not FileSystems.exists(path):
        raise ConfigError(f"--examples: {path} does not exist")
    texts, labels = [], []
    for at, text, label in _rows(path, text_field, label_field):
        if not isinstance(text, str) or not text.strip():
            raise ConfigError(f"--examples: {path}, {at}: {text_field} is no text with a visible "
                              "character")
        if (isinstance(label, bool) or not isinstance(label, int | float)
                or label not in range(highest + 1)):
            raise ConfigError(f"--examples: {path}, {at}: {label_field} must be a whole number "
                              f"from 0 to {highest}, got {label!r}")
        texts.append(text)
        labels.append(int(label))
    if not texts:
        raise ConfigError(f"--examples: {path} holds no examples")
    return Examples(texts, np.array(labels, np.int64))


def _rows(path: str, text_field: str, label_field: str) -> Iterator[tuple[str, Any, Any]]:
    with streams.open_raw(path) as handle:
        is_parquet = handle.read(4) == b"PAR1"
    yield from (_parquet if is_parquet else _json_lines)(path, text_field, label_field)


def _missing(path: str, at: str, field: str, names: list[str]) -> ConfigError:
    return ConfigError(f"--examples: {path}{at} has no {field!r}; {suggestion(field, names)}")


def _parquet(path: str, text_field: str, label_field: str) -> Iterator[tuple[str, Any, Any]]:
    try:
        parquet = pyarrow.parquet.ParquetFile(io.BytesIO(files.read_bytes(path)))
        for field in (text_field, label_field):
            if field not in parquet.schema_arrow.names:
                raise _missing(path, "", field, parquet.schema_arrow.names)
        number = 0
        for batch in parquet.iter_batches(256, columns=[text_field, label_field]):
            for row in batch.to_pylist():
                number += 1
                yield f"row {number}", row[text_field], row[label_field]
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--examples: {path} is a damaged Parquet file "
                          f"({' '.join(str(error).split())})") from None


def _json_lines(path: str, text_field: str, label_field: str) -> Iterator[tuple[str, Any, Any]]:
    try:
        data = b"".join(streams.chunks(path))
    except streams.DamagedFile as error:
        raise ConfigError(f"--examples: {path} is damaged ({error})") from None
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"--examples: {path}, line {number} is no JSON ({error})") from None
        if not isinstance(row, dict):
            raise ConfigError(f"--examples: {path}, line {number} is no JSON object")
        for field in (text_field, label_field):
            if field not in row:
                raise _missing(path, f", line {number}", field, list(row))
        yield f"line {number}", row[text_field], row[label_field]
