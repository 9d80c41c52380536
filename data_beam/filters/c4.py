"""C4's filter: lines are removed, then the document is judged by the lines that are left.

Sources: Raffel et al. 2020 (JMLR 21, section 2.2) and the two implementations in use, which do not
agree with each other: `tfds` (TensorFlow Datasets, `c4_utils.clean_page`) counts the words of a
line without citations, `datatrove` (`C4QualityFilter`) with them. Tables below have their numbers.

In both, line by line: a word of more than 1000 characters drops the line; citations (`[1]`,
`[edit]`, `[citation needed]`) are removed; a line without terminal punctuation, or ending with
`...`, is dropped; one with too few words is dropped; `lorem ipsum` drops the document; a line with
`javascript` is dropped; `{` drops the document; a line with a policy phrase is dropped. A line that
was dropped by an earlier check cannot drop the document. Sentences are counted by `count_sentences`
in both presets; TFDS uses NLTK's trained model.

For Chinese nothing is published. Here lines end with 。！？；…”’」』 or an ASCII mark, words are
those of rjieba without punctuation, and policy phrases are Chinese ones.
"""

import dataclasses
import itertools
import re
import string
from collections.abc import Sequence

from data_beam.base.characters import fold_case
from data_beam.base.records import Document
from data_beam.config.checks import check_idle
from data_beam.config.filters import FilterConfig
from data_beam.filters import segmentation
from data_beam.filters.segmentation import LINE_ENDS, SENTENCE_ENDS, WORDS, is_punctuation
from data_beam.filters.text_filter import Failure, TextFilter, View, excerpt, failure
from maxlm.config.schema import ConfigError, setting

_CITATION = re.compile(r"\[\d*\]|\[edit\]|\[citation needed\]")
_ENGLISH_POLICIES = ("terms of use", "privacy policy", "cookie policy", "uses cookies",
                     "use of cookies", "use cookies")
_CHINESE_POLICIES = ("使用条款", "服务条款", "隐私政策", "隐私權政策", "隐私权政策", "使用cookie",
                     "免责声明", "版权所有")
# What ends a line with `end_marks="paper"`; words of a line and sentences of a document, at least.
_PAPER_MARKS = {"tfds": ('.', '?', '!', '"'), "datatrove": ('.', '?', '!', '"', "'")}
_MIN_WORDS = {"tfds": 5, "datatrove": 3}
_MIN_SENTENCES = {"tfds": 3, "datatrove": 5}

_CLOSING_QUOTES = "\"”»」』〞"
_SINGLE_QUOTES = "'’›"
_CLOSING = f"{_CLOSING_QUOTES}{_SINGLE_QUOTES})）\\]】〕〗}}>〉》"
_NOTE_MARKS = "¹²³ªº⁰-⁹ⁱ\u1d2c-\u1d61①-⒇⓪ⓐ-ⓩ❶-➓㉑-㉟㊱-㊿†‡*※"
"""Superscripts, circled and bracketed numbers, daggers and asterisks."""
_NOTE_NAME = r"\w{1,3}(?:[,、–\-] ?\w{1,3})*"  # [1] [a] [12, 13]
_AFTER_END = re.compile(
    rf"(?:\s?(?:[{_NOTE_MARKS}{_CLOSING}]|[(（]\w{{1,2}}[)）]"
    rf"|[\[【〔〖](?:(?:note|ref|fn|n|注|註|脚注|脚註|附注) ?)?{_NOTE_NAME}[\]】〕〗]))+\Z",
    re.IGNORECASE)
_MAY_FOLLOW = frozenset(filter(re.compile(f"[{_NOTE_MARKS}{_CLOSING}]").match,
                               map(chr, range(0x10000))))
_CHINESE_ENDS = SENTENCE_ENDS | set("…；")
_NEVER_ENDS = frozenset(string.ascii_letters + string.digits + ",-=/+&")
"""For a quick look: most lines without a terminal mark end with one of these."""
_LONGEST_END = 32  # characters at the end in which closing quotes and the like are looked for


@dataclasses.dataclass(frozen=True)
class C4Thresholds:
    """Settings of C4 for one language. None for a number takes that of the preset."""

    require_end_mark: bool = setting(True, "drop lines that end without terminal punctuation")
    min_words_per_line: int | None = setting(
        None, "lines with fewer words are dropped; None: 5 (tfds) or 3 (datatrove)", minimum=0)
    max_word_length: int = setting(1000, "a longer word drops its line, characters", minimum=1)
    min_sentences: int | None = setting(
        None, "documents with fewer sentences are dropped; None: 3 (tfds) or 5 (datatrove)",
        minimum=0)
    drop_curly_bracket: bool = setting(
        True, "drop documents with { in a line that no earlier check dropped")


