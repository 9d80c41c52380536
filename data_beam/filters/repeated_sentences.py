"""The same long sentence again and again through a long document.

A scraped novel that ends each chapter with the same advertisement, or with 且听下回分解, escapes
rules on shares: 20 sentences are nothing in a book. A rule of our own: a sentence of at least
`min_characters` (whitespace and marks at its end left out) that comes back `min_copies` times, each
at least `min_distance` characters after the last one counted, and evenly: no stretch of the text
without it, from its start to its end, is longer than `max_gap` times the mean. So the refrain of a
song, whose copies stand close together in a short text, the numbers of a statute's articles
(第…条), which are short and differ, and a clause that some chapters of a code repeat, stay.
Thresholds were set on real books, manuals and statutes (docs/decisions.md).

`action` says what follows: the document is dropped, or the copies after the first are removed from
its text (recorded as `repeated_sentences:removed`).
"""

import re
from itertools import pairwise

from data_beam.config.rule_sets import RepeatedSentencesTable
from data_beam.filters.table_rule import Failure, TableRule
from data_beam.filters.views import View, excerpt
from data_beam.records import Document

_SENTENCE = re.compile(r"[^\n。！？!?.…]+(?:[。！？!?.…]+[”’」』\"')）]*|\n|\Z)")
_EDGE = "。！？!?.…”’」』\"')）“‘「『(（ \t\u3000\n"


class RepeatedSentencesRule(TableRule):
    """See the module."""

    stage = "repeated_sentences"

    def judge(self, view: View, table: RepeatedSentencesTable) -> Failure | None:
        guilty = _guilty(view.text, table)
        if not guilty:
            return None
        worst = max(guilty, key=lambda sentence: (guilty[sentence], sentence))
        return "repeated sentence", f"{guilty[worst]} copies, limit {table.min_copies} " \
                                    f"{excerpt(worst)}"

    def apply(self, document: Document, view: View, table: RepeatedSentencesTable
              ) -> Document | Failure:
        failure = self.judge(view, table)
        if failure is None or self.config.action == "drop":
            return failure or document
        text = _without_copies(view.text, set(_guilty(view.text, table)))
        return document.with_text(text, "repeated_sentences:removed")


def _guilty(text: str, table: RepeatedSentencesTable) -> dict[str, int]:
    """The sentences that come back too often, and how often each does."""
    if len(text) < (table.min_copies - 1) * table.min_distance:
        return {}
    starts: dict[str, list[int]] = {}
    for match in _SENTENCE.finditer(text):
        if match.end() - match.start() < table.min_characters:
            continue
        sentence = match.group().strip(_EDGE)
        before = starts.setdefault(sentence, [])
        if not before or match.start() - before[-1] >= table.min_distance:
            before.append(match.start())
    guilty: dict[str, int] = {}
    for sentence, places in starts.items():
        if (len(places) < table.min_copies
                or len("".join(sentence.split())) < table.min_characters):
            continue
        longest = max(end - start for start, end in pairwise([0, *places, len(text)]))
        if longest <= table.max_gap * len(text) / (len(places) + 1):
            guilty[sentence] = len(places)
    return guilty


def _without_copies(text: str, guilty: set[str]) -> str:
    """The text with only the first copy of each of these sentences; lines left empty go too."""
    seen: set[str] = set()
    pieces: list[str] = []
    position = 0
    for match in _SENTENCE.finditer(text):
        sentence = match.group().strip(_EDGE)
        if sentence not in guilty:
            continue
        if sentence in seen:
            pieces.append(text[position:match.start()])
            position = match.end()
            if match.group().endswith("\n"):
                pieces.append("\n")
        seen.add(sentence)
    pieces.append(text[position:])
    return re.sub(r"\n{3,}", "\n\n", "".join(pieces)).strip("\n")
