"""Repairs and conversions of the text, and identification of its language."""

import dataclasses

from data_beam.config.checks import check_languages
from maxlm.config.schema import setting


@dataclasses.dataclass(frozen=True)
class CleanConfig:
    """Repairs of the text. Python source only gets LF line ends."""

    normalization: str = setting(
        "NFC", "Unicode normalisation form; none leaves the text, NFKC also makes full-width "
        "punctuation, ligatures and superscripts plain", choices=("NFC", "NFKC", "none"))
    fold_width: bool = setting(
        False, "full-width letters, digits and signs (Ａ１．％－) become ASCII; the punctuation of "
        "Chinese stays: ！（），：；？［］～")
    script: str = setting(
        "none", "convert Chinese documents with OpenCC, not Japanese or Korean: t2s makes them "
        "simplified, s2t traditional; tw and hk are the scripts of Taiwan and Hong Kong, p also "
        "takes their words",
        choices=("none", "t2s", "tw2s", "tw2sp", "hk2s", "s2t", "s2tw", "s2twp", "s2hk"))
    rejoin_lines: bool = setting(False, "join the lines of text that was broken at a fixed width")
    fix_mojibake: bool = setting(True, "repair text decoded with the wrong encoding (ftfy)")


@dataclasses.dataclass(frozen=True)
class LanguageConfig:
    """How the language of a document is identified."""

    min_score: float = setting(
        0.5, "a document is und if its language is less likely than this (CCNet: 0.5)",
        minimum=0.0, maximum=1.0)
    second_vote: str = setting(
        "none", "cld2: take the mean of fastText's probability and the share of the text that CLD2 "
        "finds in that language, so that disagreement gives und and agreement helps a weak guess",
        choices=("none", "cld2"))
    languages: tuple[str, ...] = setting(
        (), "codes to keep, und among them if wanted; other prose is dropped; empty keeps all")

    def check(self, path: str) -> None:
        check_languages(self.languages, f"{path}.languages")