@dataclasses.dataclass(frozen=True)
class C4Config:
    """C4's filter (Raffel et al. 2020): removes lines, then judges the document."""

    preset: str = setting(
        "datatrove", "numbers of tfds (lines of 5 words, 3 sentences) or datatrove (3 words, 5 "
        "sentences)", choices=("tfds", "datatrove"))
    end_marks: str = setting(
        "extended", "what ends a line. extended: a mark of any script that ends a sentence, or a "
        "closing quotation mark, also before closing quotes, brackets and the marks of notes; "
        "paper: exactly . ? ! and the quotation mark (preset datatrove also takes an apostrophe)",
        choices=("extended", "paper"))
    more_end_marks: tuple[str, ...] = setting((), "further marks that end a line, such as ':'")
    en: C4Thresholds = setting(C4Thresholds(), "English")
    zh: C4Thresholds = setting(C4Thresholds(), "Chinese: words of rjieba, marks of both widths")

    def check(self, path: str) -> None:
        if not (self.en.require_end_mark or self.zh.require_end_mark):
            check_idle(self, path, f"{path}.en.require_end_mark and {path}.zh.require_end_mark are "
                       "False", "set one of them", only=("end_marks", "more_end_marks"))
        if "" in self.more_end_marks:
            raise ConfigError(f"{path}.more_end_marks: a mark must not be empty, because every "
                              "line ends with it; remove it")


class C4Filter(TextFilter):
    """See the module. What it does to a text is recorded as `c4:lines`."""

    name = "c4"
    settings = C4Config

    def __init__(self, config: FilterConfig):
        super().__init__(config)
        self._never_ends = _NEVER_ENDS.difference(mark[-1] for mark in self._config.more_end_marks)

    def judge(self, document: Document, view: View, limits: C4Thresholds) -> Document | Failure:
        preset = self._config.preset
        chinese = view.language == "zh"
        cut = WORDS[view.language]
        policies = _CHINESE_POLICIES if chinese else _ENGLISH_POLICIES
        min_words = _MIN_WORDS[preset] if limits.min_words_per_line is None \
            else limits.min_words_per_line
        min_sentences = _MIN_SENTENCES[preset] if limits.min_sentences is None \
            else limits.min_sentences
        kept: list[str] = []
        sentences = 0
        # What is judged is the line of the view; what is kept is the line of the document.
        for line, original in zip(view.text.splitlines(), document.text.splitlines(), strict=True):
            line = line.strip()
            if len(line) > limits.max_word_length and any(
                    len(word) > limits.max_word_length
                    for word in (cut(line) if chinese else line.split())):
                continue
            whole = line
            citations: list[tuple[int, int]] = []
            if "[" in line:
                citations = [match.span() for match in _CITATION.finditer(line)]
                line = _without(line, citations)
            if limits.require_end_mark and (
                    line[-1:] in self._never_ends or not self._is_ended(line, chinese)):
                continue
            if chinese:
                words = cut(line)
                count = sum(not is_punctuation(word) for word in words)
            else:
                words = []
                count = len((whole if preset == "datatrove" else line).split())
            if count < min_words:
                continue
            folded = fold_case(line)
            if "lorem ipsum" in folded:
                return "lorem ipsum", excerpt(line)
            if "javascript" in folded:
                continue
            if limits.drop_curly_bracket and "{" in line:
                return "curly bracket", excerpt(line[max(line.index("{") - 30, 0):])
            if any(phrase in folded for phrase in policies):
                continue
            sentences += segmentation.count_sentences(words if chinese else cut(line))
            original = _without(original.strip(), citations)
            kept.append(original.rstrip() if limits.require_end_mark else original)
        if sentences < min_sentences:
            return failure("too few sentences", sentences, min_sentences)
        text = "\n".join(kept).strip()
        if not text:
            return "no line left", ""
        return document if text == document.text else document.with_text(text, "c4:lines")

    def _is_ended(self, line: str, chinese: bool) -> bool:
        """Whether a line ends with a terminal mark, by `end_marks`, and not with `...`."""
        preset, more = self._config.preset, self._config.more_end_marks
        if self._config.end_marks == "paper":
            marks = LINE_ENDS["zh"] if chinese else _PAPER_MARKS[preset]
            return line.endswith((*marks, *more)) and not line.endswith("...")
        line = line.rstrip()  # a space may stand before a citation
        end = line
        if line[-1:] in _MAY_FOLLOW:  # a quick look, because few lines have more
            after = _AFTER_END.search(line, max(len(line) - _LONGEST_END, 0))
            quotes = _CLOSING_QUOTES + (_SINGLE_QUOTES if chinese or preset == "datatrove" else "")
            if after and not set(quotes).isdisjoint(after[0]):
                return True
            end = line[:after.start()].rstrip() if after else line
        is_ended = end[-1:] in (_CHINESE_ENDS if chinese else SENTENCE_ENDS)
        return (is_ended or end.endswith(more) or line.endswith(more)) and not end.endswith("...")


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The text without these parts, which come in order."""
    edges = [0, *itertools.chain.from_iterable(spans), len(text)]
    return "".join(text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True))
