"""Rules that NeMo Curator adds to those of Gopher and C4. For English.

Source: NVIDIA NeMo Curator, `stages/text/filters/heuristic/string.py` and `utils/constants.py`,
with its defaults. Shares are of all characters where nothing else is said.

| reason | dropped when |
|---|---|
| not alphanumeric (all but letters and digits of ASCII, ? ! , . and line feeds) | > 0.25 |
| digits | > 0.15 |
| URLs (with path and query; a URL ends at # ~ " ` { | } space, or what is not ASCII) | > 0.2 |
| whitespace (space, tab, line feed, carriage return, backspace) | > 0.25 |
| parentheses ( ) [ ] { } ⟨ ⟩ | > 0.1 |
| boilerplate (share of paragraphs with a phrase on policies; or lorem ipsum) | > 0.4 |
| unterminated (share of lines that end without . ? ! " ') | > 0.85 |

Spaces are not alphanumeric. Paragraphs are what lies between two line feeds. Of the sentences on
cookies that it looks for, their beginnings are enough here.
"""

import re

from data_beam.config.rule_sets import NemoConfig
from data_beam.filters.table_rule import Failure, TableFilter, measured, over
from data_beam.filters.views import View, excerpt

_OTHER = re.compile(r"[^a-zA-Z0-9\n?!,.]+")
# The same set as `regex_url` there, whose `$-_` is a range: / : ; < = > ? [ ] ^ % ' are in it.
_URL = re.compile(r"https?://[!$-_a-z]+")
_POLICIES = ("terms of use", "privacy policy", "cookie policy", "uses cookies", "privacy overview",
             "use of cookies", "use cookies", "privacy & cookies policy",
             "privacy and cookies policy", "necessary cookies are absolutely essential",
             "cookies that may not be particularly necessary",
             "if you continue to browse this site without changing your cookie")
_END_MARKS = (".", "?", "!", '"', "'")


class NemoFilter(TableFilter):
    """See the module."""

    stage = "nemo"

    def tables(self) -> dict[str, NemoConfig]:
        return {"en": self.config}

    def judge(self, view: View, table: NemoConfig) -> Failure | None:
        text = view.text
        size = max(len(text), 1)
        symbols = sum(map(len, _OTHER.findall(text)))
        urls = sum(map(len, _URL.findall(text))) if "://" in text else 0
        for reason, count, limit in (
                ("not alphanumeric", symbols, table.max_non_alphanumeric),
                ("digits", sum(map(str.isdecimal, text)), table.max_digits),
                ("URLs", urls, table.max_urls),
                ("whitespace", sum(map(text.count, " \t\n\r\b")), table.max_whitespace),
                ("parentheses", sum(map(text.count, "()[]{}⟨⟩")), table.max_parentheses)):
            if over(count / size, limit):
                return reason, measured(count / size, limit)
        paragraphs = text.lower().split("\n\n")
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
