"""Class and id names for which elements are left out, and the elements that are kept all the same.

A name may also be the topic of a text: Sphinx calls the section of a page titled "Pagination"
`pagination`. So an element that holds most of the text of its page loses such names before the
page is extracted.
"""

import dataclasses
import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from data_beam.base import word_lists
from data_beam.config import ExtractConfig

_LISTS = word_lists.read("data_beam.extract", "html_names.txt")
_COMMENTS = frozenset(_LISTS["comments"])
_NAMES = _COMMENTS.union(_LISTS["advertisements"])
# Begins with a literal character and looks back, because the search for a literal is fast.
_NAMED = re.compile(
    r"""=(?:(?<=\s(?:class|CLASS|Class)=)|(?<=\s(?:id|ID|Id)=))["']?([^"'<>]+)""")

_BOILERPLATE_TOKENS = frozenset(_LISTS["boilerplate tokens"])
_PARTS = re.compile(r"[^\W_]+")

MOST = 2 / 3  # of the text outside links: such an element is never left out for its name

# Bounds on the time that hostile pages take: the length of a start tag up to its names, the number
# of names (each element is compared with each), and how often the length of the page is read where
# elements with such names contain each other.
_TAG_CHARACTERS = 2000
_NAMES_OF_A_PAGE = 100
_LOOKS = 10

