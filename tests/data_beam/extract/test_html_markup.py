"""Markup that extractors lose, join, read twice or take too long over."""

import re
import time
import unicodedata

import pytest

from data_beam.config import ExtractConfig
from data_beam.extract.documentation import docstrings
from data_beam.extract.html import all_text, main_text
from data_beam.extract.html_markup import bound_mark_runs, limit_depth

EXTRACTORS = pytest.mark.parametrize("extractor", ["resiliparse", "trafilatura"])
PROSE = "Some prose that is long enough to be kept by anyone who reads it. " * 12


def tokens(markup: str, extractor: str) -> str:
    """The main text of an article with the markup in its middle, without the rest: words of each
    line with a space between them, lines with a slash, all list and table signs left out."""
    page = f"<html><body><article><p>{PROSE}</p>{markup}<p>{PROSE}</p></article></body></html>"
    text = main_text(page, ExtractConfig(html=extractor))[0].replace(PROSE.strip(), "")
    rows = (" ".join(re.findall(r"[\w.%=\\^{}()]+", re.sub(r"\b\d\. ", "", line)))
            for line in text.split("\n"))
    return " / ".join(row for row in rows if row)


ROW = "<tr><td>1990</td><td>1143</td><td>2.1</td></tr>"
HEAD = "<tr><th>Year</th><th>N</th><th>%</th></tr>"


@EXTRACTORS
@pytest.mark.parametrize("space", ["", " ", "\n  "])
@pytest.mark.parametrize("markup, expected", [
    (f"<table>{ROW}</table>", "1990 1143 2.1"),
    (f"<table>{HEAD}{ROW}{ROW}</table>", "Year N % / 1990 1143 2.1 / 1990 1143 2.1"),
    (f"<table><thead>{HEAD}</thead><tbody>{ROW}</tbody></table>", "Year N % / 1990 1143 2.1"),
    ("<TABLE><TR><TD>1990</TD><TD>1143</TD></TR></TABLE>", "1990 1143"),
    ("<table><tr><td>1990<td>1143<tr><td>1991<td>1200</table>", "1990 1143 / 1991 1200"),
    ("<table><tr><td><b>1990</b></td><td></td><td>2.1</td></tr></table>", "1990 2.1"),
    ("<ul><li>one</li><li>two</li></ul>", "one / two"),
    ("<ol><li>one</li><li>two</li></ol>", "one / two"),
    ("<menu><li>one</li><li>two</li></menu>", "one / two"),
    ("<ul><li>one<ul><li>two</li></ul></li><li>three</li></ul>", "one / two / three"),
    ("<dl><dt>one</dt><dd>two</dd><dt>three</dt></dl>", "one / two / three"),
    ("<h2>one</h2><h3>two</h3><p>three</p>", "one / two / three"),
])
def test_cells_rows_items_and_headings_stay_apart(markup, space, expected, extractor):
    assert tokens(re.sub("(?=<)", space, markup), extractor) == expected


@EXTRACTORS
@pytest.mark.parametrize("markup", [
    "<div>%s<div>two</div>three</div>", "<div>%s<address>two</address>three</div>",
    "<div>%s<details><summary>two</summary>three</details></div>",
    "<div><div>%s</div><div>two</div>three</div>"])
def test_blocks_beside_text_stay_apart(markup, extractor):
    page = f"<html><body><article>{markup % PROSE.strip()}</article></body></html>"
    text = main_text(page, ExtractConfig(html=extractor))[0]
    assert text.removeprefix(PROSE.strip()).split() == ["two", "three"]


@EXTRACTORS
@pytest.mark.parametrize("cell", [
    "<ul><li>one</li><li>two</li></ul>", "<ol><li>one</li><li>two</li></ol>",
    "<div><ul><li><p>one</p></li><li>two</li></ul></div>", "<ul><li>one<ul><li>two</ul></ul>",
    "<dl><dt>one</dt><dd>two</dd></dl>", "<center>one</center>two",
    "<section>one</section><article>two</article>"])
def test_what_a_cell_holds_is_kept(cell, extractor):
    markup = f"<table><tr><td>{cell}</td><td>three</td></tr><tr><td>1</td><td>2</td></tr></table>"
    assert re.findall(r"\w+", tokens(markup, extractor)) == ["one", "two", "three", "1", "2"]


