"""Logs of chats: lines that begin with a time, a speaker in brackets, or a name and a time.

A rule of our own, in any language: when more than half of the lines of a document of five lines and
more look like these, it is dropped.

    [12:30] <ann> hello          12:30:05 ann: hello          <ann> hello
    张三 2023-05-01 12:30:05      张三(12345678) 12:30:05       [12:30] 张三：你好

A line that a client writes between them (`*** ann has joined`) counts too. A play (`HAMLET. To be`)
or an interview (`记者：`) has no times and stays.
"""

import re

from data_beam.base.records import Document, Dropped
from data_beam.config.filters import FilterConfig
from data_beam.filters.views import excerpt

_TIME = r"\d{1,2}[:：]\d{2}(?:[:：]\d{2})?(?: ?[AaPp][Mm])?"
_DATE = r"(?:\d{4}[-/年.]\d{1,2}[-/月.]\d{1,2}日?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})"
_CHAT = re.compile(
    rf"\s*(?:[\[(【（](?:{_DATE}[ ,T]*)?{_TIME}[\])】）]\s*\S"  # [12:30] <ann> hello
    rf"|(?:{_DATE}[ ,T]+)?{_TIME}\s*[-–]?\s*[<\[]?[^\s:：>]{{1,30}}[>\]:：]"  # 12:30 ann: hello
    rf"|<[^\s<>/=]{{2,30}}> (?!.*</)\S"  # <ann> hello, and no markup
    rf"|\S{{1,30}} {{1,3}}(?:{_DATE} +)?{_TIME}\s*\Z"  # a head line: name and time
    r"|\*\*\* ?\S+ (?:has )?(?:joined|left|quit|is now known as)\b)")


class ChatLogFilter:
    """See the module."""

    stage = "chat_log"

    def __init__(self, config: FilterConfig):
        self._config = config.chat_log

    def __call__(self, document: Document) -> Document | Dropped:
        if document.is_code:
            return document
        lines = [line for line in document.text.split("\n") if line and not line.isspace()]
        if len(lines) < self._config.min_lines:
            return document
        chat = [line for line in lines if _CHAT.match(line[:200])]
        share = len(chat) / len(lines)
        if share <= self._config.max_chat_lines:
            return document
        return Dropped(document.origin, self.stage, "chat lines",
                       f"{share:.4g}, limit {self._config.max_chat_lines:g} {excerpt(chat[0])}")
