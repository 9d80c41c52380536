"""Records of a file, by format. Everything yielded is one document read, with exactly one end."""

import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from data_beam.config import InputConfig, SourceConfig
from data_beam.readers import encoding, streams
from data_beam.readers.listing import File
from data_beam.records import DeadLetter, Dropped, Origin, Record

Read = Record | Dropped | DeadLetter
_STAGE = "read"


def read_file(file: File, source: SourceConfig, max_record_bytes: int,
              at: Callable[[float], None] = lambda position: None) -> Iterator[Read]:
    """Reads one file.

    Args:
      file: which.
      source: its source.
      max_record_bytes: a larger record is a dead letter.
      at: told now and then how many of the file's bytes lie behind.

    Yields:
      A `Record` for each document; a `DeadLetter` for each that cannot be read and one more, with
      no record number, when the file itself is damaged or missing; a `Dropped` for an empty file.
      Blank lines of jsonl are no records.
    """
    config = source.inputs[file.input]
    whole = Origin(file.source, file.path)
    reader = _Reader(file, source, config, max_record_bytes, at)
    read = {"jsonl": reader.jsonl, "json": reader.json_array, "sqlite": reader.sqlite}.get(
        config.format, reader.whole)
    try:
        if file.size == 0:
            yield Dropped(whole, _STAGE, "empty file")
            return
        yield from read()
    except streams.DamagedFile as error:
        yield DeadLetter(whole, _STAGE, error.reason, f"the file is damaged: {error.detail}")
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        yield DeadLetter(whole, _STAGE, "unreadable file", str(error.strerror))


