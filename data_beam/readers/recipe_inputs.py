"""Inputs for recipes: all files of a folder by their suffixes, or files that pip has installed."""

import importlib.metadata
import platform
import sysconfig

from data_beam.base import files
from data_beam.config import InputConfig, SourceConfig
from data_beam.readers.listing import unfollowed
from maxlm.config.schema import ConfigError

SUFFIXES = {
    "html": "html", "htm": "html", "xhtml": "html", "md": "markdown", "txt": "text",
    "pdf": "pdf", "epub": "epub", "jsonl": "jsonl", "parquet": "parquet",
    "warc": "warc", "wet": "warc",
}  # suffix of a file name -> format of the file
_WITH_LICENCE = ("jsonl", "parquet")
_COMPRESSIONS = ("", ".gz", ".bz2", ".zst")  # compression itself is recognised by content

# Names of licences in the metadata of packages. "BSD License" is left out: it may be any of the
# BSD licences.
_SPDX = {
    "Apache License": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "MIT License": "MIT",
    "ISC License (ISCL)": "ISC",
    "Python Software Foundation License": "PSF-2.0",
}
_SPDX_NAMES = frozenset(("Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause", "ISC", "PSF-2.0"))


def raw_folder(root: str, name: str = "raw", domain: str = "general",
               licence: str = "unknown") -> SourceConfig:
    """All files below a folder whose names end in a suffix of `SUFFIXES`, compressed or not.

    Records of jsonl and Parquet hold their text in the field `text`. A record's own `licence` is
    used where it has one, else that of the source.

    Raises ConfigError if the folder does not exist, has no such file, or a folder in it cannot be
    read.
    """
    wrong = files.no_folder(root)
    if wrong:
        raise ConfigError(f"the folder {root} {wrong}; name your folder after the recipe, as in "
                          "--config=FILE.py:FOLDER")
    links: list[str] = []
    try:
        found = [entry.path for entry in files.match(root, "**", unfollowed=links.append)]
    except files.UnreadableFolder as error:
        raise ConfigError(f"{error}, or move it out of {root}") from None
    except Exception as error:  # each file system of Beam has its own errors
        raise ConfigError(f"cannot list {root}: {error}") from None
    inputs = []
    for suffix, format in SUFFIXES.items():
        for compression in _COMPRESSIONS:
            end = f".{suffix}{compression}"
            # Patterns are case-sensitive: one for each way the suffix is written.
            written = {path[-len(end):] for path in found if path.lower().endswith(end)}
            inputs += [InputConfig(root, f"**{name}", format,
                                   licence_field="licence" if format in _WITH_LICENCE else "")
                       for name in sorted(written)]
    if not inputs:
        raise ConfigError(
            f"{root}: none of its files has one of the suffixes "
            f"{', '.join('.' + s for s in SUFFIXES)}, compressed or not; name your folder after "
            "the recipe, as in --config=FILE.py:FOLDER"
            + (f" ({unfollowed(links)})" if links else ""))
    return SourceConfig(name, domain, licence, tuple(inputs))


def _spdx(text: str) -> str:
    if text.startswith("Apache License Version 2.0"):  # some packages put the whole licence there
        return "Apache-2.0"
    return text if text in _SPDX_NAMES else _SPDX.get(text, "")


def licence_of(name: str) -> str:
    """SPDX licence of an installed distribution, from its metadata: `License-Expression` wins, then
    the licence classifiers, then the `License` field. Raises ConfigError if the metadata names no
    licence, several, or an unknown one."""
    metadata = importlib.metadata.metadata(name)
    if "License-Expression" in metadata:
        return metadata["License-Expression"]
    said = [text.rpartition("::")[2].strip() for text in metadata.get_all("Classifier", [])
            if text.startswith("License ::")]
    said = [text for text in said if text != "OSI Approved"] or metadata.get_all("License", [""])
    known = {_spdx(" ".join(text.split())) for text in said}
    if len(known) != 1 or "" in known:
        raise ConfigError(f"the metadata of package {name!r} gives its licence as "
                          f"{' / '.join(said)[:60]!r}; name its SPDX licence in the recipe")
    return known.pop()


def package(name: str, pattern: str, format: str, *, licence: str = "", install: str = "",
            exclude: tuple[str, ...] = (), text_field: str = "text",
            query: str = "") -> InputConfig:
    """Files of an installed distribution, `name` as pip knows it; raises ConfigError, with the
    command that installs it, if it is not installed. The pattern is relative to site-packages.
    `licence` is the SPDX licence where the package's metadata is not precise; for the rest see
    `InputConfig`."""
    try:
        distribution = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        raise ConfigError(f"this recipe reads files of the package {name!r}, which is not "
                          f"installed; run: {install or f'pip install {name}'}") from None
    return InputConfig(
        root=str(distribution.locate_file("")), pattern=pattern, format=format, exclude=exclude,
        prefix=f"{name}-{distribution.version}/", licence=licence or licence_of(name),
        text_field=text_field, query=query)


def description(name: str, licence: str = "") -> InputConfig:
    path = next((path for path in importlib.metadata.files(name) or ()
                 if path.name == "METADATA" and path.parent.suffix == ".dist-info"), None)
    if path is None:
        raise ConfigError(f"package {name!r} was not installed by pip: it has no METADATA file")
    return package(name, path.as_posix(), "package_description", licence=licence)


def standard_library(pattern: str, format: str, exclude: tuple[str, ...] = ()) -> InputConfig:
    """Files of Python's standard library (PSF-2.0), without installed packages."""
    return InputConfig(
        root=sysconfig.get_path("stdlib"), pattern=pattern, format=format, licence="PSF-2.0",
        exclude=("site-packages/*", "dist-packages/*", *exclude),
        prefix=f"python-{platform.python_version()}/")
