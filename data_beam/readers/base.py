"""What all readers share: how the things that they yield are made."""

import hashlib
from collections.abc import Callable
from typing import Any

from data_beam.base.records import DeadLetter, Dropped, Origin, Record
from data_beam.config import InputConfig, SourceConfig
from data_beam.readers import encoding, streams
from data_beam.readers.listing import File

Read = Record | Dropped | DeadLetter
STAGE = "read"


class Reading:
    """One file being read.

    Attributes:
      file, config: which, and its input.
      limit: bytes of the largest record.
      at: to be told how many of the file's bytes lie behind.
    """

    def __init__(self, file: File, source: SourceConfig, limit: int, at: Callable[[float], None]):
        self.file, self.source, self.config = file, source, source.inputs[file.input]
        self.limit, self.at = limit, at
        self.licence = self.config.licence or source.licence

    def origin(self, number: int | None) -> Origin:
        return Origin(self.file.source, self.file.path, number)

    def dropped(self, number: int | None, reason: str, detail: str = "") -> Dropped:
        return Dropped(self.origin(number), STAGE, reason, detail)

    def dead(self, number: int | None, reason: str, detail: str = "") -> DeadLetter:
        return DeadLetter(self.origin(number), STAGE, reason, detail)

    def too_large(self, number: int | None, size: int | None = None) -> DeadLetter:
        what = "the file" if size is None else f"{size} bytes"
        return self.dead(number, "too large", f"{what} passes max_record_bytes {self.limit}")

    def all(self) -> bytes | None:
        """The decompressed file, or None when it passes the limit."""
        return streams.read_all(self.file.location, self.limit)

    def record(self, number: int | None, text: str, data: bytes, *transforms: str,
               format: str = "", url: str = "", binary: bool = False) -> Record:
        """A record made of `data`, of the source's domain and licence."""
        return Record(self.origin(number), text, format or self.config.format, self.source.domain,
                      self.licence, url, hashlib.sha256(data).hexdigest(), transforms,
                      data if binary else b"")

    def decoded(self, number: int | None, data: bytes, *transforms: str, header: str = "",
                format: str = "", url: str = "") -> Read:
        """A record of text, decoded as its format wants it."""
        kind = format or self.config.format
        try:
            if kind in ("python", "docstrings"):
                text, codec = encoding.decode_python(data)
            else:
                text, codec = encoding.decode(data, header, html=kind == "html")
        except encoding.Undecodable as error:
            return self.dead(number, error.reason, error.detail)
        how = () if codec in ("utf-8", "utf-8-sig") else (f"decode:{codec}",)
        return self.record(number, text, data, *transforms, *how, format=format, url=url)

    def from_item(self, number: int, item: Any, raw: bytes | None) -> Read:
        """A record of a JSON value or a row: a text, or a table with the input's fields.

        The text must be there. Where a licence, domain or URL is null, blank or not there, the
        input's or the source's stands; one that is no text is a dead letter.

        Args:
          number: of the record.
          item: the value.
          raw: the bytes it was read from, None to take those of its text.
        """
        names = field_names(self.config)
        values = {"text": "", "licence": self.licence, "domain": self.source.domain, "url": ""}
        if isinstance(item, str):
            values["text"] = item
        elif isinstance(item, dict):
            for key, name in names.items():
                value = item.get(name)
                if isinstance(value, str):
                    if key == "text" or value.strip():
                        values[key] = value
                elif value is not None or key == "text":
                    return self.dead(number, "missing field", f"{name!r} is "
                                     f"{'not a text' if name in item else 'not there'}")
        else:
            return self.dead(number, "missing field",
                             f"a {type(item).__name__} has no field {names['text']!r}")
        try:
            encoded = {key: value.encode("utf-8") for key, value in values.items()}
        except UnicodeEncodeError:
            return self.dead(number, "bad encoding", "half of a surrogate pair")
        if len(encoded["text"]) > self.limit:
            return self.too_large(number, len(encoded["text"]))
        digest = hashlib.sha256(encoded["text"] if raw is None else raw).hexdigest()
        return Record(self.origin(number), values["text"], self.config.format, values["domain"],
                      values["licence"], values["url"], digest)


def field_names(config: InputConfig) -> dict[str, str]:
    """The fields that an input reads of a table, by what they become."""
    names = {"text": config.text_field, "licence": config.licence_field,
             "domain": config.domain_field, "url": config.url_field}
    return {key: name for key, name in names.items() if name}
