"""Changes the markup of a page before extraction, to keep text that an extractor would lose or
join.

A function that finds nothing to change returns the page itself, after one or two fast searches.
"""

import html
import itertools
import re
import unicodedata
from collections import Counter

from lxml.html import HtmlElement
from resiliparse.parse.html import DOMContext, DOMNode, HTMLTree, traverse_dom

from data_beam.clean import repairs
from data_beam.extract import html_names

_CLOSES = {
    "p": ("p",), "li": ("li", "p"), "dt": ("dt", "dd", "p"), "dd": ("dt", "dd", "p"),
    "td": ("td", "th", "p"), "th": ("td", "th", "p"), "tr": ("td", "th", "tr", "p"),
    "option": ("option",)}
"""By start tag: the open elements that it closes, because their end tag is optional. The start tag
of a block closes a `p`."""
_INLINE = frozenset((
    "a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "em", "font", "i", "kbd", "mark", "q",
    "s", "small", "span", "strike", "strong", "sub", "sup", "tt", "u", "var"))
# A comment, an element whose content is not markup, or a tag. If it is not closed, it reaches to
# the end of the page.
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|textarea|title|xmp|iframe|noembed|noframes)\b.*?(?:</\1|\Z)"
    r"|<(/?)([a-z][^\s/>]*)[^>]*+(?:>|\Z)", re.DOTALL | re.IGNORECASE)
_MAX_PARSED_DEPTH = 10_000  # takes 0.3 s; the parser's time grows with the square of the depth

# resiliparse does not separate these elements from the text before them.
_SET_APART = ("td", "th", "caption", "summary", "legend")
# A MathML formula has presentation markup, and may repeat it as TeX or content markup. TeX gives
# the best text of the three, presentation markup the second best.
_NOT_TEX = ('semantics:has(> annotation[encoding$="tex" i]) > :not(annotation)',
            'annotation:not([encoding$="tex" i])', "annotation-xml")
_MIN_LIST_DEPTH, _MAX_LIST_LINKS = 4, 0.6
_LOST_IN_CELLS = ("ul", "ol", "dl", "menu", "dir", "li", "dt", "dd", "center", "section", "article")
_JOINED_BLOCKS = ("div", "address", "details", "hgroup")

_REFERENCE = re.compile(r"&(?:#0*[0-9]{1,7}|#[xX]0*[0-9a-fA-F]{1,6}|[A-Za-z]{1,31});?")


def _may_be_deep(page: str, limit: int) -> bool:
    """False if no element can be deeper than `limit`. Only counts `<` and `</`, so it is fast."""
    level, step = 0, 4096
    for begin in range(0, len(page), step):
        tags = page.count("<", begin, begin + step)
        if level + tags > limit:
            return True
        level = max(0, level + tags - 2 * page.count("</", begin, begin + step))
    return False


def _parsed_depth(page: str) -> int:
    deepest = 0

    def enter(context: DOMContext) -> None:
        nonlocal deepest
        deepest = max(deepest, context.depth)

    body = HTMLTree.parse(page).body
    if body is not None:
        traverse_dom(body, enter, lambda context: None, DOMContext(), True)
    return deepest


def limit_depth(page: str, limit: int) -> str:
    """The page with elements at most `limit` deep.

    A page that an HTML parser finds deeper is flattened: beyond the limit, each tag of a block is
    replaced by the start of a paragraph, and tags of inline elements are removed. No text is lost.
    """
    if not _may_be_deep(page, limit):
        return page
    pieces: list[str] = []
    open_elements: list[str] = []
    count: Counter[str] = Counter()
    end = deepest = 0

    def close() -> str:
        closed = open_elements.pop()
        count[closed] -= 1
        return closed

    for match in _TOKEN.finditer(page):
        name = (match[3] or "").lower()
        if not name or name in html_names.VOID:
            continue
        if match[2]:
            while count[name] and close() != name:
                pass
            level = len(open_elements) + 1
        else:
            closes = _CLOSES.get(name, () if name in _INLINE else ("p",))
            while open_elements and open_elements[-1] in closes:
                close()
            open_elements.append(name)
            count[name] += 1
            level = len(open_elements)
            deepest = max(deepest, level)
        if level > limit:
            pieces += page[end:match.start()], "" if name in _INLINE else "<p>"
            end = match.end()
    if deepest <= limit or (deepest <= _MAX_PARSED_DEPTH and _parsed_depth(page) <= limit):
        return page
    return "".join((*pieces, page[end:]))


def duplicate_math(tree: HTMLTree) -> list[str]:
    """CSS selectors for elements that repeat a formula of the page in another notation."""
    document = tree.document
    return [*(_NOT_TEX if len(document.get_elements_by_tag_name("annotation"))
              or len(document.get_elements_by_tag_name("annotation-xml")) else ()),
            *((".katex-html",) if len(document.get_elements_by_class_name("katex-html")) else ())]


def _ancestors_to_body(node: DOMNode, most: int) -> int | None:
    """Depth of a node below the body; None if it is `most` or more, or if the node is outside."""
    parent = node.parent
    for depth in range(1, most):
        if parent is None or parent.tag == "body":
            return None if parent is None else depth
        parent = parent.parent
    return None


