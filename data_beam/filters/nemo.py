"""What NeMo Curator adds to the filters of Gopher and C4. For English.

Source: NVIDIA NeMo Curator, `stages/text/filters/heuristic/string.py` and `utils/constants.py`,
with its defaults. Shares are of all characters unless stated otherwise. Whitespace is space, tab,
line feed, carriage return and backspace; spaces are not alphanumeric. A URL includes path and query
and ends at # ~ " ` { | } space, or a character outside ASCII. Paragraphs are separated by two line
feeds. NeMo looks for whole sentences on cookies; here their beginnings are enough.
"""

import dataclasses
import re

from data_beam.base.characters import fold_case
from data_beam.filters.text_filter import Failures, TextFilter, View, above, excerpt, share

_OTHER = re.compile(r"[^a-zA-Z0-9\n?!,.]+")
# The same set as `regex_url` there, whose `$-_` is a range: / : ; < = > ? [ ] ^ % ' are in it.
_URL = re.compile(r"https?://[!$-_a-z]+")
_LOREM_IPSUM = re.compile("lorem ipsum", re.IGNORECASE)
_POLICIES = ("terms of use", "privacy policy", "cookie policy", "uses cookies", "privacy overview",
             "use of cookies", "use cookies", "privacy & cookies policy",
             "privacy and cookies policy", "necessary cookies are absolutely essential",
             "cookies that may not be particularly necessary",
             "if you continue to browse this site without changing your cookie")
_END_MARKS = (".", "?", "!", '"', "'")


@dataclasses.dataclass(frozen=True)
class NemoConfig:
    """What NeMo Curator adds to Gopher and C4; for English."""

    max_non_alphanumeric: float | None = share(
        0.25, "share of characters other than ASCII letters and digits, ? ! , . and line feeds")
    max_digits: float | None = share(0.15, "share of characters that are digits")
    max_urls: float | None = share(0.2, "share of characters in URLs")
    max_whitespace: float | None = share(0.25, "share of whitespace")
    max_parentheses: float | None = share(0.1, "parentheses ( ) [ ] { } ⟨ ⟩ per character")
    max_boilerplate: float | None = share(
        0.4, "share of paragraphs with a phrase on policies or cookies; lorem ipsum anywhere is "
        "boilerplate too")
    max_unterminated: float | None = share(0.85, "share of lines that end without . ? ! \" or '")


class NemoFilter(TextFilter):
    name = "nemo"
    settings = NemoConfig
    highlights = (
        ("digits", r"\d+"),
        ("parentheses", r"[()]"),
        ("not alphanumeric", r"[^\w\s]+"),
        ("whitespace", r"[ \t]{2,}"),
    )

    def thresholds(self) -> dict[str, NemoConfig]:
        return {"en": self._config}

    def failures(self, view: View, limits: NemoConfig) -> Failures:
        text = view.text
        size = max(len(text), 1)
        symbols = sum(map(len, _OTHER.findall(text)))
        urls = sum(map(len, _URL.findall(text))) if "://" in text else 0
        yield above("not alphanumeric", symbols / size, limits.max_non_alphanumeric)
        yield above("digits", sum(map(str.isdecimal, text)) / size, limits.max_digits)
        yield above("URLs", urls / size, limits.max_urls)
        yield above("whitespace", sum(map(text.count, " \t\n\r\b")) / size, limits.max_whitespace)
        yield above("parentheses", sum(map(text.count, "()[]{}⟨⟩")) / size, limits.max_parentheses)
        lorem_ipsum = _LOREM_IPSUM.search(text)
        if limits.max_boilerplate is not None and lorem_ipsum:
            yield "boilerplate", excerpt(text[lorem_ipsum.start():])
        paragraphs = fold_case(text).split("\n\n")
        found = [p for p in paragraphs if any(phrase in p for phrase in _POLICIES)]
        yield above("boilerplate", len(found) / len(paragraphs), limits.max_boilerplate,
                    found[0] if found else None)
        if view.lines:
            ended = sum(line.rstrip().endswith(_END_MARKS) for line in view.lines)
            yield above("unterminated", (len(view.lines) - ended) / len(view.lines),
                        limits.max_unterminated)
