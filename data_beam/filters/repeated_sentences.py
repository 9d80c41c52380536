"""A long sentence that is repeated through a long document.

A scraped novel may end each chapter with the same advertisement, or with
欲知后事如何，且听下回分解. Filters on shares miss it: 20 sentences are a tiny share of a book. This
filter of our own finds a sentence of at least `min_characters` (without whitespace and without
marks at its ends) that occurs `min_copies` times, each at least `min_distance` characters after the
last one counted, and evenly: no stretch of the text without it is longer than `max_gap` times the
mean.

The refrain of a song is kept, as its copies are close together in a short text; so are the numbers
of a statute's articles (第…条) and a bare 且听下回分解, which are short, and a clause that some
chapters of a code repeat. Thresholds were set on real books, manuals and statutes
(docs/decisions.md). Removed copies are recorded as `repeated_sentences:removed`.
"""

import dataclasses
import re
from collections.abc import Iterator
from itertools import pairwise

from data_beam.base.characters import HAN, HIRAGANA_KATAKANA
from data_beam.base.records import Document
from data_beam.filters.text_filter import Failure, TextFilter, View, excerpt
from maxlm.config.schema import setting

_MARKS = "。！？!?.…"
_OPENING = "“‘「『(（【［\\["
_CLOSING = "”’」』\"')）】］\\]"
_UNSPACED = HIRAGANA_KATAKANA + HAN
_NAME = "a-z0-9ａ-ｚ０-９"
# Marks inside addresses and numbers do not end a sentence (www.example.com, $0.00, read?id=3, and
# www。example。com, by which advertisements evade filters). So a full stop ends a sentence before
# whitespace, quotes, brackets, dashes and the end of the text. Without a space after it, it does so
# only from Han or a closing mark to Han (走了.她来, but not www.笔趣阁.com or com.谢谢), and from a
# word to a capitalised one that is not part of an address (end.The next, not www.Example.com).
# The pattern begins with a class and looks back at it, because `re` finds such places fast.
_END = re.compile(
    rf"""[\n{_MARKS}](?: (?<=\n) | (?: (?<=[{_MARKS}])[{_MARKS}]+ | (?<=[！？!…])
        | (?<=。)(?: (?<![{_NAME}]。) | (?![{_NAME}]) )
        | (?<=\?)(?: (?<![A-Za-z0-9/]\?) | (?![a-z0-9_]) )
        | (?<=\.)(?: (?=[\s—{_OPENING}{_CLOSING}]|\Z) | (?<![A-Za-z0-9]\.)(?=[{_UNSPACED}])
            | (?<=[a-z]{{2}}\.)(?!(?:Com|Net|Org)\b)(?=[A-Z][a-z]{{0,15}}[\s,’']) )
        )[{_CLOSING}]* )""", re.VERBOSE)
_EDGE = f"{_MARKS}{_OPENING}{_CLOSING} \t\u3000\n".replace("\\", "")
# Marks and spaces, but no line ends.
_BEFORE = re.compile(rf"[{_MARKS}{_OPENING}{_CLOSING} \t\u3000]*")


@dataclasses.dataclass(frozen=True)
class RepeatedSentencesThresholds:
    """When a sentence counts as repeated through a long document, for one language."""

    min_characters: int = setting(
        40, "shorter sentences may be repeated, counted without whitespace", minimum=1)
    min_copies: int = setting(20, "a sentence with this many copies is repeated", minimum=2)
    min_distance: int = setting(
        1000, "characters between two copies; of closer copies (a chorus, a list) one counts",
        minimum=0)
    max_gap: float = setting(
        3.0, "longest stretch without the sentence, in units of the mean; with a longer one it is "
        "not repeated through the whole text", minimum=1.0)


@dataclasses.dataclass(frozen=True)
class RepeatedSentencesConfig:
    """A long sentence that is repeated through a long document, as at the end of every chapter."""

    action: str = setting(
        "drop", "drop the document, or remove the copies after the first from its text",
        choices=("drop", "remove"))
    en: RepeatedSentencesThresholds = setting(RepeatedSentencesThresholds(), "English")
    zh: RepeatedSentencesThresholds = setting(
        RepeatedSentencesThresholds(min_characters=10, min_distance=300), "Chinese")


class RepeatedSentencesFilter(TextFilter):
    name = "repeated_sentences"
    settings = RepeatedSentencesConfig

    def judge(self, document: Document, view: View, limits: RepeatedSentencesThresholds
              ) -> Document | Failure:
        repeated = _repeated(view.text, limits)
        if not repeated:
            return document
        if self._config.action == "remove":
            return document.with_text(_without_copies(document.text, view.text, set(repeated)),
                                      "repeated_sentences:removed")
        worst = max(repeated, key=lambda sentence: (repeated[sentence], sentence))
        return "repeated sentence", f"{repeated[worst]} copies, limit {limits.min_copies} " \
                                    f"{excerpt(worst)}"


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each sentence with its closing marks and quotes; a line end closes one too.

    Marks before its first word (…and so on) are part of it. Together the sentences are the text.
    """
    start = 0
    before = _BEFORE.match(text)
    for end in _END.finditer(text):
        if before and end.start() < before.end():
            continue
        yield start, end.end()
        start = end.end()
        before = _BEFORE.match(text, start)
    if start < len(text):
        yield start, len(text)


def _repeated(text: str, limits: RepeatedSentencesThresholds) -> dict[str, int]:
    """The sentences that occur too often, and how often each does."""
    if len(text) < (limits.min_copies - 1) * limits.min_distance:
        return {}
    starts: dict[str, list[int]] = {}
    for start, end in _sentences(text):
        if end - start < limits.min_characters:
            continue
        before = starts.setdefault(text[start:end].strip(_EDGE), [])
        if not before or start - before[-1] >= limits.min_distance:
            before.append(start)
    repeated: dict[str, int] = {}
    for sentence, places in starts.items():
        if (len(places) < limits.min_copies
                or len("".join(sentence.split())) < limits.min_characters):
            continue
        longest = max(end - start for start, end in pairwise([0, *places, len(text)]))
        if longest <= limits.max_gap * len(text) / (len(places) + 1):
            repeated[sentence] = len(places)
    return repeated


def _without_copies(original: str, text: str, repeated: set[str]) -> str:
    """A text with only the first copy of each of these sentences; lines left empty go too.

    Sentences are those of `text`, the view of the original, which has the same positions.
    """
    seen: set[str] = set()
    pieces: list[str] = []
    empty, taken = True, False  # nothing is left of the line so far; something was removed from it
    for start, end in _sentences(text):
        sentence = text[start:end].strip(_EDGE)
        copy = sentence in repeated and sentence in seen
        if sentence in repeated:
            seen.add(sentence)
        piece = original[start:end]
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
