"""Changes to a page before its text is extracted, so that no text is lost, joined or doubled."""

import re

from resiliparse.parse.html import HTMLTree, NodeType

MAX_DEPTH = 512
"""Blink (Chromium) opens no element deeper than this; resiliparse's time grows with its square."""
DUPLICATE_MATH = ("katex-html", "MathJax_Preview")
"""Classes of elements that repeat the formula beside them for the eye."""

# Between two cells, or text and a cell, without white space: browsers set cells apart by a border.
_CELL = re.compile(r"(?<!\s)(?=<[tT][dDhH][\s>/])")
_ANNOTATION = re.compile(r"<annotation(-xml)?[\s>]", re.IGNORECASE)
_ANNOTATION_END = re.compile(r"</annotation(?:-xml)?\s*>", re.IGNORECASE)
_MAX_PARSED_DEPTH = 8_000
"""Parsing takes time that grows with the square of the depth: 0.24 s for 8,000. A deeper page keeps
its text and loses all elements."""
_CODE = re.compile(r"<!--|<(script|style)\b", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_TAGS = re.compile(r"(?:<[^<>]*>\s*)+")
_MATH = re.compile(r"<math[\s>]", re.IGNORECASE)
_MATH_END = re.compile(r"</math\s*>", re.IGNORECASE)
_NO_TEXT = frozenset(("script", "style", "template", "noscript", "svg"))


def _possible_depth(page: str) -> int:
    """At least the depth of the page's elements, at the cost of counting every `<` of a page in
    steps of 4,096 characters; more than the depth for void elements, scripts and comments."""
    level = most = 0
    step = 4096
    for begin in range(0, len(page), step):
        tags = page.count("<", begin, begin + step)
        most = max(most, level + tags)
        level = max(0, level + tags - 2 * page.count("</", begin, begin + step))
    return most


def flattened(page: str) -> str:
    """The page with no elements nested deeper than `MAX_DEPTH`, as a parser finds them: an element
    at that depth keeps its text, a line for each piece, and loses its elements. `<` in scripts,
    comments and style sheets does not count."""
    possible = _possible_depth(page)
    if possible > _MAX_PARSED_DEPTH:
        page = _without_code(page)
        if _possible_depth(page) > _MAX_PARSED_DEPTH:
            return _TAGS.sub("<br>", page)
    if possible <= MAX_DEPTH:
        return page
    tree = HTMLTree.parse(page)
    node, depth, changed = tree.document, 0, False
    while node is not None:
        if depth >= MAX_DEPTH and node.type == NodeType.ELEMENT and node.first_child is not None:
            node.text = "\n".join(_texts(node))
            changed = True
        elif node.first_child is not None:
            node, depth = node.first_child, depth + 1
            continue
        while node is not None and node.next is None:
            node, depth = node.parent, depth - 1
        if node is not None:
            node = node.next
    return str(tree) if changed else page


def _without_code(page: str) -> str:
    """The page without comments, scripts and style sheets."""
    parts, position = [], 0
    low = page.lower()
    if len(low) != len(page):  # İ has two characters in lower case
        low = page
    while start := _CODE.search(page, position):
        end = "-->" if start[1] is None else f"</{start[1].lower()}"
        parts.append(page[position:start.start()])
        at = low.find(end, start.end())
        position = len(page) if at < 0 else at + (3 if start[1] is None else 0)
    return "".join([*parts, page[position:]])


def _texts(top: object) -> list[str]:
    """The pieces of visible text below a node, in order. Without recursion: there may be a hundred
    thousand levels."""
    pieces, node = [], top.first_child  # type: ignore[attr-defined]
    level = 1
    while level > 0:
        if node.type == NodeType.TEXT and (piece := node.text.strip()):
            pieces.append(piece)
        if node.first_child is not None and node.tag not in _NO_TEXT:
            node, level = node.first_child, level + 1
            continue
        while level > 0 and node.next is None:
            node, level = node.parent, level - 1
        if level > 0:
            node = node.next
    return pieces


def with_parted_cells(page: str) -> str:
    """The page with white space before each table cell."""
    return _CELL.sub(" ", page) if "<td" in page or "<th" in page or "<T" in page else page


def without_annotations(page: str) -> str:
    """The page without the annotations of MathML formulas, which say the formula again in another
    notation (MathML Core, section 6)."""
    parts, position = [], 0
    while start := _ANNOTATION.search(page, position):
        end = _ANNOTATION_END.search(page, start.end())
        if end is None:
            break
        parts.append(page[position:start.start()])
        position = end.end()
    return "".join([*parts, page[position:]]) if parts else page


def with_math_as_text(page: str) -> str:
    """The page with the text of its MathML formulas in their place: trafilatura drops elements that
    it does not know."""
    parts, position = [], 0
    while start := _MATH.search(page, position):
        end = _MATH_END.search(page, start.end())
        if end is None:
            break
        parts += [page[position:start.start()], _TAG.sub("", page[start.start():end.start()])]
        position = end.end()
    return "".join([*parts, page[position:]]) if parts else page