VOID = frozenset((
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr"))  # no end tag (HTML Living Standard, 13.1.2)
# Never left out: they hold the whole page, or nothing.
_NEVER_LEFT_OUT = VOID | {"html", "body"}
_TAG = re.compile(r"<([A-Za-z][A-Za-z0-9]*)\b")
_HIDDEN = re.compile(r"(?i)\b(?:hidden|invisible|display-none)\b")
_LINK_OR_TAG = re.compile(r"<(?:[aA]\b[^<]*</[aA]>|[^<>]*>)")
_COMMENT = re.compile(r"(?i)comment|disqus|pinglun|liuyan|\bpl-list|评论|留言")
_H1 = re.compile(r"(?i)<h1\b")
# What has an id to be linked to: a heading, or a section that begins with one.
_ID = re.compile(r"""(?:id|ID)=["']?([^"'<>\s]+)""")
_ANCHOR = re.compile(
    r"""(<(?:h[1-6]|section|div)\b[^<>]*?\s)id=["']?([^"'<>\s]+)["']?"""
    r"""([^<>]*>(?:\s*<span\b[^<>]*></span>)*\s*(<h[1-6]\b[^<>]*>)?)""", re.IGNORECASE)
_IS_HEADING = re.compile(r"<[hH][1-6]")
_HEADING_CHARACTERS = 1000
_CLASS = re.compile(r"""(?i)\sclass=["']?([^"'<>]*)""")
_SECTION_CLASSES = frozenset(("section", *(f"level{level}" for level in range(1, 7))))


def values(page: str) -> set[str]:
    """What stands in `class` and `id` of the page's elements."""
    return set(_NAMED.findall(page))


@functools.lru_cache(1 << 16)
def _known(value: str) -> tuple[tuple[str, bool], ...]:
    """The names of a value that are in the lists above, and whether they are comments'."""
    return tuple((name, name.lower() in _COMMENTS) for name in value.split()
                 if name.lower() in _NAMES)


def known(values: Iterable[str], config: ExtractConfig) -> list[str]:
    """The names among the values for which the config leaves elements out, as the page writes them,
    those in lower case first; at most 100, to bound the time spent on hostile pages."""
    found = {name for value in values for name, is_comment in _known(value)
             if (not config.comments if is_comment else config.advertisement_elements)}
    return sorted(found, key=lambda name: (not name.islower(), name))[:_NAMES_OF_A_PAGE]


@functools.lru_cache(1 << 16)
def without_boilerplate_tokens(value: str) -> str | None:
    """The value of a class or id without the names for which an extractor may leave out an element;
    None if it has no such name."""
    if _HIDDEN.search(value):
        return None
    names = value.split()
    kept = [name for name in names if name.lower() not in _NAMES
            and _BOILERPLATE_TOKENS.isdisjoint(_PARTS.findall(name.lower()))]
    return None if len(kept) == len(names) else " ".join(kept)


def _is_of_a_heading(page: str, match: re.Match[str], name: str) -> bool:
    """Whether the id that `_ANCHOR` found is the address of a heading."""
    if _IS_HEADING.match(match[1]):
        return True
    if match[4] is None:
        return False
    end = page.find("</h", match.end(), match.end() + _HEADING_CHARACTERS)
    heading = page[match.end():end] if end >= 0 else ""
    if f'href="#{name}"' in heading:  # the paragraph sign of documentation
        return True
    classes = {one for value in _CLASS.findall(match[1] + match[3]) for one in value.split()}
    words = _PARTS.findall(_LINK_OR_TAG.sub("", heading).lower())
    return classes <= _SECTION_CLASSES and words == _PARTS.findall(name.lower()) \
        and not _COMMENT.search(name)


def _ids(page: str) -> Iterator[re.Match[str]]:
    for word in ("id=", "ID="):
        place = page.find(word)
        while place >= 0:
            found = _ID.match(page, place)
            if found:
                yield found
            place = page.find(word, place + len(word))


def without_anchors(page: str, tokens: Mapping[str, str]) -> str:
    """The page without ids that are addresses of headings, `<h2 id="footer">`: those name a topic.

    So do ids of sections whose heading links to itself (Sphinx), or has the id for words (docutils,
    pandoc), except for a section of comments with the heading Comments. Only ids in `tokens`, for
    which elements may be left out, are removed.
    """
    if not tokens:
        return page
    attributes = []
    for found in _ids(page):
        name = found[1]
        if name not in tokens:
            continue
        begin = page.rfind("<", max(0, found.start() - _TAG_CHARACTERS), found.start())
        match = _ANCHOR.match(page, begin) if begin >= 0 else None
        if match and match.start(2) == found.start(1) and _is_of_a_heading(page, match, name):
            attributes.append((match.end(1), match.start(3)))
    begins, ends = zip(*sorted(attributes), strict=True) if attributes else ((), ())
    return "".join(page[begin:end] for begin, end in zip((0, *ends), (*begins, len(page)),
                                                         strict=True))


def _end(page: str, tag: str, begin: int) -> int:
    """Index of the end tag of the element whose start tag ends at `begin`, or the page's length."""
    level = 1
    for match in re.compile(rf"<(/?){tag}\b", re.IGNORECASE).finditer(page, begin):
        level += -1 if match.group(1) else 1
        if level == 0:
            return match.start()
    return len(page)


@dataclasses.dataclass(frozen=True)
class Named:
    """An element with a name for which it may be left out; places are indices of the page."""

    value: tuple[int, int]  # begin and end of its class or id
    shorter: str  # the value without such names
    inside: tuple[int, int]  # begin and end of what the element holds


def large(page: str, tokens: Mapping[str, str], least: int) -> list[Named]:
    """Elements with more than `least` characters of text outside links, spaces not counted, that
    may be left out for their names: `tokens` has the values of `class` and `id` for which elements
    may be, and what is left of them without such names.

    A comment section counts only if it has a heading of the first level (a page about comments).
    """
    found, looked_at = [], 0
    for match in _NAMED.finditer(page, 0, max(0, len(page) - least)) if tokens else ():
        shorter = tokens.get(match.group(1))
        if shorter is None:
            continue
        begin, end = match.span(1)
        at = page.rfind("<", max(0, begin - _TAG_CHARACTERS), begin)
        tag = _TAG.match(page, max(at, 0))
        inside = page.find(">", end) + 1
        if tag is None or inside == 0 or tag.group(1).lower() in _NEVER_LEFT_OUT:
            continue
        after = _end(page, tag.group(1), inside)
        looked_at += after - inside
        if looked_at > _LOOKS * len(page):
            break
        is_large = after - inside > least and sum(
            map(len, _LINK_OR_TAG.sub("", page[inside:after]).split())) > least
        if is_large and (_H1.search(page, inside, after) or not _COMMENT.search(match.group(1))):
            found.append(Named((begin, end), shorter, (inside, after)))
    return found


def without_names(page: str, elements: Sequence[Named]) -> str:
    """The page without the names of the elements, which come in the order of the page."""
    for element in reversed(elements):
        begin, end = element.value
        page = page[:begin] + element.shorter + page[end:]
    return page
