"""Prose of a Markdown document: its structure stays, what only a renderer needs goes."""

import re

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
# CommonMark ends a label after 999 characters; a search without an end takes a page's square.
_IMAGE = re.compile(r"!\[[^\]\n]{0,999}\](?:\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|\[[^\]\n]*\])")
_LINK = re.compile(r"\[([^\[\]\n]*)\](?:\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|\[[^\]\n]*\])")
_REFERENCE = re.compile(r" {0,3}\[(?!\^)[^\]\n]+\]:[ \t]*\S")
_ASIDE = re.compile("\0([0-9]+)\0")
_CODE_SPAN = re.compile(r"(?<!`)`++[^`\n]++`++")
_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9-]*(?:\s[^<>]*)?/?>")
_AUTOLINK = re.compile(r"<((?:https?|mailto):[^<>\s]+)>")


def _put_aside(spans: list[str], found: re.Match[str]) -> str:
    spans.append(found.group())
    return f"\0{len(spans) - 1}\0"


def _clean_line(line: str) -> str:
    # Code spans keep their brackets: they are put aside, a link around one is still a link.
    spans: list[str] = []
    line = _CODE_SPAN.sub(lambda found: _put_aside(spans, found), line.replace("\0", ""))
    line = _AUTOLINK.sub(r"\1", _LINK.sub(r"\1", _IMAGE.sub("", line)))
    return _ASIDE.sub(lambda found: spans[int(found.group(1))], _TAG.sub("", line))


def _without_comments(block: str) -> str:
    begin = block.find("<!--")
    if begin < 0:
        return block
    kept, end = [], 0
    while begin >= 0 and (close := block.find("-->", begin + 4)) >= 0:
        kept.append(block[end:begin])
        end = close + 3
        begin = block.find("<!--", end)
    return "".join(kept) + block[end:]


def _without_markup(block: str) -> str:
    kept = []
    for line in _without_comments(block).split("\n"):
        if _REFERENCE.match(line):
            continue
        cleaned = _clean_line(line)
        if cleaned.strip() or not line.strip():  # a line of nothing but badges goes whole.
            kept.append(cleaned)
    return "\n".join(kept)


def prose(document: str) -> str:
    """Markdown without front matter, comments, images, link targets and HTML tags.

    Headings, emphasis, lists, tables and code stay as written; fenced code is not touched.
    """
    document = _FRONT_MATTER.sub("", document.replace("\r\n", "\n"), count=1)
    result: list[str] = []
    block: list[str] = []
    fence = ""
    for line in document.split("\n"):
        found = _FENCE.match(line)
        if fence:
            result.append(line)
            if found and found.group(1).startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif found:
            if block:
                result.append(_without_markup("\n".join(block)))
                block.clear()
            fence = found.group(1)
            result.append(line)
        else:
            block.append(line)
    if block:
        result.append(_without_markup("\n".join(block)))
    return "\n".join(result)
