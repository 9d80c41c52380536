"""A source made of a folder with files of any known format, told apart by their names."""

from data_beam.base import files
from data_beam.config import InputConfig, SourceConfig
from data_beam.readers.listing import unfollowed
from maxlm.config.schema import ConfigError

FORMATS = {
    "html": "html", "htm": "html", "xhtml": "html", "md": "markdown", "txt": "text",
    "pdf": "pdf", "epub": "epub", "jsonl": "jsonl", "parquet": "parquet",
    "warc": "warc", "wet": "warc",
}
"""Suffix of a name -> format of the file."""
WITH_LICENCE = ("jsonl", "parquet")
"""Formats whose records may say their licence."""
COMPRESSED = ("", ".gz", ".bz2", ".zst")
"""What may follow the suffix: compression is recognised by content."""


def raw_folder(root: str, name: str = "raw", domain: str = "general",
               licence: str = "unknown") -> SourceConfig:
    """All files below a folder whose names end in a suffix of `FORMATS`, compressed or not.

    Records of jsonl and Parquet hold their text in the field `text`. Where they have a field
    `licence` that is not empty, it is theirs.

    Args:
      root: the folder, on any file system that Beam knows.
      name: of the source.
      domain: of its documents.
      licence: of documents that do not say.

    Raises:
      ConfigError: no such file is there, or a folder in it cannot be read.
    """
    links: list[str] = []
    try:
        found = [entry.path for entry in files.match(root, "**", unfollowed=links.append)]
    except files.UnreadableFolder as error:
        raise ConfigError(f"{error}, or move it out of {root}") from None
    except Exception as error:  # Beam wraps each file system's own errors in its own.
        raise ConfigError(f"cannot list {root}: {error}") from None
    inputs = []
    for suffix, format in FORMATS.items():
        for compression in COMPRESSED:
            end = f".{suffix}{compression}"
            # As written: patterns tell capitals from small letters, people do not.
            written = {path[-len(end):] for path in found if path.lower().endswith(end)}
            inputs += [InputConfig(root, f"**{name}", format,
                                   licence_field="licence" if format in WITH_LICENCE else "")
                       for name in sorted(written)]
    if not inputs:
        raise ConfigError(
            f"{root}: no file there ends in one of {', '.join('.' + s for s in FORMATS)} "
            "(compressed or not); name your folder after the recipe, as in --config=FILE.py:FOLDER"
            + (f" ({unfollowed(links)})" if links else ""))
    return SourceConfig(name, domain, licence, tuple(inputs))