def _is_menu(element: DOMNode) -> bool:
    """Whether a list is clearly a menu, estimated from its first eight links. resiliparse removes
    deep lists with 0.2 of their bytes in links, but takes longer to decide."""
    links = element.get_elements_by_tag_name("a")
    if len(links) == 0:
        return False
    first = [len(link.text) for link in itertools.islice(links, 8)]
    return sum(first) / len(first) * len(links) > _MAX_LIST_LINKS * len(element.text)


def prepare_for_resiliparse(tree: HTMLTree) -> None:
    """Changes a page so that resiliparse separates table cells and keeps lists.

    Cells, captions, summaries and legends get a space before them. The elements `menu` and `dir`
    become `ul`. resiliparse treats every `ul` less than 4 elements below the body as a menu, and
    judges deeper lists by their links. So shallow lists with few links are wrapped in `div`s.
    """
    document = tree.document
    for name in _SET_APART:
        for element in document.get_elements_by_tag_name(name):
            element.parent.insert_before(tree.create_text_node(" "), element)
    for element in document.get_elements_by_tag_name("summary"):
        element.append_child(tree.create_text_node(" "))
    # Empty lists are not changed: resiliparse indents all text after an empty `ul`.
    for name in ("menu", "dir"):
        for element in document.get_elements_by_tag_name(name):
            if element.first_child is not None:
                renamed = tree.create_element("ul")
                element.parent.replace_child(renamed, element)
                while element.first_child is not None:
                    renamed.append_child(element.first_child)
    for element in document.get_elements_by_tag_name("ul"):
        depth = _ancestors_to_body(element, _MIN_LIST_DEPTH) if element.first_child else None
        if depth is None or _is_menu(element):
            continue
        for _ in range(depth, _MIN_LIST_DEPTH):
            wrapper = tree.create_element("div")
            element.parent.replace_child(wrapper, element)
            wrapper.append_child(element)


def prepare_for_trafilatura(tree: HtmlElement) -> None:
    """Changes a page so that trafilatura keeps lists and sections in table cells, and does not join
    a block to text directly beside it. The tree is lxml's, not resiliparse's."""
    for cell in tree.iter("td", "th"):
        for element in cell.iter(*_LOST_IN_CELLS):
            element.tag = "div"
    for element in tree.iter("menu", "dir"):
        element.tag = "ul"
    for element in tree.find_class("katex-html"):
        element.drop_tree()
    for math in list(tree.iter("math")):
        _replace_math(math)
    for element in tree.iter(*_JOINED_BLOCKS):
        before, parent = element.getprevious(), element.getparent()
        if before is not None:
            before.tail = _spaced(before.tail, at_end=True)
        elif parent is not None:
            parent.text = _spaced(parent.text, at_end=True)
        if element.tail:
            element.tail = _spaced(element.tail, at_end=False)
        elif element.getnext() is not None and (element.text or len(element)):
            element.tail = " "


def _spaced(text: str | None, at_end: bool) -> str | None:
    """The text with white space at one end; an empty text is not changed."""
    if not text or text[-1 if at_end else 0].isspace():
        return text
    return f"{text} " if at_end else f" {text}"


def _replace_math(math: HtmlElement) -> None:
    """Replaces a formula by its TeX in trafilatura's notation, or by its presentation if it has no
    TeX. trafilatura drops formulas without TeX, and repeats some formulas on pages with little
    text."""
    tex = [annotation.text for annotation in math.iter("annotation")
           if (annotation.get("encoding") or "").lower().endswith("tex")] + [math.get("alttext")]
    for annotation in list(math.iter("annotation", "annotation-xml")):
        annotation.drop_tree()
    text, tail = " ".join((next(filter(None, tex), None) or "").split()), math.tail
    if text:
        text = f"\\[{text}\\]" if math.get("display") == "block" else f"\\({text}\\)"
    else:
        text = math.text_content()
    math.clear()
    math.tag, math.text, math.tail = "span", text, tail


def _combining_mark(match: re.Match[str]) -> str:
    character = html.unescape(match[0])
    return character if len(character) == 1 and unicodedata.combining(character) else match[0]


def _carries_mark(character: str) -> bool:
    """Whether a combining mark after this character still follows it in the extracted text. False
    for the end of a tag or reference, white space, and characters that extractors remove."""
    return character not in ">;" and character.isprintable() and not character.isspace()


def bound_mark_runs(page: str) -> str:
    """Changes a page so that its text has no run of more than 30 combining marks, whichever tags an
    extractor removes.

    Longer runs are divided by U+034F as in `repairs.stream_safe`. Marks without a base character,
    as in `<b>&#769;</b><b>&#769;</b>`, get a U+034F too.
    """
    if "&" in page:
        page = _REFERENCE.sub(_combining_mark, page)
    if page.isascii():
        return page
    marks = repairs.combining_mark_indices(page)
    page = repairs.insert_joiners(page, (
        index for index in marks if not (index and _carries_mark(page[index - 1]))))
    return repairs.stream_safe(page)
