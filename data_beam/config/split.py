"""Train, validation and test."""

import dataclasses

from maxlm.config.schema import ConfigError, setting


@dataclasses.dataclass(frozen=True)
class SplitConfig:
    """Share of documents by split, by the hash of their text. The rest is for training."""

    validation: float = setting(0.01, "share of documents", minimum=0.0, maximum=1.0)
    test: float = setting(0.01, "share of documents", minimum=0.0, maximum=1.0)

    def check(self, path: str) -> None:
        if self.validation + self.test >= 1:
            raise ConfigError(f"{path}: validation + test is {self.validation + self.test:g}; "
                              "nothing would be left to train on")
