"""Runs of combining marks before libraries that put them into order in quadratic time."""

import time
import unicodedata

import pytest

from data_beam.config import ExtractConfig
from data_beam.extract.documentation import docstrings
from data_beam.extract.html import main_text
from data_beam.extract.html_markup import bound_mark_runs

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
