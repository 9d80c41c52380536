"""Text out of markup."""

import email.message

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


PAGE = """<!DOCTYPE html><html><head><title>Tea</title><style>p { color: red }</style>
<script>var tracking = "script text";</script></head><body>
<nav><ul><li><a href="/">Home page</a></li><li><a href="/shop">Shop now</a></li></ul></nav>
<div class="ad-banner advertisement">Buy cheap pills today</div>
<main><article><h1>The history of tea</h1>
<p>Tea was first drunk in China, and spread along the trade routes to the whole of Asia.</p>
<p>茶是一种饮料，起源于中国。后来传到世界各地，成为人们日常的饮料。</p>
<p>An &amp; entity, an <em>emphasised</em> word and an <a href="https://e.org">inline link</a>.</p>
<pre>def brew(leaves):
    return leaves</pre></article></main>
<footer><p>Copyright 2020, all rights reserved. <a href="/privacy">Privacy policy</a></p></footer>
<!-- a comment --></body></html>"""


def test_html_keeps_the_article_and_drops_what_surrounds_it():
    text, transforms = extract("html", PAGE)
    assert transforms == ("extract:html",)
    for kept in ("The history of tea", "first drunk in China", "茶是一种饮料，起源于中国。",
                 "An & entity, an emphasised word and an inline link.",
                 "def brew(leaves):\n    return leaves"):
        assert kept in text
    for dropped in ("Home page", "Shop now", "cheap pills", "script text", "color: red",
                    "Privacy policy", "a comment", "<", "https://e.org"):
        assert dropped not in text
    assert text.count("\n\n") >= 3  # paragraphs stay apart


def test_extraction_is_a_pure_function():
    # A second extraction in one process, with another page between, gave another text elsewhere.
    first = extract("html", PAGE)
    extract("html", PAGE.replace("tea", "coffee") * 3)
    assert extract("html", PAGE) == first


@pytest.mark.parametrize("page", ["", " ", "<", "<html>", "<p>" * 5000, "no markup at all",
                                  "<script>only()</script>", "<a" * 400])
def test_broken_pages_do_not_raise(page):
    text, _ = extract("html", page)
    assert "only()" not in text
    if page == "no markup at all":
        assert text == page


MARKDOWN = """---
title: front matter
---
# Heading

[![build](https://ci.org/badge.svg)](https://ci.org) ![logo](logo.png)

Text with a [link](https://e.org/a_(b)), a [reference][1], an <https://auto.link> and `<code>`.
A line with <b>bold</b> HTML <br/> and 1 < 2 > 0.

<!-- a comment
over lines -->
- item *one*
- item **two**

```python
# <b>code</b> stays ![as](it) is
x = [a](b)
```

~~~
```
still fenced <!-- kept -->
~~~

[1]: https://e.org/ref "title"
[^1]: a footnote stays

| a | b |
|---|---|
"""
PROSE = """# Heading


Text with a link, a reference, an https://auto.link and `<code>`.
A line with bold HTML  and 1 < 2 > 0.


- item *one*
- item **two**

```python
# <b>code</b> stays ![as](it) is
x = [a](b)
```

~~~
```
still fenced <!-- kept -->
~~~

[^1]: a footnote stays

| a | b |
|---|---|
"""


@pytest.mark.parametrize("text", [
    "<!--" * 500_000, "<!-- a -->" * 100_000, "![" * 300_000, "![a](" * 100_000,
    "a" + "`" * 500_000, "`a " * 200_000, "[" * 500_000, "[](" * 200_000,
    "<a " * 300_000, "<a" * 300_000, "---\n" * 200_000, "~~~\n" * 200_000,
    "![][" * 200_000], ids=lambda text: repr(text[:6]))
def test_long_markdown_ends_in_bounded_time(text):  # their squares take minutes
    assert len(extract("markdown", text)[0]) <= len(text)


def test_comments_of_markdown_end_where_they_end():
    assert extract("markdown", "a <!-- b\nc --> d <!----> e <!-- f")[0] == "a  d  e <!-- f"


def test_markdown_keeps_structure_and_code_and_drops_what_only_a_renderer_needs():
    assert extract("markdown", MARKDOWN) == (PROSE, ("extract:markdown",))
    assert extract("markdown", MARKDOWN.replace("\n", "\r\n"))[0] == PROSE


def test_links_and_images_around_code_spans():
    text = "see [`a[b]`](http://x) and `<b>` ![x `y`](z) `q` end"
    assert extract("markdown", text)[0] == "see `a[b]` and `<b>`  `q` end"


def test_a_rule_is_no_front_matter():
    text = "Text\n\n---\n\nmore\n\n---\n"
    assert extract("markdown", text)[0] == text


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


def test_package_description():
    message = email.message.Message()
    message["Metadata-Version"] = "2.1"
    message["Name"] = "x"
    message["Description-Content-Type"] = "text/markdown; charset=UTF-8"
    body = "# Title\n\n![badge](b.svg)\n说明 text\n"
    raw = message.as_string().rstrip("\n") + "\n\n" + body
    assert extract("package_description", raw)[0] == "# Title\n\n说明 text\n"
    plain = raw.replace("text/markdown", "text/x-rst")
    assert extract("package_description", plain)[0] == body
    old = "Metadata-Version: 1.1\nName: x\nDescription: First line\n        \n        Second line\n"
    assert extract("package_description", old)[0].split("\n\n") == ["First line", "Second line"]
    assert extract("package_description", "Metadata-Version: 2.1\nName: x\n")[0] == ""
    with pytest.raises(ExtractionError, match="Metadata-Version"):
        extract("package_description", "just a text file\n")
