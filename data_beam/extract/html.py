"""Main text of an HTML page."""

import functools
import logging
import re
from collections.abc import Sequence

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from data_beam.config import ExtractConfig
from data_beam.extract import boilerplate, html_markup, html_names
from data_beam.extract.errors import ExtractionError

# Noncharacters of Unicode mark the text of links while it passes through the extractor.
_BEGIN, _END = "\ufdd0", "\ufdd1"
_MARKS = re.compile(f"[{_BEGIN}{_END}]")
# Links that begin with a word: resiliparse has its own rules for those that are signs (¶, [1]).
_LINK = re.compile(r"(<a [^<>]*>(?:<[^/<>][^<>]*>)?)(\w[^<]*(?<!\s))")
_LINK_IN_CAPITALS = re.compile(_LINK.pattern, re.IGNORECASE)  # a search without a literal is slow
_LINKED = re.compile(f"{_BEGIN}([^{_END}]+)")
_BLOCK_END = re.compile(r"\n(?:[ \t]*\n)+")

# Blink (Chromium) nests no deeper than this; resiliparse's time grows with the square of the depth.
MAX_DEPTH = 512
MAX_TRAFILATURA_DEPTH = 240  # libxml2 loses what is deeper than 255
# Each takes trafilatura a quarter of a millisecond.
MAX_TRAFILATURA_TAGS = 100_000
logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # it logs each page without text


def _mark_links(page: str) -> str:
    if _BEGIN in page or _END in page:
        page = _MARKS.sub("", page)
    # Half the time of a substitution with references to groups, in Python 3.11.
    parts = (_LINK_IN_CAPITALS if "<A " in page else _LINK).split(page)
    parts[2::3] = [f"{_BEGIN}{text}{_END}" for text in parts[2::3]]
    return "".join(parts)


def _visible(text: str) -> int:
    return sum(map(len, text.split()))