def _text_or_bytes(data: bytes) -> str | bytes:
    """A TEXT value of SQLite, which may hold anything; bytes are no text to `_from_item`."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


class _Reader:
    def __init__(self, file: File, source: SourceConfig, config: InputConfig, limit: int,
                 at: Callable[[float], None]):
        self.file, self.source, self.config, self.limit = file, source, config, limit
        self.at = at
        self.licence = config.licence or source.licence

    def _origin(self, number: int | None) -> Origin:
        return Origin(self.file.source, self.file.path, number)

    def _dead(self, number: int | None, reason: str, detail: str = "") -> DeadLetter:
        return DeadLetter(self._origin(number), _STAGE, reason, detail)

    def _too_large(self, number: int | None, size: int | None = None) -> DeadLetter:
        what = "the file" if size is None else f"{size} bytes"
        return self._dead(number, "too large", f"{what} passes max_record_bytes {self.limit}")

    def _all(self) -> bytes | None:
        return streams.read_all(self.file.location, self.limit)

    def whole(self) -> Iterator[Read]:
        """The file is one document."""
        data = self._all()
        if data is None:
            yield self._too_large(None)
            return
        if not data:
            yield Dropped(self._origin(None), _STAGE, "empty file")
            return
        try:
            if self.config.format in ("python", "docstrings"):
                text, codec = encoding.decode_python(data)
            else:
                text, codec = encoding.decode(data, html=self.config.format == "html")
        except encoding.Undecodable as error:
            yield self._dead(None, error.reason, error.detail)
            return
        decoded = () if codec in ("utf-8", "utf-8-sig") else (f"decode:{codec}",)
        yield Record(self._origin(None), text, self.config.format, self.source.domain,
                     self.licence, "", hashlib.sha256(data).hexdigest(), decoded)

    def jsonl(self) -> Iterator[Read]:
        """One JSON value a line, UTF-8."""
        empty = True
        for line in streams.lines(
                streams.chunks(self.file.location, self.at), self.limit):
            if line.content is None:
                empty = False
                yield self._too_large(line.number, line.size)
                continue
            content = line.content
            if line.number == 1:
                content = content.removeprefix(b"\xef\xbb\xbf")
            if not content.strip():
                continue
            empty = False
            try:
                item = json.loads(content.decode("utf-8"))
            except UnicodeDecodeError as error:
                yield self._dead(line.number, "bad encoding",
                                 f"not UTF-8 at byte {error.start} of the line")
                continue
            except (ValueError, RecursionError) as error:
                yield self._dead(line.number, "invalid JSON", str(error))
                continue
            yield self._from_item(line.number, item, content)
        if empty:
            yield Dropped(self._origin(None), _STAGE, "empty file")

    def json_array(self) -> Iterator[Read]:
        """The file is one JSON array; its items are the records."""
        data = self._all()
        if data is None:
            yield self._too_large(None)
            return
        try:
            items = json.loads(data.removeprefix(b"\xef\xbb\xbf").decode("utf-8"))
        except UnicodeDecodeError as error:
            yield self._dead(None, "bad encoding", f"not UTF-8 at byte {error.start}")
            return
        except (ValueError, RecursionError) as error:
            yield self._dead(None, "invalid JSON", str(error))
            return
        if not isinstance(items, list):
            yield self._dead(None, "invalid JSON", "the file is not one array")
            return
        if not items:
            yield Dropped(self._origin(None), _STAGE, "empty file")
        for number, item in enumerate(items, 1):
            yield self._from_item(number, item, None)
            self.at(self.file.size * number / len(items))

    def sqlite(self) -> Iterator[Read]:
        """The rows of the input's query; the database is opened read-only."""
        with tempfile.TemporaryDirectory() as folder:
            local = self.file.location
            if not os.path.isfile(local):  # not on this machine's disk: SQLite needs it there.
                local = os.path.join(folder, "copy.sqlite")
                with streams.open_raw(self.file.location) as raw, open(local, "wb") as copy:
                    shutil.copyfileobj(raw, copy)
            uri = f"file:{os.path.abspath(local).replace('?', '%3f').replace('#', '%23')}"
            connection = sqlite3.connect(uri + "?mode=ro&immutable=1", uri=True)
            connection.text_factory = _text_or_bytes
            number = 0
            try:
                rows = connection.execute(self.config.query)
                names = [column[0] for column in rows.description]
                seen = 0
                for number, row in enumerate(rows, 1):
                    yield self._from_item(number, dict(zip(names, row, strict=True)), None)
                    # How many rows there are is not known; their values are most of the file.
                    seen += sum(len(value) for value in row if isinstance(value, (str, bytes)))
                    self.at(min(seen, self.file.size))
            except sqlite3.Error as error:
                yield self._dead(None, "bad database", f"after {number} rows: {error}")
                number += 1
            finally:
                connection.close()
            if number == 0:
                yield Dropped(self._origin(None), _STAGE, "empty file")

    def _from_item(self, number: int, item: Any, raw: bytes | None) -> Read:
        """A record of a JSON value or a row: a text, or a table with the input's fields."""
        names = {"text": self.config.text_field, "licence": self.config.licence_field,
                 "domain": self.config.domain_field, "url": self.config.url_field}
        values = {"text": "", "licence": self.licence, "domain": self.source.domain, "url": ""}
        if isinstance(item, str) and not any((names["licence"], names["domain"], names["url"])):
            values["text"] = item
        elif isinstance(item, dict):
            for key, name in names.items():
                if not name:
                    continue
                if not isinstance(item.get(name), str):
                    return self._dead(number, "missing field", f"{name!r} is "
                                      f"{'not a text' if name in item else 'not there'}")
                values[key] = item[name]
        else:
            return self._dead(number, "missing field",
                              f"a {type(item).__name__} has no field {names['text']!r}")
        try:
            encoded = {key: value.encode("utf-8") for key, value in values.items()}
        except UnicodeEncodeError:
            return self._dead(number, "bad encoding", "half of a surrogate pair")
        if len(encoded["text"]) > self.limit:
            return self._too_large(number, len(encoded["text"]))
        digest = hashlib.sha256(encoded["text"] if raw is None else raw).hexdigest()
        return Record(self._origin(number), values["text"], self.config.format, values["domain"],
                      values["licence"], values["url"], digest)
