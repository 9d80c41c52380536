"""Documents generated from a table of facts: each record fills the sentence templates of each
language."""

import dataclasses
import hashlib
import json
import re
from typing import Any

from data_beam.base import files
from maxlm.config.schema import ConfigError, suggestion

_FIELD = re.compile(r"\{(\w+)\}")
_SEPARATORS = {"zh": ("、", ""), "ja": ("、", "")}  # of list elements, of sentences


@dataclasses.dataclass(frozen=True)
class Generated:
    """A document generated from one record in one language."""

    record: int  # number of the record in the file, from 1
    language: str
    text: str
    sentences: int


def _value(value: Any, language: str) -> str:
    if isinstance(value, list):
        return _SEPARATORS.get(language, (", ",))[0].join(value)
    return value if isinstance(value, str) else str(value)


def _fits(value: Any, kind: str) -> bool:
    if kind == "list":
        return isinstance(value, list) and bool(value) and all(
            isinstance(element, str) and element for element in value)
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, str) and bool(value)


def generate(path: str, field: str) -> list[Generated]:
    """All documents of a file, on any file system supported by Beam, such as

        {"fields": {"drug": "text", "uses": "list", "dose": "number"},
         "templates": {"en": ["{drug} is used against {uses}."], "zh": ["{drug}用于治疗{uses}。"]},
         "records": [{"drug": "aspirin", "uses": ["fever", "pain"], "dose": 500}]}

    A record may lack fields; sentences that name a missing field are skipped. The sentences of a
    document are ordered by a hash of record number and sentence.

    Raises ConfigError, which names the setting `field`: the file does not exist or has another
    format; a template or record has a field that is not in `fields`; a value has another type; or a
    record fits no sentence.
    """
    where = f"{field}: {path}"
    try:
        table = json.loads(files.read_bytes(path))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{where}: is not valid JSON: {error}") from None
    except Exception as error:  # each file system has its own exceptions
        raise ConfigError(f"{where}: cannot be read: {error}") from None
    fields, templates, records = _checked_table(table, where)
    documents = []
    for number, record in enumerate(records, 1):
        _check_record(record, fields, f"{where}, record {number}")
        usable = {language: [s for s in sentences if set(_FIELD.findall(s)) <= record.keys()]
                  for language, sentences in templates.items()}
        if not any(usable.values()):
            raise ConfigError(f"{where}, record {number}: lacks fields of every template")
        for language, sentences in usable.items():
            sentences.sort(key=lambda sentence, n=number: hashlib.sha256(
                f"{n}\0{sentence}".encode()).digest())
            filled = [_FIELD.sub(lambda m, r=record, a=language: _value(r[m[1]], a), sentence)
                      for sentence in sentences]
            if filled:
                between = _SEPARATORS.get(language, ("", " "))[1]
                documents.append(Generated(number, language, between.join(filled), len(filled)))
    return documents


def _checked_table(table: Any, where: str
                   ) -> tuple[dict[str, str], dict[str, list[str]], list[dict[str, Any]]]:
    if not isinstance(table, dict) or set(table) != {"fields", "templates", "records"}:
        raise ConfigError(f"{where}: must contain an object with fields, templates and records")
    fields, templates, records = table["fields"], table["templates"], table["records"]
    if not isinstance(fields, dict) or not fields or any(
            kind not in ("text", "number", "list") for kind in fields.values()):
        raise ConfigError(f"{where}: fields must give each field's type: text, number or list")
    if not isinstance(templates, dict) or not templates or not all(
            isinstance(sentences, list) and sentences and all(
                isinstance(s, str) for s in sentences) for sentences in templates.values()):
        raise ConfigError(f"{where}: templates must give a list of sentences by language")
    for sentences in templates.values():
        for sentence in sentences:
            names = _FIELD.findall(sentence)
            if not names:
                raise ConfigError(f"{where}: the template {sentence!r} has no {{field}}")
            for name in names:
                if name not in fields:
                    raise ConfigError(f"{where}: the template {sentence!r} names a field that "
                                      f"is not in fields; {suggestion(name, fields)}")
    if not isinstance(records, list) or not records or not all(
            isinstance(record, dict) for record in records):
        raise ConfigError(f"{where}: records must be a list of objects")
    return fields, templates, records


def _check_record(record: dict[str, Any], fields: dict[str, str], where: str) -> None:
    for name, value in record.items():
        if name not in fields:
            raise ConfigError(f"{where}: has a field {name!r} that is not in fields; "
                              f"{suggestion(name, fields)}")
        if not _fits(value, fields[name]):
            raise ConfigError(f"{where}: {name} must be a {fields[name]}, got {value!r}")
