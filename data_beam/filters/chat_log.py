"""Chat logs: lines that begin with a time, a speaker in brackets, or a name and a time.

A filter of our own, for any language: a document of five lines or more is dropped when more than
half of its lines look like these.

    [12:30] <ann> hello          12:30:05 ann: hello          <ann> hello
    张三 2023-05-01 12:30:05      张三(12345678) 12:30:05       [12:30] 张三：你好

A line that a client writes between them (`*** ann has joined`) counts too. A play (`HAMLET. To be`)
or an interview (`记者：`) has no times and is kept.
"""

import dataclasses
import re

from data_beam.base.records import Document, Dropped
from data_beam.config.checks import check_idle
from data_beam.filters.text_filter import TextFilter, above, view_of
from maxlm.config.schema import setting

_TIME = r"\d{1,2}[:：]\d{2}(?:[:：]\d{2})?(?: ?[AaPp][Mm])?"
_DATE = r"(?:\d{4}[-/年.]\d{1,2}[-/月.]\d{1,2}日?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})"
_CHAT = re.compile(
    rf"\s*(?:[\[(【（](?:{_DATE}[ ,T]*)?{_TIME}[\])】）]\s*\S"  # [12:30] <ann> hello
    rf"|(?:{_DATE}[ ,T]+)?{_TIME}\s*[-–]?\s*[<\[]?[^\s:：>]{{1,30}}[>\]:：]"  # 12:30 ann: hello
    rf"|<[^\s<>/=]{{2,30}}> (?!.*</)\S"  # <ann> hello, and no markup
    rf"|\S{{1,30}} {{1,3}}(?:{_DATE} +)?{_TIME}\s*\Z"  # a head line: name and time
    r"|\*\*\* ?\S+ (?:has )?(?:joined|left|quit|is now known as)\b)")


@dataclasses.dataclass(frozen=True)
class ChatLogConfig:
    """Logs of chats, in any language."""

    max_chat_lines: float = setting(
        0.5, "share of lines that begin with a time or a speaker in brackets", minimum=0.0,
        maximum=1.0)
    min_lines: int = setting(5, "documents with fewer lines are not judged", minimum=1)

    def check(self, path: str) -> None:
        if self.max_chat_lines == 1:
            check_idle(self, path, f"{path}.max_chat_lines is 1", "lower that", only=("min_lines",))


class ChatLogFilter(TextFilter):
    name = "chat_log"
    settings = ChatLogConfig

    def thresholds(self) -> dict[str, ChatLogConfig]:
        return {}  # the same for every language

    def __call__(self, document: Document) -> Document | Dropped:
        lines = view_of(document.text, self._thresholds_of.get(document.language, "zh")).lines
        if document.is_code or len(lines) < self._config.min_lines:
            return document
        chat = [line for line in lines if _CHAT.match(line[:200])]
        failed = above("chat lines", len(chat) / len(lines), self._config.max_chat_lines,
                       chat[0] if chat else None)
        return Dropped(document.origin, self.name, *failed) if failed else document
