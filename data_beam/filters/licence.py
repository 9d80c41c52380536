"""Only documents under a licence that the recipe allows."""

import re
from typing import Any

from data_beam.base.records import Document, Dropped
from data_beam.config.licence import LicenceConfig
from data_beam.filters import spdx
from maxlm.config.schema import ConfigError, suggestion


class Allowed:
    """The licences of an allow-list.

    Args:
      names: SPDX identifiers, families (`CC-BY`), or identifiers WITH an exception.
      field: dotted name of the setting, for messages.

    Raises:
      ConfigError: a name that SPDX does not have, with the nearest that it has.
    """

    def __init__(self, names: tuple[str, ...], field: str):
        self._names: set[str] = set()
        for index, name in enumerate(names):
            plain = " ".join(name.split())
            known = spdx.identifiers().get(plain.lower()) or spdx.families().get(plain.lower())
            tree = None if known else spdx.parse(plain)
            if known is None and " with " in plain.lower() and tree is not None:
                known = tree.render()
            if known is None:
                if tree is not None:
                    hint = f"write {tree if isinstance(tree, str) else tree.render()!r}"
                    if re.search(" (?:and|or) ", str(tree), re.IGNORECASE):
                        hint = "list each licence by itself"
                else:
                    hint = suggestion(plain, [*spdx.identifiers().values(),
                                              *spdx.families().values()])
                    hint = hint if hint.startswith("did you") else "see https://spdx.org/licenses"
                raise ConfigError(f"{field}[{index}]: {name!r} is no SPDX identifier; {hint}")
            # `GPL-2.0+` and other old identifiers are written as SPDX writes them today.
            today: Any = spdx.parse(known)
            self._names.add(today if isinstance(today, str) else today.render())

    def __call__(self, licence: Any) -> bool:
        """Whether a licence (from `spdx.parse`) lets a document stay.

        Of `A OR B` one must be allowed, of `A AND B` both. An exception only grants more, so `A
        WITH E` is allowed where `A` is.
        """
        if isinstance(licence, str):
            return licence in self._names
        if hasattr(licence, "license_symbol"):
            return licence.render() in self._names or self(licence.license_symbol)
        if not hasattr(licence, "args") or not licence.args:
            name = licence.render()
            return name in self._names or spdx.family_of(name) in self._names
        every = licence.operator.strip().upper() == "AND"
        return (all if every else any)(self(part) for part in licence.args)


class LicenceFilter:
    """Drops what is not allowed; what is unknown is kept, dropped or set aside by the recipe."""

    stage = "licence"

    def __init__(self, config: LicenceConfig):
        self._config = config
        self._allowed = Allowed(config.allow, "config.licence.allow")

    def __call__(self, document: Document) -> Document | Dropped:
        licence = spdx.parse(document.licence)
        said = repr(document.licence[:80])
        if licence is None:
            if self._config.unknown == "keep":
                return document
            reason = {"drop": "licence unknown",
                      "quarantine": "licence quarantined"}[self._config.unknown]
            return Dropped(document.origin, self.stage, reason, said)
        if self._allowed(licence):
            return document
        return Dropped(document.origin, self.stage, "licence not allowed", said)
