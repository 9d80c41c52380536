"""Licences that a corpus may hold."""

import dataclasses

from maxlm.config.schema import ConfigError, setting


@dataclasses.dataclass(frozen=True)
class LicenceConfig:
    """Which documents may stay, by their licence. Off while `allow` is empty."""

    allow: tuple[str, ...] = setting(
        (), "SPDX identifiers (CC-BY-4.0), identifiers without their version for all versions "
        "(CC-BY), or combinations (Apache-2.0 WITH LLVM-exception); empty allows every licence")
    unknown: str = setting(
        "drop", "documents whose licence is empty or no licence that SPDX lists: keep, drop, or "
        "quarantine: dropped under a reason of its own, so that they can be listed and cleared",
        choices=("keep", "drop", "quarantine"))

    def check(self, path: str) -> None:
        if not self.allow and self.unknown != LicenceConfig.unknown:
            raise ConfigError(f"{path}.allow: is empty, so {path}.unknown does nothing; list the "
                              "licences to keep")
