"""The same long sentence again and again through a long document.

A scraped novel that ends each chapter with the same advertisement, or with
欲知后事如何，且听下回分解, escapes rules on shares: 20 sentences are nothing in a book. A rule of
our own: a sentence of at least `min_characters` (whitespace and marks at its ends left out) that
comes back `min_copies` times, each at least `min_distance` characters after the last one counted,
and evenly: no stretch of the text without it, from its start to its end, is longer than `max_gap`
times the mean. So the refrain of a song, whose copies stand close together in a short text, the
numbers of a statute's articles (第…条) and a bare 且听下回分解, which are short, and a clause that
some chapters of a code repeat, stay. Thresholds were set on real books, manuals and statutes
(docs/decisions.md).

`action` says what follows: the document is dropped, or the copies after the first are removed from
its text (recorded as `repeated_sentences:removed`).
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from data_beam.base.records import Document
from data_beam.config.rule_sets import RepeatedSentencesTable
from data_beam.filters.table_rule import Failure, TableFilter
from data_beam.filters.views import View, excerpt

_MARKS = "。！？!?.…"
_OPENING = "“‘「『(（【［\\["
_CLOSING = "”’」』\"')）】］\\]"
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # kana, Han
_NAME = "a-z0-9ａ-ｚ０-９"
# Marks inside addresses and numbers end nothing (www.example.com, $0.00, read?id=3, and
# www。example。com, by which advertisements escape filters). So a full stop ends a sentence before
# whitespace, quotes, brackets, dashes and the end; without a space between only from Han or a
# closing mark to Han (走了.她来, but not www.笔趣阁.com or com.谢谢), and from a word to a
# capitalised one that no further part of an address follows (end.The next, not www.Example.com).
# The pattern begins with a class and looks back at what it took: `re` finds such places fast.
_END = re.compile(
    rf"""[\n{_MARKS}](?: (?<=\n) | (?: (?<=[{_MARKS}])[{_MARKS}]+ | (?<=[！？!…])
        | (?<=。)(?: (?<![{_NAME}]。) | (?![{_NAME}]) )
        | (?<=\?)(?: (?<![A-Za-z0-9/]\?) | (?![a-z0-9_]) )
        | (?<=\.)(?: (?=[\s—{_OPENING}{_CLOSING}]|\Z) | (?<![A-Za-z0-9]\.)(?=[{_UNSPACED}])
            | (?<=[a-z]{{2}}\.)(?!(?:Com|Net|Org)\b)(?=[A-Z][a-z]{{0,15}}[\s,’']) )
        )[{_CLOSING}]* )""", re.VERBOSE)
_EDGE = f"{_MARKS}{_OPENING}{_CLOSING} \t\u3000\n".replace("\\", "")
_BEFORE = re.compile(rf"[{_MARKS}{_OPENING}{_CLOSING} \t\u3000]*")


class RepeatedSentencesFilter(TableFilter):
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


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each sentence, with the marks and quotes that close it; a line end closes
    one too. Marks before its first word (…and so on) are part of it. Together they are the text."""
    start = 0
    first = _word(text, start)
    for end in _END.finditer(text):
        if end.start() < first:
            continue
        yield start, end.end()
        start = end.end()
        first = _word(text, start)
    if start < len(text):
        yield start, len(text)


def _word(text: str, start: int) -> int:
    """Where marks and spaces, but no line ends, that begin at `start` stop."""
    match = _BEFORE.match(text, start)
    return match.end() if match else start


def _guilty(text: str, table: RepeatedSentencesTable) -> dict[str, int]:
    """The sentences that come back too often, and how often each does."""
    if len(text) < (table.min_copies - 1) * table.min_distance:
        return {}
    starts: dict[str, list[int]] = {}
    for start, end in _sentences(text):
        if end - start < table.min_characters:
            continue
        before = starts.setdefault(text[start:end].strip(_EDGE), [])
        if not before or start - before[-1] >= table.min_distance:
            before.append(start)
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
    empty, taken = True, False  # of the line so far: nothing is left of it; something was removed
    for start, end in _sentences(text):
        sentence = text[start:end].strip(_EDGE)
        copy = sentence in guilty and sentence in seen
        if sentence in guilty:
            seen.add(sentence)
        piece = text[start:end]
        if copy:
            taken = True
            piece = "\n" if piece.endswith("\n") else ""
        if empty and taken:
            piece = piece.lstrip(" \t\u3000")
        if piece != "\n" or not (empty and taken):
            pieces.append(piece)
        if text[end - 1] == "\n":
            empty, taken = True, False
        elif piece:
            empty = False
    return re.sub(r"\n{3,}", "\n\n", "".join(pieces)).strip("\n")
