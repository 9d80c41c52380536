"""Inputs made of what pip has installed: for recipes that work on any machine with Python alone."""

import importlib.metadata
import platform
import sysconfig

from data_beam.config import InputConfig
from maxlm.config.schema import ConfigError

# What packages write instead of an SPDX expression. "BSD License" is not here: it does not say
# which of the BSD licences is meant.
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


def _spdx(text: str) -> str:
    if text.startswith("Apache License Version 2.0"):  # some packages put the whole licence there.
        return "Apache-2.0"
    return text if text in _SPDX_NAMES else _SPDX.get(text, "")


def licence_of(name: str) -> str:
    """SPDX licence of an installed distribution, from its metadata.

    `License-Expression` wins, then the licence classifiers, then the `License` field.

    Raises:
      ConfigError: the metadata does not say it in a way that can be understood.
    """
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
    """Files of an installed distribution.

    Args:
      name: distribution name as pip knows it.
      pattern: glob relative to site-packages.
      format: see `data_beam.config.FORMATS`.
      licence: SPDX licence where the package's metadata is not precise.
      install: the command that installs it, for the message when it is missing.
      exclude: globs to leave out.
      text_field, query: see `InputConfig`.

    Raises:
      ConfigError: the distribution is not installed.
    """
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
    """The long description of an installed distribution."""
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