def _without_menus(text: str, max_density: float, min_links: int) -> tuple[str, bool]:
    """The text without link marks and without blocks that are mostly links; whether there were any.

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


_plain_text = functools.partial(
    extract_plain_text, preserve_formatting=True, list_bullets=True, alt_texts=False, links=False,
    form_fields=False, noscript=False)


def all_text(page: str, skip: Sequence[str] = ()) -> str:
    """All visible text of a page but for the elements that CSS selectors in `skip` name.

    Blocks, lists and preformatted text keep their line breaks.
    """
    tree = _parse(page)
    skip = [*skip, *html_markup.duplicate_math(tree)]
    return _plain_text(tree, main_content=False, skip_elements=skip or None)


def _parse(page: str) -> HTMLTree:
    tree = HTMLTree.parse(html_markup.limit_depth(page, MAX_DEPTH))
    html_markup.prepare_for_resiliparse(tree)
    return tree


def _prose(page: str) -> int:
    """Visible characters of a page outside links, menus and forms."""
    return _visible(all_text(page, ("a", "nav", "button", "select")))


def _selectors(names: Sequence[str]) -> list[str]:
    """CSS selectors of the elements with one of these names as class or id."""
    return [f"{mark}{name}" for name in names for mark in ".#"]


def _resiliparse(page: str, config: ExtractConfig,
                 names: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    weigh = config.max_link_density < 1
    tree = _parse(_mark_links(page) if weigh else page)
    skip = [*_selectors(names), *html_markup.duplicate_math(tree)]
    text = _plain_text(tree, main_content=True, comments=config.comments,
                       skip_elements=skip or None)
    if not weigh:
        return text, ("extract:html",)
    text, found = _without_menus(text, config.max_link_density, config.min_block_links)
    return text, ("extract:html", "link_blocks") if found else ("extract:html",)


def _trafilatura(page: str, config: ExtractConfig,
                 names: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    import trafilatura  # slow to import, and used by choice only

    tags = page.count("<")
    if tags > MAX_TRAFILATURA_TAGS:
        raise ExtractionError("too many tags", f"{tags}, more than {MAX_TRAFILATURA_TAGS}")
    skip = "//*[" + " or ".join(
        f"contains(concat(' ', normalize-space(@{attribute}), ' '), ' {name} ')"
        for attribute in ("class", "id") for name in names) + "]"
    page = html_markup.bound_mark_runs(html_markup.limit_depth(page, MAX_TRAFILATURA_DEPTH))
    try:
        tree = trafilatura.load_html(page)
        if tree is None:  # without <html> near the beginning, or broken
            tree = trafilatura.load_html(f"<!DOCTYPE html>{page}")
        if tree is None:
            return "", ("extract:html/trafilatura",)
        html_markup.prepare_for_trafilatura(tree)
        text = trafilatura.extract(
            tree, output_format="txt", include_comments=config.comments, include_tables=True,
            deduplicate=False, with_metadata=False, prune_xpath=[skip] if names else None)
    except (ValueError, RecursionError, AssertionError) as error:
        raise ExtractionError("trafilatura failed", f"{type(error).__name__}: {error}") from error
    return text or "", ("extract:html/trafilatura",)


@functools.lru_cache(1 << 16)
def _resiliparse_leaves_out(value: str, comments: bool) -> bool:
    """Whether resiliparse leaves out a block deep in a page for its class or id.

    We probe resiliparse: its rules tell `flex-box` from `search-box`. Takes 20 us.
    """
    value = value.replace('"', "")
    page = (f'<div><div><div><div class="{value}"><p>a</p></div>'
            f'<div id="{value}"><p>b</p></div></div></div></div>')
    return extract_plain_text(page, main_content=True, comments=comments).split() != ["a", "b"]


def _boilerplate_tokens(values: set[str], config: ExtractConfig) -> dict[str, str]:
    """By value of `class` or `id`: the value without names for which elements may be left out."""
    return {value: shorter for value in values
            if (shorter := html_names.without_boilerplate_tokens(value)) is not None
            and (config.html != "resiliparse" or _resiliparse_leaves_out(value, config.comments)
                 or html_names.known([value], config))}


def _main_text(page: str, config: ExtractConfig) -> tuple[str, tuple[str, ...]]:
    """Extracts a page, and again if an element with most of the text was left out for its name."""
    def extract(page: str, values: set[str]) -> tuple[str, tuple[str, ...]]:
        extractor = _resiliparse if config.html == "resiliparse" else _trafilatura
        return extractor(page, config, html_names.known(values, config))

    def without_names(elements: Sequence[html_names.Named]) -> tuple[str, tuple[str, ...]]:
        plain = html_names.without_names(page, elements)
        return extract(plain, html_names.values(plain))

    values = html_names.values(page)
    tokens = _boilerplate_tokens(values, config)
    plain = html_names.without_anchors(page, tokens)
    if plain != page:
        page, values = plain, html_names.values(plain)
    found = extract(page, values)
    least = len(found[0])
    # An element left out with two thirds of the text is twice as long as the rest: 1.5 times, as
    # spaces are not counted here and are up to a quarter of it.
    elements = html_names.large(page, tokens, int(least * 1.5))
    # Names are rarely the reason that little was found. One extraction without any of them shows
    # whether they are; only then is each element measured.
    again = without_names(elements) if elements else found
    if len(again[0]) > least:
        total = _prose(page)
        most = [element for element in elements
                if _prose(page[slice(*element.inside)]) > html_names.MOST * total]
        if len(most) < len(elements):
            again = without_names(most)
    return again if len(again[0]) > least else found


def _whole_text(page: str, config: ExtractConfig) -> tuple[str, tuple[str, ...]]:
    """All text outside navigation and blocks of links, for a page in which the extractor finds no
    main content, such as a list alone."""
    skip = ["nav", "header", "footer", "aside", "form", "button", "select",
            *_selectors(html_names.known(html_names.values(page), config))]
    text, _ = _without_menus(all_text(_mark_links(page), skip), config.max_link_density,
                             config.min_block_links)
    return text, ("extract:html/all_text",)


def main_text(page: str, config: ExtractConfig) -> tuple[str, tuple[str, ...]]:
    """The page's main content as plain text, without navigation, advertisements, scripts or
    comments, and the names of what was done.

    Blocks, lists and preformatted text keep their line breaks. What is main content is decided by
    the extractor's own rules: resiliparse's, which DCLM (Li et al. 2024, arXiv 2406.11794) found as
    good for training as trafilatura's at an eighth of the cost, or trafilatura's (Barbaresi 2021).
    On top of them come the rules of `ExtractConfig`. An element that holds most of the text outside
    links (`html_names.MOST`) is never left out for its class or id, nor is a heading or a section
    for an id that is the heading's address.

    Raises ExtractionError for a page that is too much for trafilatura.
    """
    text, transforms = _main_text(page, config)
    if not text.strip():
        text, transforms = _whole_text(page, config)
    if config.boilerplate_lines:
        plain = boilerplate.without_markers(text, config.max_boilerplate_characters)
        if plain != text:
            return plain, (*transforms, "boilerplate_lines")
    return text, transforms
