"""Repairs of the text, and naming its language."""

import dataclasses

from maxlm.config.schema import setting


@dataclasses.dataclass(frozen=True)
class CleanConfig:
    """Repairs of the text. Python source only gets LF line ends."""

    normalization: str = setting(
        "NFC", "Unicode normalisation form; none leaves the text, NFKC also makes full-width "
        "punctuation, ligatures and superscripts plain", choices=("NFC", "NFKC", "none"))
    fold_width: bool = setting(
        False, "full-width letters and digits become ASCII; ，。！？ stay")
    script: str = setting(
        "none", "convert Chinese with OpenCC: t2s makes it simplified, s2t traditional; tw and hk "
        "are the scripts of Taiwan and Hong Kong, p also takes their words",
        choices=("none", "t2s", "tw2s", "tw2sp", "hk2s", "s2t", "s2tw", "s2twp", "s2hk"))
    rejoin_lines: bool = setting(
        False, "join the lines of text that was broken at a fixed width")
    fix_mojibake: bool = setting(True, "repair text decoded with the wrong encoding (ftfy)")


@dataclasses.dataclass(frozen=True)
class LanguageConfig:
    """How a document's language is told."""

    min_score: float = setting(
        0.5, "a language less likely than this becomes und; below a half it is no majority (CCNet "
        "takes 0.5)", minimum=0.0, maximum=1.0)
