"""Text out of markup."""

import pytest

from data_beam.base.records import Origin, Record
from data_beam.config import ExtractConfig
from data_beam.extract import document as extraction
from data_beam.extract.errors import ExtractionError


def extract(format: str, text: str = "", data: bytes = b"", limit: int = 10**7,
            **options) -> tuple[str, tuple[str, ...]]:
    """Text of a record and what was done, with some options of extraction set."""
    record = Record(Origin("s", "p"), text, format, "general", "CC0-1.0", "", "", (), data)
    return extraction.extract(record, ExtractConfig(**options), limit)


@pytest.mark.parametrize("text", [
    "<!--" * 500_000, "<!-- a -->" * 100_000, "![" * 300_000, "![a](" * 100_000,
    "a" + "`" * 500_000, "`a " * 200_000, "[" * 500_000, "[](" * 200_000,
    "<a " * 300_000, "<a" * 300_000, "---\n" * 200_000, "~~~\n" * 200_000,
    "![][" * 200_000], ids=lambda text: repr(text[:6]))
def test_long_markdown_ends_in_bounded_time(text):  # their squares take minutes
    assert len(extract("markdown", text)[0]) <= len(text)


CODE = ("```python\n# <b>code</b> stays ![as](it) is\nx = [a](b)\n```\n\n"
        "~~~\n```\n<!-- kept -->\n~~~\n")
TABLE = "- item *one*\n- item **two**\n\n[^1]: a footnote\n\n| a | b |\n|---|---|\n"
RULE = "Text\n\n---\n\nmore\n\n---\n"


@pytest.mark.parametrize("markdown, prose", [
    ("---\ntitle: front matter\n---\n# Heading\n", "# Heading\n"), (RULE, RULE),
    ("a\n[![build](https://ci.org/badge.svg)](https://ci.org) ![logo](logo.png)\nb", "a\nb"),
    ("a [link](https://e.org/a_(b)), a [reference][1], an <https://auto.link> and `<code>`.",
     "a link, a reference, an https://auto.link and `<code>`."),
    ("<b>bold</b> HTML <br/> and 1 < 2 > 0.", "bold HTML  and 1 < 2 > 0."),
    ('[1]: https://e.org/ref "title"\na', "a"), (CODE, CODE), (TABLE, TABLE),
    ("a <!-- b\nc --> d <!----> e <!-- f", "a  d  e <!-- f"),
    ("see [`a[b]`](http://x) and `<b>` ![x `y`](z) `q` end", "see `a[b]` and `<b>`  `q` end")])
def test_markdown_keeps_structure_and_code_and_drops_what_only_a_renderer_needs(markdown, prose):
    assert extract("markdown", markdown) == (prose, ("extract:markdown",))
    assert extract("markdown", markdown.replace("\n", "\r\n"))[0] == prose


SOURCE = '''"""The module.

    Indented.
"""
import os

def area(radius: float, *, exact: bool = False) -> float:
    """Area of a circle.

    Args:
      radius: metres.
    """
    return 3.14

def undocumented(): pass

def _private():
    """Hidden."""

class Shape:
    """A shape."""

    def scale(self, by=2):
        """Grows it."""

    async def draw(self):
        """Draws it."""
'''


def test_docstrings_with_signatures():
    assert extract("docstrings", SOURCE)[0] == "\n\n\n".join([
        "The module.\n\nIndented.",
        "area(radius: float, *, exact: bool=False)\n\nArea of a circle.\n\nArgs:\n"
        "  radius: metres.",
        "class Shape\n\nA shape.",
        "Shape.scale(self, by=2)\n\nGrows it.",
        "Shape.draw(self)\n\nDraws it."])
    assert extract("docstrings", "x = 1\n")[0] == ""


@pytest.mark.parametrize("source", ["print 'python 2'", "def f(:", "x = " + "(" * 500, "a\0b"])
def test_source_that_does_not_parse_is_refused(source):
    with pytest.raises(ExtractionError, match="invalid Python"):
        extract("docstrings", source)


def test_python_source_stays_as_it_is():
    assert extract("python", SOURCE) == (SOURCE, ())


@pytest.mark.parametrize("headers, text", [
    ("2.1\nDescription-Content-Type: text/markdown; charset=UTF-8\n\n# A\n![badge](b.svg)\n说明\n",
     "# A\n说明\n"),
    ("2.1\nDescription-Content-Type: text/x-rst\n\n![as it](is)\n", "![as it](is)\n"),
    ("1.1\nDescription: First line\n        \n        Second line\n",
     "First line\n\nSecond line"),
    ("2.1\nName: x\n", "")])
def test_package_description(headers, text):
    assert extract("package_description", f"Name: x\nMetadata-Version: {headers}")[0] == text


def test_a_file_without_package_metadata_is_refused():
    with pytest.raises(ExtractionError, match="Metadata-Version"):
        extract("package_description", "just a text file\n")
