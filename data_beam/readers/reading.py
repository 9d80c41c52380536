"""What all readers share: making records, drops and dead letters of one file."""

import hashlib
import itertools
from collections.abc import Callable, Iterable
from typing import Any

from data_beam.base.records import DeadLetter, Dropped, Origin, Record
from data_beam.base.trained_spans import read_spans
from data_beam.config import InputConfig, SourceConfig
from data_beam.readers import encoding
from data_beam.readers.listing import File

Read = Record | Dropped | DeadLetter
STAGE = "read"
_NAMES = 12
_NAME_CHARACTERS = 40


class Reading:
    """One file being read, and the input that it belongs to. Records of more than `limit` bytes are
    too large; `at` is called with the number of the file's bytes that were read."""

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

    def missing(self, number: int | None, name: str, found: Iterable[str]) -> DeadLetter:
        """A record without a field that its input names."""
        names = [repr(each)[:_NAME_CHARACTERS] for each in itertools.islice(found, _NAMES + 1)]
        there = ", ".join(names[:_NAMES]) + (", ..." if len(names) > _NAMES else "")
        return self.dead(number, "missing field", f"{name!r} is not there; "
                         f"{'found: ' + there if names else 'there are no fields'}")

    def record(self, number: int | None, text: str, data: bytes, *transforms: str,
               format: str = "", url: str = "", offset: int | None = None,
               binary: bool = False) -> Record:
        """A record made of `data`, with the domain and licence of its source."""
        return Record(self.origin(number), text, format or self.config.format, self.source.domain,
                      self.licence, url, hashlib.sha256(data).hexdigest(), transforms,
                      data if binary else b"", offset)

    def decoded(self, number: int | None, data: bytes, *transforms: str, header: str = "",
                format: str = "", url: str = "", offset: int | None = None) -> Read:
        """A record of text, decoded by the rules of its format."""
        kind = format or self.config.format
        try:
            if kind in ("python", "docstrings"):
                text, codec = encoding.decode_python(data)
            else:
                text, codec = encoding.decode(data, header, html=kind == "html")
        except encoding.Undecodable as error:
            return self.dead(number, error.reason, error.detail)
        how = () if codec in ("utf-8", "utf-8-sig") else (f"decode:{codec}",)
        return self.record(number, text, data, *transforms, *how, format=format, url=url,
                           offset=offset)

    def from_item(self, number: int, item: Any, raw: bytes | None) -> Read:
        """A record of a JSON value or a row: a text, or a table with the input's fields.

        The text is required. Where a licence, domain or URL is null, blank or missing, that of the
        input or the source is used. A field of another type than text makes a dead letter. `raw`
        are the bytes that the value was read from; None takes those of its text.
        """
        names = field_names(self.config)
        values = {"text": "", "licence": self.licence, "domain": self.source.domain, "url": "",
                  "group": ""}
        spans = None
        if isinstance(item, str):
            values["text"] = item
        elif isinstance(item, dict):
            for key, name in names.items():
                value = item.get(name)
                if key == "trained_spans":
                    spans = value
                elif isinstance(value, str):
                    if key == "text" or value.strip():
                        values[key] = value
                elif name in item and (value is not None or key == "text"):
                    return self.dead(number, "missing field", f"{name!r} is not a text")
                elif key == "text":
                    return self.missing(number, name, item)
        else:
            return self.dead(number, "missing field", f"a value of type {type(item).__name__} "
                             f"has no field {names['text']!r}")
        try:
            encoded = {key: value.encode("utf-8") for key, value in values.items()}
        except UnicodeEncodeError:
            return self.dead(number, "bad encoding", "half of a surrogate pair")
        if len(encoded["text"]) > self.limit:
            return self.too_large(number, len(encoded["text"]))
        if spans is not None:
            try:
                spans = read_spans(spans, len(values["text"]))
            except ValueError as error:
                return self.dead(number, "invalid trained spans", str(error))
        digest = hashlib.sha256(encoded["text"] if raw is None else raw).hexdigest()
        return Record(self.origin(number), values["text"], self.config.format, values["domain"],
                      values["licence"], values["url"], digest, trained_spans=spans,
                      group=values["group"])


def field_names(config: InputConfig) -> dict[str, str]:
    """Names of the fields that an input reads, by the part of a record that each becomes."""
    names = {"text": config.text_field, "licence": config.licence_field,
             "domain": config.domain_field, "url": config.url_field,
             "trained_spans": config.trained_spans_field, "group": config.group_field}
    return {key: name for key, name in names.items() if name}
