"""E-mail addresses, also between Han characters, in full-width forms, and as `a [at] b.org`."""

import re
from collections.abc import Iterator

from data_beam.base import word_lists
from data_beam.privacy.spans import Span

_LOCAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._%+-")
_MAX_LOCAL = 64
_DOMAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9.\-]{1,252}")
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}[A-Za-z0-9])?\Z")
_LAST_LABEL = re.compile(r"(xn--[A-Za-z0-9\-]{2,59}|[A-Za-z]{2,18}(?!--))(?:-.*)?\Z")
# A domain with non-ASCII letters (RFC 5890), under a top-level domain that registers such names.
_INTERNATIONAL = re.compile(
    r"(?=[A-Za-z0-9.\-]{0,200}[^\W\x00-\x7f])(?:[^\W_](?:[^\W_]|-){0,62}\.){1,4}?"
    r"(?:(?:com|org|net|cn|hk|tw|jp|kr|de|at|ch|fr|se|es|pl|eu)(?![A-Za-z0-9_(\-])(?!\.(?:cn|hk|tw)(?![A-Za-z0-9]))"
    r"|中国|中國|公司|网络|網絡|香港|台湾|台灣|在线|中文网|集团)", re.IGNORECASE)

# Every two-letter label counts as a country code. Of the longer ones only those in wide use are
# listed, so that file names and attributes (`a@x.png`, `x@self.weight`) do not count as addresses.
_TOP_LEVEL = frozenset(word_lists.read("data_beam.privacy", "top_level_domains.txt")["in wide use"])
_COMMON = frozenset(("com", "org", "net", "edu", "gov", "cn"))

# Replacements for the @ that hide an address from programs.
_BRACKETED_AT = re.compile(r"[\[({<] ?(?:at|AT|At) ?[\])}>]")
_SPELLED = re.compile(
    r" ?([A-Za-z0-9\-]{1,63}(?:(?:\.| ?[\[({<] ?(?:dot|DOT|Dot) ?[\])}>] ?| (?:dot|DOT) )"
    r"[A-Za-z0-9\-]{1,63}){1,5})")
_DOT = re.compile(r" ?[\[({<]? ?(?:dot|DOT|Dot) ?[\])}>]? ?")
_WORD_DOT = re.compile(r" (?:at|AT) ([A-Za-z0-9\-]{1,63}(?: (?:dot|DOT) [A-Za-z0-9\-]{1,63}){1,5})")

_VERSION_CONTROL_ACCOUNTS = frozenset(("git", "svn", "hg"))  # `git@github.com:a/b.git` is no person


def _local_start(text: str, end: int) -> int | None:
    """Start of the local part that ends at `end`, or None if there is no valid one."""
    start = end
    while start and text[start - 1] in _LOCAL:
        start -= 1
        if end - start > _MAX_LOCAL:
            return None
    dots = text.rfind("..", start, end)
    if dots >= 0:
        start = dots + 2
    while start < end and text[start] in ".-%+":
        start += 1
    if start == end or text[end - 1] == "." or text[start:end] in _VERSION_CONTROL_ACCOUNTS:
        return None
    return start


def _domain_end(text: str, start: int) -> int | None:
    """End of the longest valid domain in ASCII that starts at `start`, or None."""
    match = _DOMAIN.match(text, start)
    if not match:
        return None
    labels = match[0].split(".")
    end = match.end()
    for count in range(len(labels) - 1, 0, -1):
        last = _LAST_LABEL.match(labels[count])
        if last and _is_top_level(last[1]) and all(map(_LABEL.match, labels[:count])):
            stop = end - len(labels[count]) + len(last[1])
            # `x@self.to(device)` is Python code.
            if text[stop:stop + 1] == "(" and last[1].lower() not in _COMMON:
                return None
            return None if text[stop:stop + 1] == "_" else stop
        end -= len(labels[count]) + 1
    return None


def _is_top_level(label: str) -> bool:
    return len(label) == 2 or label.lower() in _TOP_LEVEL or label.startswith("xn--")


def emails(text: str) -> Iterator[Span]:
    """E-mail addresses in a text: `local@domain` with a local part of 1 to 64 characters and a
    known top-level domain, also with an internationalised domain (`li@例子.com`); `local [at]
    domain` with any kind of brackets; `local at domain dot com`."""
    at = text.find("@")
    while at >= 0:
        start = _local_start(text, at)
        if start is not None:
            end = _domain_end(text, at + 1)
            if end is None and (international := _INTERNATIONAL.match(text, at + 1)):
                end = international.end()
            if end is not None:
                yield Span(start, end, "email")
        at = text.find("@", at + 1)
    for match in _BRACKETED_AT.finditer(text):
        before = match.start() - (text[match.start() - 1:match.start()] == " ")
        domain = _SPELLED.match(text, match.end())
        start = _local_start(text, before)
        if domain and start is not None and _is_top_level(_DOT.sub(".", domain[1]).split(".")[-1]):
            yield Span(start, domain.end(), "email")
    if " dot " in text or " DOT " in text:
        for match in _WORD_DOT.finditer(text):
            start = _local_start(text, match.start())
            if start is not None and _DOT.split(match[1])[-1].lower() in _COMMON:
                yield Span(start, match.end(), "email")
