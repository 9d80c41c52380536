"""Main text of an HTML page."""

import functools
import logging
import re
from collections.abc import Iterable, Sequence

from resiliparse.extract.html2text import extract_plain_text

from data_beam.config import ExtractConfig
from data_beam.extract import boilerplate, html_names, html_tree, marked_up_marks
from data_beam.extract.errors import ExtractionError

# Noncharacters of Unicode stand around the text of links on its way through the extractor.
_BEGIN, _END = "\ufdd0", "\ufdd1"
_MARKS = re.compile(f"[{_BEGIN}{_END}]")
# Links that begin with a word: resiliparse knows what to do with those that are signs (¶, [1]).
_LINK = re.compile(r"(<a [^<>]*>(?:<[^/<>][^<>]*>)?)(\w[^<]*(?<!\s))")
_LINK_IN_CAPITALS = re.compile(_LINK.pattern, re.IGNORECASE)  # a search without a literal is slow
_LINKED = re.compile(f"{_BEGIN}([^{_END}]+)")
_BLOCK_END = re.compile(r"\n(?:[ \t]*\n)+")

# A quarter of a millisecond each, in trafilatura.
MAX_TRAFILATURA_TAGS = 100_000
logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # a line for each page without text


def _with_marks(page: str) -> str:
    if _BEGIN in page or _END in page:
        page = _MARKS.sub("", page)
    # Half the time of a substitution with references to groups, in Python 3.11.
    parts = (_LINK_IN_CAPITALS if "<A " in page else _LINK).split(page)
    parts[2::3] = [f"{_BEGIN}{text}{_END}" for text in parts[2::3]]
    return "".join(parts)


def _visible(text: str) -> int:
    return sum(map(len, text.split()))


def _without_menus(text: str, max_density: float, min_links: int) -> tuple[str, bool]:
    """The text without marks and without blocks that are mostly links; whether there were such.

    Link density as in Kohlschütter et al. 2010 (Boilerplate detection using shallow text features),
    who cut at a third for any block: single links and prose with many links stay here.
    """
    kept, found = [], False
    if text.count(_BEGIN) >= min_links:
        for block in _BLOCK_END.split(text):
            if block.count(_BEGIN) >= min_links:
                linked = sum(map(_visible, _LINKED.findall(block)))
                if linked > max_density * _visible(_MARKS.sub("", block)):
                    found = True
                    continue
            kept.append(block)
    return _MARKS.sub("", "\n\n".join(kept) if found else text), found


def all_text(page: str, skip: Sequence[str] = ()) -> str:
    """All visible text of a page but for the elements that CSS selectors in `skip` name.

    Blocks, lists and preformatted text keep their line breaks.
    """
    page = html_tree.with_parted_cells(html_tree.without_annotations(html_tree.flattened(page)))
    return extract_plain_text(page, preserve_formatting=True, main_content=False,
                              list_bullets=True, alt_texts=False, links=False, form_fields=False,
                              noscript=False, skip_elements=list(skip) or None)


def _prose(page: str) -> int:
    """Visible characters of a page outside links, menus and forms."""
    return _visible(all_text(page, ("a", "nav", "button", "select")))


