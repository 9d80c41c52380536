"""Rules that NeMo Curator adds to those of Gopher and C4. For English.

Source: NVIDIA NeMo Curator, `stages/text/filters/heuristic/string.py`, with its defaults.

| reason | dropped when |
|---|---|
| not alphanumeric (characters neither letter, digit nor whitespace, over all) | > 0.25 |
| digits (over all characters) | > 0.15 |
| URLs (their characters over all) | > 0.2 |
| whitespace (over all characters) | > 0.25 |
| parentheses (over all characters) | > 0.1 |
| boilerplate (paragraphs with a policy phrase; `lorem ipsum` alone is enough) | > 0.4 |
| unterminated (lines that end without . ? ! " ') | > 0.85 |

Its sentences are lines here, as its `get_sentences` splits at line feeds; paragraphs are split at
two line feeds and more.
"""

import re

from data_beam.config.rule_sets import NemoConfig
from data_beam.filters.table_rule import Failure, TableRule, measured, over
from data_beam.filters.views import View, excerpt

_URL = re.compile(r"https?://[^\s\"'<>)\]]+")
_POLICIES = ("terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies",
             "use cookies")
_END_MARKS = (".", "?", "!", '"', "'")
_PARAGRAPH = re.compile(r"\n{2,}")


class NemoRule(TableRule):
    """See the module."""

    stage = "nemo"

    def tables(self) -> dict[str, NemoConfig]:
        return {"en": self.config}

    def judge(self, view: View, table: NemoConfig) -> Failure | None:
        text = view.text
        size = max(len(text), 1)
        squeezed = view.squeezed
        spaces = len(text) - len(squeezed)
        symbols = len(squeezed) - sum(map(str.isalnum, squeezed))
        urls = sum(map(len, _URL.findall(text))) if "://" in text else 0
        for reason, count, limit in (
                ("not alphanumeric", symbols, table.max_non_alphanumeric),
                ("digits", sum(map(str.isdigit, squeezed)), table.max_digits),
                ("URLs", urls, table.max_urls),
                ("whitespace", spaces, table.max_whitespace),
                ("parentheses", text.count("(") + text.count(")"), table.max_parentheses)):
            if over(count / size, limit):
                return reason, measured(count / size, limit)
        paragraphs = _PARAGRAPH.split(text.strip().lower())
        if table.max_boilerplate is not None and "lorem ipsum" in text.lower():
            return "boilerplate", excerpt(text[text.lower().index("lorem ipsum"):])
        guilty = [p for p in paragraphs if any(phrase in p for phrase in _POLICIES)]
        share = len(guilty) / len(paragraphs)
        if over(share, table.max_boilerplate):
            return "boilerplate", f"{measured(share, table.max_boilerplate)} {excerpt(guilty[0])}"
        lines = view.lines
        if lines:
            share = sum(not line.rstrip().endswith(_END_MARKS) for line in lines) / len(lines)
            if over(share, table.max_unterminated):
                return "unterminated", measured(share, table.max_unterminated)
        return None
