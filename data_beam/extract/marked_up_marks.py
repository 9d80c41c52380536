"""Runs of combining marks in a page, also those that only a library's parser puts together."""

import html
import re
import unicodedata

from data_beam.clean import normal_form

_REFERENCE = re.compile(r"&(?:#0*[0-9]{1,7}|#[xX]0*[0-9a-fA-F]{1,6}|[A-Za-z]{1,31});?")


def _mark_of(match: re.Match[str]) -> str:
    character = html.unescape(match[0])
    return character if len(character) == 1 and unicodedata.combining(character) else match[0]


def _carries(character: str) -> bool:
    """Whether a mark behind it stands on it in the text as in the page: not behind the end of a
    tag or reference, blanks, and what extractors take out."""
    return character not in ">;" and character.isprintable() and not character.isspace()


def apart(page: str) -> str:
    """A page in whose text, whatever markup is taken out, no run of marks is longer than 30.

    Longer ones are parted by U+034F as in `normal_form.stream_safe`, and so are marks that stand
    on nothing, as in `<b>&#769;</b><b>&#769;</b>`.
    """
    if "&" in page:
        page = _REFERENCE.sub(_mark_of, page)
    if page.isascii():
        return page
    marks = normal_form.places_of_marks(page)
    page = normal_form.parted(page, (
        place for place in marks if not (place and _carries(page[place - 1]))))
    return normal_form.stream_safe(page)
