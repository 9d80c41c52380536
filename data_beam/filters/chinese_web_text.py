"""The rules of ChineseWebText. For Chinese.

Source: Chen et al. 2023 (arXiv 2311.01149, section 3.1) and its `preprocess.py`.

| reason | dropped when |
|---|---|
| too short (characters) | <= 200 |
| short lines (mean characters, over all line feeds) | < 10 |
| little Han (share of U+4E00 to U+9FA5) | < 0.3 |
| not simplified (OpenCC's t2s would change it; theirs is zhconv's zh-cn) | off |
| repetition (different 13-grams that occur again, over all 13-grams) | > 0.5 |

13-grams are of characters, lower case, without spaces, tabs and line feeds. The paper's rule on
sensitive words needs a word list: see the safety filter. Only simplified text passes theirs; here
that is a switch, because a quotation in traditional characters is enough to fail it.
"""

import re

import numpy as np

from data_beam.config.rule_sets import ChineseWebTextConfig
from data_beam.filters.ngrams import character_hashes, repeated
from data_beam.filters.table_rule import Failure, TableFilter, measured, over, under
from data_beam.filters.views import View, excerpt

_HAN = re.compile("[\u4e00-\u9fa5]")
_SPACES = str.maketrans("", "", " \n\t")
_WINDOW = 13


class ChineseWebTextFilter(TableFilter):
    """See the module."""

    stage = "chinese_web_text"

    def tables(self) -> dict[str, ChineseWebTextConfig]:
        if self.config.simplified_only:
            from data_beam.clean.script import converter
            self._simplify = converter("t2s")
        return {"zh": self.config}

    def judge(self, view: View, table: ChineseWebTextConfig) -> Failure | None:
        text = view.text
        if len(text) <= table.min_characters:
            return "too short", measured(len(text), table.min_characters)
        mean = len(text) / (text.count("\n") + 1)
        if under(mean, table.min_mean_line):
            return "short lines", measured(mean, table.min_mean_line)
        share = len(_HAN.findall(text)) / max(len(text), 1)
        if under(share, table.min_han):
            return "little Han", measured(share, table.min_han)
        if table.simplified_only:
            simple = self._simplify(text)
            if simple != text:
                at = next((i for i, (a, b) in enumerate(zip(text, simple, strict=False)) if a != b),
                          0)
                return "not simplified", excerpt(text[max(at - 10, 0):at + 20])
        normal = text.strip().lower().translate(_SPACES)
        hashes = character_hashes(normal, _WINDOW)
        if len(hashes) and table.max_repeated_13grams is not None:
            indices, again = repeated(hashes)
            share = len(np.unique(again)) / len(hashes)
            if over(share, table.max_repeated_13grams):
                return "repetition", f"{measured(share, table.max_repeated_13grams)} " \
                    f"{excerpt(normal[int(indices[0]):][:_WINDOW])}"
        return None