def _resiliparse(page: str, config: ExtractConfig,
                 names: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    weigh = config.max_link_density < 1
    text = extract_plain_text(
        _with_marks(page) if weigh else page, preserve_formatting=True, main_content=True,
        list_bullets=True, alt_texts=False, links=False, form_fields=False, noscript=False,
        comments=config.comments,
        skip_elements=[f"{mark}{name}" for name in names for mark in ".#"] or None)
    if not weigh:
        return text, ("extract:html",)
    text, found = _without_menus(text, config.max_link_density, config.min_block_links)
    return text, ("extract:html", "link_blocks") if found else ("extract:html",)


def _trafilatura(page: str, config: ExtractConfig,
                 names: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    import trafilatura  # only who chose it pays for its import

    tags = page.count("<")
    if tags > MAX_TRAFILATURA_TAGS:
        raise ExtractionError("too many tags", f"{tags}, more than {MAX_TRAFILATURA_TAGS}")
    skip = "//*[" + " or ".join(
        f"contains(concat(' ', normalize-space(@{attribute}), ' '), ' {name} ')"
        for attribute in ("class", "id") for name in names) + "]"
    try:
        text = trafilatura.extract(
            _without_lists_in_cells(marked_up_marks.apart(page)), output_format="txt",
            include_comments=config.comments, include_tables=True, deduplicate=False,
            with_metadata=False, prune_xpath=[skip] if names else None)
    except (ValueError, RecursionError, AssertionError) as error:
        raise ExtractionError("trafilatura failed", f"{type(error).__name__}: {error}") from error
    return text or "", ("extract:html/trafilatura",)


_LIST_TAG = re.compile(r"<(/?)(?:ul|ol|dl|li|dt|dd)\b[^<>]*>", re.IGNORECASE)
_CELL_TAG = re.compile(r"<(/?)t[dhr]\b[^<>]*>", re.IGNORECASE)


def _without_lists_in_cells(page: str) -> str:
    """The page with the items of lists in table cells as text between spaces: trafilatura 2 loses
    lists in cells."""
    tags = list(_CELL_TAG.finditer(page))
    parts, position = [], 0
    ends = [*(tag.start() for tag in tags[1:]), len(page)]
    for tag, end in zip(tags, ends, strict=False):  # without tags there is one end more
        if tag[1] or tag[0][2] in "rR":
            continue
        parts += [page[position:tag.end()], _LIST_TAG.sub(" ", page[tag.end():end])]
        position = end
    return "".join([*parts, page[position:]]) if parts else page


@functools.lru_cache(1 << 16)
def _resiliparse_leaves_out(value: str, comments: bool) -> bool:
    """Whether resiliparse leaves out a block in the depth of a page for its class or id: asked of
    itself, since in `flex-box` it does not mind what it minds in `search-box`. 20 us."""
    value = value.replace('"', "")
    page = (f'<div><div><div><div class="{value}"><p>a</p></div>'
            f'<div id="{value}"><p>b</p></div></div></div></div>')
    return extract_plain_text(page, main_content=True, comments=comments).split() != ["a", "b"]


def _known(values: Iterable[str], config: ExtractConfig) -> list[str]:
    values = set(values)
    return [*html_names.known(values, config.advertisement_elements, not config.comments),
            *(name for name in html_tree.DUPLICATE_MATH
              if any(name in value.split() for value in values))]


def _telling(values: set[str], config: ExtractConfig) -> dict[str, str]:
    """The values of `class` and `id` for which elements may be left out, and what is left of them
    without such names."""
    return {value: shorter for value in values
            if (shorter := html_names.without_telling(value)) is not None
            and (config.html != "resiliparse" or _resiliparse_leaves_out(value, config.comments)
                 or _known([value], config))}


def _main_text(page: str, config: ExtractConfig) -> tuple[str, tuple[str, ...]]:
    """Extracts, and once more where an element with most of the text was left out for its name."""
    def extract(page: str, values: set[str]) -> tuple[str, tuple[str, ...]]:
        extractor = _resiliparse if config.html == "resiliparse" else _trafilatura
        return extractor(page, config, _known(values, config))

    def without_names(elements: Sequence[html_names.Named]) -> tuple[str, tuple[str, ...]]:
        plain = html_names.without_names(page, elements)
        return extract(plain, html_names.values(plain))

    values = html_names.values(page)
    telling = _telling(values, config)
    plain = html_names.without_anchors(page, telling)
    if plain != page:
        page, values = plain, html_names.values(plain)
    found = extract(page, values)
    least = len(found[0])
    # What has two thirds of the text and was left out is twice as long as the rest; without the
    # spaces, which are not counted here and are up to a quarter of it, 1.5 times.
    elements = html_names.large(page, telling, int(least * 1.5))
    # Seldom it is for names that little was found: one extraction tells, and two or more how much
    # of the text each element has.
    again = without_names(elements) if elements else found
    if len(again[0]) > least:
        most = html_names.with_most(page, elements, _prose)
        if len(most) < len(elements):
            again = without_names(most)
    return again if len(again[0]) > least else found


def _whole_text(page: str, config: ExtractConfig) -> tuple[str, tuple[str, ...]]:
    """All text outside navigation and blocks of links, for a page in which the extractor finds no
    main content: a list alone, a fragment without `body`."""
    skip = ["nav", "header", "footer", "aside", "form", "button", "select",
            *(f"{mark}{name}" for name in _known(html_names.values(page), config)
              for mark in ".#")]
    text, _ = _without_menus(all_text(_with_marks(page), skip), config.max_link_density,
                             config.min_block_links)
    return text, ("extract:html/all_text",)


def main_text(page: str, config: ExtractConfig) -> tuple[str, tuple[str, ...]]:
    """The page's main content as plain text: no navigation, advertisements, scripts or comments.

    Blocks, lists and preformatted text keep their line breaks. What is main content is decided by
    the extractor's own rules: resiliparse's, which DCLM (Li et al. 2024, arXiv 2406.11794) found
    as good for training as trafilatura's at an eighth of the cost, or trafilatura's (Barbaresi
    2021). On top of them come the rules of `ExtractConfig`. An element that holds most of the text
    outside links (`html_names.MOST`) is never left out for its class or id, nor is a heading or a
    section for an id that is the heading's address.

    Returns:
      The text, and the names of what was done.

    Raises:
      ExtractionError: a page that is too much for trafilatura.
    """
    page = html_tree.without_annotations(html_tree.flattened(page))
    page = (html_tree.with_parted_cells(page) if config.html == "resiliparse"
            else html_tree.with_math_as_text(page))
    text, transforms = _main_text(page, config)
    if not text.strip():
        text, transforms = _whole_text(page, config)
    if config.boilerplate_lines:
        plain = boilerplate.without_markers(text, config.max_boilerplate_characters)
        if plain != text:
            return plain, (*transforms, "boilerplate_lines")
    return text, transforms