MATH = "<math><semantics><mrow><mi>x</mi><mo>=</mo><mn>2</mn></mrow>%s</semantics></math>"
TEX = '<annotation encoding="application/x-tex">x=2</annotation>'


@EXTRACTORS
@pytest.mark.parametrize("markup", [
    MATH % TEX, MATH % TEX.replace("application/x-tex", "TeX"), MATH % "",
    MATH % '<annotation encoding="StarMath 5.0">x = {2}</annotation>',
    MATH % "<annotation-xml><apply><eq/><ci>x</ci><cn>2</cn></apply></annotation-xml>",
    f'<span class="katex">{MATH % TEX}<span class="katex-html">x=2</span></span>',
    MATH.replace("<math>", '<math alttext="x=2" display="block">') % TEX])
def test_a_formula_is_read_once(markup, extractor):
    for found in (tokens(f"<p>Let {markup} be.</p>", extractor),
                  main_text(f"<p>Let {markup} be.</p>", ExtractConfig(html=extractor))[0],
                  all_text(f"<p>Let {markup} be.</p>")):
        assert re.sub(r"[\W]*", "", found).replace("Let", "").replace("be", "") == "x2", found


@EXTRACTORS
def test_tex_is_the_text_of_a_formula_that_has_it(extractor):
    fraction = "<math><semantics><mfrac><mi>a</mi><mi>b</mi></mfrac>" \
        r'<annotation encoding="application/x-tex">\frac{a}{b}</annotation></semantics></math>'
    assert r"\frac{a}{b}" in tokens(f"<p>Let {fraction} be.</p>", extractor)


@EXTRACTORS
@pytest.mark.parametrize("page, expected", [
    ("<ul><li>one</li><li>two</li></ul>", "one two"), ("<ol><li>one</li></ol>", "one"),
    ("<html><body><ul><li>one</li><li>two</li></ul></body></html>", "one two"),
    ("<div><ul><li>one</li><li>two <a href='x'>three</a> four and so on</li></ul></div>",
     "one two three four and so on"),
    ("<p>A bare fragment.</p>", "A bare fragment"), ("<b>bold</b> text", "bold text"),
    ("no markup at all", "no markup at all"),
    ("<!-- a comment that is longer than fifty characters --><p>one</p>", "one"),
    ("<table><tr><td>one</td><td>two</td></tr></table>", "one two"), ("<h1>one</h1>", "one"),
    ("<nav><a href='/'>Home</a></nav>", ""), ("<script>one</script>", ""), ("", "")])
def test_a_fragment_or_a_list_alone_is_kept(page, expected, extractor):
    text = main_text(page, ExtractConfig(html=extractor))[0]
    assert " ".join(re.findall(r"[^\W\d]+", text)) == expected or (
        extractor == "trafilatura" and "nav" in page and text == "Home")


def test_resiliparse_keeps_lists_near_the_body_and_leaves_out_menus():
    article = f"<p>{PROSE}</p><ul><li>one</li><li>two</li></ul><p>{PROSE}</p>"
    menu = "<ul>" + "".join(f"<li><a href='{i}'>Entry {i}</a></li>" for i in range(5)) + "</ul>"
    for before, after in (("", ""), ("<main>", "</main>"), ("<div><main>", "</main></div>")):
        page = f"<html><body>{menu}{before}{article}{after}</body></html>"
        text = main_text(page, ExtractConfig())[0]
        assert text == f"{PROSE.strip()}\n\n  • one\n  • two\n\n{PROSE.strip()}"
    # It indents all text behind an empty list that is not left out.
    assert "\n    " not in main_text(f"<body><ul></ul><menu></menu>{article}", ExtractConfig())[0]


