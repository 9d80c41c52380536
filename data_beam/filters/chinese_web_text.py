"""The filter of ChineseWebText. For Chinese.

Source: Chen et al. 2023 (arXiv 2311.01149, section 3.1) and its `preprocess.py`. 13-grams are of
characters, lower case, without spaces, tabs and line feeds. The paper's check for sensitive words
needs a word list: see the safety filter. The paper keeps only simplified text (by zhconv's zh-cn);
here that is a setting (by OpenCC's t2s), because one quotation in traditional characters fails it.
"""

import dataclasses
import re

import numpy as np

from data_beam.filters.basic import short_lines
from data_beam.filters.ngram_counts import character_hashes, repeated
from data_beam.filters.text_filter import (
    Failures,
    TextFilter,
    View,
    above,
    below,
    excerpt,
    failure,
    share,
)
from maxlm.config.schema import setting

_HAN = re.compile("[\u4e00-\u9fa5]")  # the paper's range, narrower than `characters.HAN`
_SPACES = str.maketrans("", "", " \n\t")
_WINDOW = 13


@dataclasses.dataclass(frozen=True)
class ChineseWebTextConfig:
    """The filter of ChineseWebText (Chen et al. 2023); for Chinese."""

    min_characters: int = setting(
        200, "documents of this many characters and fewer are dropped", minimum=0)
    min_mean_line: float | None = share(
        10.0, "mean characters of a line, empty lines included, at least")
    min_han: float | None = share(0.3, "share of Han characters (U+4E00 to U+9FA5), at least")
    simplified_only: bool = setting(
        False, "drop texts that OpenCC would still simplify; a single quoted name is enough")
    max_repeated_13grams: float | None = share(
        0.5, "different character 13-grams that occur again, over all 13-grams")


class ChineseWebTextFilter(TextFilter):
    name = "chinese_web_text"
    settings = ChineseWebTextConfig
    libraries = (*TextFilter.libraries, "OpenCC")
    highlights = (("short lines", short_lines),)

    def thresholds(self) -> dict[str, ChineseWebTextConfig]:
        if self._config.simplified_only:
            from data_beam.clean.conversions import converter
            self._simplify = converter("t2s")
        return {"zh": self._config}

    def failures(self, view: View, limits: ChineseWebTextConfig) -> Failures:
        text = view.text
        if len(text) <= limits.min_characters:
            yield failure("too short", len(text), limits.min_characters)
        yield below("short lines", len(text) / (text.count("\n") + 1), limits.min_mean_line)
        yield below("little Han", len(_HAN.findall(text)) / max(len(text), 1), limits.min_han)
        if limits.simplified_only:
            simple = self._simplify(text)
            if simple != text:
                at = next((i for i, (a, b) in enumerate(zip(text, simple, strict=False)) if a != b),
                          0)
                yield "not simplified", excerpt(text[max(at - 10, 0):at + 20])
        normal = text.strip().lower().translate(_SPACES)
        hashes = character_hashes(normal, _WINDOW)
        if len(hashes) and limits.max_repeated_13grams is not None:
            indices, again = repeated(hashes)
            first = int(indices[0]) if len(indices) else 0
            yield above("repetition", len(np.unique(again)) / len(hashes),
                        limits.max_repeated_13grams, normal[first:first + _WINDOW])
