"""Repairs of the text, and naming its language."""

import dataclasses

from maxlm.config.schema import setting


@dataclasses.dataclass(frozen=True)
class CleanConfig:
    """Repairs of the text. Python source only gets LF line ends."""

    normalization: str = setting(
        "NFC", "Unicode normalisation form; none leaves the text", choices=("NFC", "none"))
    fix_mojibake: bool = setting(True, "repair text decoded with the wrong encoding (ftfy)")


@dataclasses.dataclass(frozen=True)
class LanguageConfig:
    """How a document's language is told."""

    min_score: float = setting(
        0.5, "a language less likely than this becomes und; below a half it is no majority (CCNet "
        "takes 0.5)", minimum=0.0, maximum=1.0)
