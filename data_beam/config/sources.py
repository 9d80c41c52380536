"""Which files a corpus is made of, and how their bytes become records."""

import dataclasses

from data_beam.config.checks import check_languages, check_not_empty
from maxlm.config.schema import ConfigError, setting

FORMATS = ("text", "markdown", "html", "pdf", "epub", "jsonl", "json", "sqlite", "parquet", "warc",
           "code", "python", "docstrings", "package_description")
"""How the bytes of a file become records:

- `text`, `markdown`, `html`, `pdf`, `epub`, `python`: the file is one document.
- `code`: the file is one document, in the programming language of its name.
- `jsonl`: one JSON object (or string) a line. `json`: one array of them. `sqlite`: one row of
  `query` a document. `parquet`: one row.
- `warc`: a web archive; an HTML page that was fetched (WARC) or its text (WET) a document.
- `docstrings`: the docstrings of a Python file, as one document.
- `package_description`: the long description in a package's METADATA file.

Compression (gzip, bzip2, zstd) is recognised by content for every format but `sqlite` and
`parquet`.
"""

BINARY_FORMATS = ("pdf", "epub")  # formats whose records are bytes
FORMATS_WITH_FIELDS = ("jsonl", "json", "sqlite", "parquet")


@dataclasses.dataclass(frozen=True)
class InputConfig:
    """Some files of a source, all in one format."""

    root: str = setting(
        dataclasses.MISSING, "directory (or gs:// prefix); paths in the corpus are relative to it")
    pattern: str = setting(
        dataclasses.MISSING, "glob under root; ** crosses directories, for example docs/**.md")
    format: str = setting(dataclasses.MISSING, "how a file becomes records", choices=FORMATS)
    exclude: tuple[str, ...] = setting((), "globs of relative paths to leave out; * crosses /")
    prefix: str = setting("", "put before relative paths, so that those of two roots differ")
    licence: str = setting("", "SPDX licence of these files; empty takes the source's")
    text_field: str = setting("text", "jsonl, json, sqlite, parquet: field that holds the text")
    licence_field: str = setting(
        "", "jsonl, json, sqlite, parquet: field that holds a record's licence")
    domain_field: str = setting(
        "", "jsonl, json, sqlite, parquet: field that holds a record's domain")
    url_field: str = setting(
        "", "jsonl, json, sqlite, parquet: field that becomes the document's path")
    trained_spans_field: str = setting(
        "", "jsonl, json, parquet: field with the trained parts of the text, a list of "
        "[start, end] in characters; null trains all of it")
    group_field: str = setting(
        "", "jsonl, json, sqlite, parquet: field with a name that documents of a group share")
    query: str = setting("", "sqlite: SELECT with an ORDER BY whose columns are the fields")

    def check(self, path: str) -> None:
        if not self.root or not self.pattern:
            raise ConfigError(f"{path}: root and pattern must not be empty")
        if (self.format == "sqlite") != bool(self.query):
            raise ConfigError(f"{path}.query: must be set for format 'sqlite' and for no other")
        if not self.text_field:
            raise ConfigError(f"{path}.text_field: must not be empty; name the field that holds "
                              "the text, or leave it out for 'text'")
        if self.format not in FORMATS_WITH_FIELDS:
            for name in ("licence_field", "domain_field", "url_field", "trained_spans_field",
                         "group_field"):
                if getattr(self, name):
                    raise ConfigError(
                        f"{path}.{name}: format {self.format!r} has no fields; leave it empty")
        if self.trained_spans_field and self.format == "sqlite":
            raise ConfigError(f"{path}.trained_spans_field: a field of SQLite cannot hold a list; "
                              "use jsonl, json or parquet")


@dataclasses.dataclass(frozen=True)
class SourceConfig:
    """A named share of the corpus, the unit of mixture weights and of counts."""

    name: str = setting(
        dataclasses.MISSING, "letters, digits, - and _; names the source everywhere after")
    domain: str = setting(dataclasses.MISSING, "general, domain, code or a name of your own")
    licence: str = setting(dataclasses.MISSING, "SPDX licence of the documents")
    inputs: tuple[InputConfig, ...] = setting(dataclasses.MISSING, "the files")
    allow_unreadable: bool = setting(False, "go on although no record of the source can be read")
    language: str = setting(
        "", "language of all its prose, if known; empty identifies it for each document")
    max_bytes: int = setting(
        0, "input bytes to take at most, 0 for all; files are taken in the order of the hash of "
        "their paths until the next would pass it", minimum=0)

    def check(self, path: str) -> None:
        plain = self.name.replace("-", "").replace("_", "")
        if not (plain.isascii() and plain.isalnum()):
            raise ConfigError(
                f"{path}.name: {self.name!r} must be made of letters, digits, - and _")
        check_not_empty(self, path, "domain", "licence")
        if not self.inputs:
            raise ConfigError(f"{path}.inputs: at least one is needed")
        check_languages([self.language] if self.language else [], f"{path}.language")