@EXTRACTORS
@pytest.mark.parametrize("depth", [100, 252, 300, 600, 5000, 15_000])
@pytest.mark.parametrize("tag", ["div", "span", "ul><li", "table><tr><td", "DIV"])
def test_a_deep_page_keeps_its_text(depth, tag, extractor):
    inside = "".join(f"<p>{number} {PROSE}</p>" for number in "1234")
    end = "".join(f"</{name}>" for name in tag.split("><")[::-1])
    page = f"<html><body>{f'<{tag}>' * depth}{inside}{end * depth}</body></html>"
    found, done = main_text(page, ExtractConfig(html=extractor))
    assert done[0] == ("extract:html" if extractor == "resiliparse" else "extract:html/trafilatura")
    for text in (found, all_text(page)):
        assert re.findall(r"\d", text) == [*"1234"] and text.count(PROSE.strip()) == 4


@EXTRACTORS
@pytest.mark.parametrize("markup", [
    "<script>" + "for(i=0;i<e.length;i++){}" * 600 + "</script>", "<!--" + "<div>" * 600 + "-->",
    "<style>" + "a<b{}" * 600 + "</style>", "<p><br><img src=x>" * 2000, "1 < 2 " * 1000,
    "<textarea>" + "<b>" * 600 + "</textarea>", "</i>" * 600, "<p>x" * 600, "<ul>" + "<li>x" * 600,
    "<p><font>x" * 600, "<ul>" + "<li><b>x" * 600])
def test_only_elements_count_as_depth(markup, extractor):
    page = f"<html><body><div><p>{PROSE}</p>{markup}</div></body></html>"
    assert limit_depth(page, 240) is page
    assert PROSE.strip() in main_text(page, ExtractConfig(html=extractor))[0]


TRAFILATURA = ExtractConfig(html="trafilatura")
PAGE = "<html><body><article><p>" + "Some prose that is long enough to be kept. " * 20 + \
    "</p><p>a%sb</p></article></body></html>"
# A mark of class 230, one of 220: each pair is out of order.
PAIRS = {"as they are": "\u0301\u0316", "decimal": "&#769;&#790;", "hexadecimal": "&#x301&#X316;",
         "by name": "&DownBreve;&#790;", "with zeros": "&#0000000769;&#x0000316;",
         "invisible": "\u0301\u200b\u0316&#8203;", "controls": "\u0301\x01\u0316\x01"}


def longest_run(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if unicodedata.combining(character) else 0
        longest = max(longest, run)
    return longest


@pytest.mark.parametrize("pair", PAIRS)
def test_time_is_linear_in_the_marks_of_a_page(pair):
    """Python's `unicodedata.normalize` takes two minutes for 200,000 pairs in one run."""
    begin = time.process_time()
    text, _ = main_text(PAGE % (PAIRS[pair] * 200_000), TRAFILATURA)
    assert time.process_time() - begin < 20
    assert "Some prose that is long enough" in text and text.endswith("b")
    assert longest_run(text) <= 30


@pytest.mark.parametrize("pair", [
    *PAIRS.values(), "<b>\u0301</b><i>&#790;</i>", "\u0301<!-- > -->\u0316<!---->"])
def test_no_mark_is_lost(pair):
    text, _ = main_text(PAGE % (pair * 100), TRAFILATURA)
    marks = [unicodedata.combining(character) for character in unicodedata.normalize("NFD", text)]
    assert marks.count(220) == marks.count(230) == 100
    assert longest_run(text) <= 30


@pytest.mark.parametrize("page", [
    "<p>Ti\u1ebfng Vi\u1ec7t e\u0323\u0302n</p>",
    "<p>\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd</p>",
    "<p>&amp; &#233; &eacute; &unknown; &#0; &#x110000;</p>",
    "<p>가각 が 中文，标点</p>", "<p>plain &lt;b&gt; &#8203;</p>", "",
    "<p>x" + "\u0301" * 30 + "</p>"])
def test_other_pages_stay_as_they_are(page):
    assert bound_mark_runs(page) == page


def test_references_to_marks_become_marks_and_those_that_stand_on_nothing_are_parted():
    assert bound_mark_runs("<p>e&#x301;</p><p>&#769;</p> \u0301") == \
        "<p>e\u0301</p><p>\u034f\u0301</p> \u034f\u0301"


def test_time_is_linear_in_the_marks_of_a_name_in_a_python_file():
    begin = time.process_time()
    source = '"""A module."""\n\n\nx' + "\u0301\u0316" * 100_000 + " = 1\n"
    assert docstrings(source) == "A module."
    assert time.process_time() - begin < 20
