"""Prose of a Markdown document: its structure stays, what only a renderer needs goes."""

import re

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_IMAGE = re.compile(r"!\[[^\]\n]*\](?:\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|\[[^\]\n]*\])")
_LINK = re.compile(r"\[([^\[\]\n]*)\](?:\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|\[[^\]\n]*\])")
_REFERENCE = re.compile(r"^ {0,3}\[(?!\^)[^\]\n]+\]:[ \t]*\S+.*$\n?", re.MULTILINE)
_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9-]*(?:\s[^<>]*)?/?>")
_AUTOLINK = re.compile(r"<((?:https?|mailto):[^<>\s]+)>")


def _without_markup(block: str) -> str:
    block = _COMMENT.sub("", block)
    block = _IMAGE.sub("", block)
    block = _LINK.sub(r"\1", block)
    block = _REFERENCE.sub("", block)
    block = _AUTOLINK.sub(r"\1", block)
    kept = []
    for line in block.split("\n"):
        # Code spans keep their < and >: split them out, clean what lies between.
        parts = re.split(r"(`+[^`\n]+`+)", line)
        parts[::2] = [_TAG.sub("", part) for part in parts[::2]]
        cleaned = "".join(parts)
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
            result.append(_without_markup("\n".join(block)))
            block.clear()
            fence = found.group(1)
            result.append(line)
        else:
            block.append(line)
    if block:
        result.append(_without_markup("\n".join(block)))
    return "\n".join(result)
