"""Text of documentation: Markdown, docstrings of Python source, descriptions of Python packages."""

import ast
import email
import email.policy
import inspect
import itertools
import re
import textwrap
import warnings

from data_beam.clean.repairs import stream_safe
from data_beam.extract.errors import ExtractionError

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
# CommonMark ends a label after 999 characters; without a limit the time grows with the square.
_IMAGE = re.compile(r"!\[[^\]\n]{0,999}\](?:\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|\[[^\]\n]*\])")
_LINK = re.compile(r"\[([^\[\]\n]*)\](?:\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|\[[^\]\n]*\])")
_REFERENCE = re.compile(r" {0,3}\[(?!\^)[^\]\n]+\]:[ \t]*\S")
_PLACEHOLDER = re.compile("\0([0-9]+)\0")
_CODE_SPAN = re.compile(r"(?<!`)`++[^`\n]++`++")
_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9-]*(?:\s[^<>]*)?/?>")
_AUTOLINK = re.compile(r"<((?:https?|mailto):[^<>\s]+)>")
_COMMENT = re.compile("<!--.*?-->", re.DOTALL)


def _clean_line(line: str) -> str:
    # Code spans are replaced by placeholders, so that their brackets are no links.
    line = line.replace("\0", "")
    spans, numbers = _CODE_SPAN.findall(line), itertools.count()
    line = _CODE_SPAN.sub(lambda found: f"\0{next(numbers)}\0", line)
    line = _AUTOLINK.sub(r"\1", _LINK.sub(r"\1", _IMAGE.sub("", line)))
    return _PLACEHOLDER.sub(lambda found: spans[int(found.group(1))], _TAG.sub("", line))


def _remove_markup(block: str) -> str:
    # Behind the last end, each beginning of a comment would be searched to the end of the block.
    head, end, tail = block.rpartition("-->")
    kept = []
    for line in (_COMMENT.sub("", head + end) + tail).split("\n"):
        if _REFERENCE.match(line):
            continue
        cleaned = _clean_line(line)
        if cleaned.strip() or not line.strip():  # a line of badges only is removed
            kept.append(cleaned)
    return "\n".join(kept)


def markdown_prose(document: str) -> str:
    """Markdown without front matter, comments, images, link targets and HTML tags.

    Headings, emphasis, lists, tables and code stay as written; fenced code does not change.
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
                result.append(_remove_markup("\n".join(block)))
                block.clear()
            fence = found.group(1)
            result.append(line)
        else:
            block.append(line)
    if block:
        result.append(_remove_markup("\n".join(block)))
    return "\n".join(result)


def _entries(node: ast.Module | ast.ClassDef, scope: str) -> list[str]:
    found = []
    for child in node.body:
        if not isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) \
                or child.name.startswith("_"):
            continue
        name = f"{scope}{child.name}"
        is_class = isinstance(child, ast.ClassDef)
        if text := ast.get_docstring(child):
            heading = f"class {name}" if is_class else f"{name}({ast.unparse(child.args)})"
            found.append(f"{heading}\n\n{text.strip()}")
        if is_class:
            found.extend(_entries(child, f"{name}."))
    return found


def docstrings(source: str) -> str:
    """The module's docstring, then each public class and function: its signature and docstring.

    The syntax tree is read; nothing is executed. Raises ExtractionError if this Python cannot parse
    the file.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in other people's strings
            tree = ast.parse(stream_safe(source))  # which normalises names
        module = ast.get_docstring(tree)
        entries = _entries(tree, "")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExtractionError("invalid Python", f"{type(error).__name__}: {error}") from None
    return "\n\n\n".join(([inspect.cleandoc(module).strip()] if module else []) + entries)


def package_description(metadata: str) -> str:
    """The long description in a METADATA file; of Markdown its prose. Both places of the core
    metadata specification count: the message's body, and the older `Description` header. Raises
    ExtractionError if the file has no `Metadata-Version` header."""
    message = email.message_from_string(metadata.replace("\r\n", "\n"),
                                        policy=email.policy.compat32)
    if "Metadata-Version" not in message:
        raise ExtractionError("no package metadata", "there is no Metadata-Version header")
    body = message.get_payload()
    text = body if isinstance(body, str) and body.strip() else ""
    if not text and message["Description"]:
        first, _, rest = str(message["Description"]).partition("\n")
        text = first + "\n" + textwrap.dedent(rest)
    content_type = str(message.get("Description-Content-Type", "")).lower()
    return markdown_prose(text) if content_type.startswith("text/markdown") else text
