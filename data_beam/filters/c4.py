"""C4's rules: lines are removed, then the document is judged by what is left.

Sources: Raffel et al. 2020 (JMLR 21, section 2.2) and the two implementations that are in use,
which do not agree with each other; `preset` chooses:

| | `tfds` (TensorFlow Datasets, `c4_utils.clean_page`) | `datatrove` (`C4QualityFilter`) |
|---|---|---|
| words of a line, at least | 5, without citations | 3, with citations |
| sentences of a document, at least | 3 | 5 |
| a line ends with | . ? ! " | . ? ! " ' |

In both, line by line: a word of more than 1000 characters drops the line; citations (`[1]`,
`[edit]`, `[citation needed]`) are cut out; a line without terminal punctuation, or ending with
`...`, is dropped; one with too few words is dropped; `lorem ipsum` drops the document; a line with
`javascript` is dropped; `{` drops the document; a line with a policy phrase is dropped. A line that
was dropped by an earlier rule cannot drop the document.

Sentences are counted by `count_sentences` in both presets; TFDS takes NLTK's trained model.

Chinese has no published form. Here lines end with 。！？；…”’」』 or an ASCII mark, words are those
of rjieba without punctuation, and policy phrases are Chinese ones.
"""

import re

from data_beam.base.records import Document
from data_beam.config.rule_sets import C4Table
from data_beam.filters.marks import LINE_ENDS
from data_beam.filters.table_rule import Failure, TableFilter, measured
from data_beam.filters.views import View, count_sentences, excerpt, is_punctuation
from data_beam.filters.words import WORDS

_CITATION = re.compile(r"\[\d*\]|\[edit\]|\[citation needed\]")
_ENGLISH_POLICIES = ("terms of use", "privacy policy", "cookie policy", "uses cookies",
                     "use of cookies", "use cookies")
_CHINESE_POLICIES = ("使用条款", "服务条款", "隐私政策", "隐私權政策", "隐私权政策", "使用cookie",
                     "免责声明", "版权所有")
_END_MARKS = {"tfds": ('.', '?', '!', '"'), "datatrove": ('.', '?', '!', '"', "'")}
_MIN_WORDS = {"tfds": 5, "datatrove": 3}
_MIN_SENTENCES = {"tfds": 3, "datatrove": 5}


class C4Filter(TableFilter):
    """See the module. What it does to a text is recorded as `c4:lines`."""

    stage = "c4"

    def judge(self, view: View, table: C4Table) -> Failure | None:
        outcome = self._clean(view, table)
        return None if isinstance(outcome, str) else outcome

    def apply(self, document: Document, view: View, table: C4Table) -> Document | Failure:
        outcome = self._clean(view, table)
        if not isinstance(outcome, str):
            return outcome
        return document if outcome == document.text else document.with_text(outcome, "c4:lines")

    def _clean(self, view: View, table: C4Table) -> str | Failure:
        """The lines that stay, or why none do."""
        preset = self.config.preset
        chinese = view.table == "zh"
        cut = WORDS[view.table]
        policies = _CHINESE_POLICIES if chinese else _ENGLISH_POLICIES
        marks = LINE_ENDS["zh"] if chinese else _END_MARKS[preset]
        min_words = _MIN_WORDS[preset] if table.min_words_per_line is None \
            else table.min_words_per_line
        min_sentences = _MIN_SENTENCES[preset] if table.min_sentences is None \
            else table.min_sentences
        kept: list[str] = []
        sentences = 0
        for line in view.text.splitlines():
            line = line.strip()
            if len(line) > table.max_word_length and any(
                    len(word) > table.max_word_length
                    for word in (cut(line) if chinese else line.split())):
                continue
            whole = line
            if "[" in line:
                line = _CITATION.sub("", line)
            if table.require_end_mark and (not line.endswith(marks) or line.endswith("...")):
                continue
            if chinese:
                words = cut(line)
                count = sum(not is_punctuation(word) for word in words)
            else:
                words = []
                count = len((whole if preset == "datatrove" else line).split())
            if count < min_words:
                continue
            lower = line.lower()
            if "lorem ipsum" in lower:
                return "lorem ipsum", excerpt(line)
            if "javascript" in lower:
                continue
            if table.drop_curly_bracket and "{" in line:
                return "curly bracket", excerpt(line[max(line.index("{") - 30, 0):])
            if any(phrase in lower for phrase in policies):
                continue
            sentences += count_sentences(words if chinese else cut(line))
            kept.append(line)
        if sentences < min_sentences:
            return "too few sentences", measured(sentences, min_sentences)
        text = "\n".join(kept).strip()
        return text if text else ("no line left", "")
