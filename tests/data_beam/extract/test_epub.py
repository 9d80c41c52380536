"""EPUB to text: the spine's order, what is skipped, and books that are damaged or locked."""

import io
import re
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_beam.extract import epub
from data_beam.extract.errors import ExtractionError, NoText
from tests.data_beam.broken_files import broken
from tests.data_beam.extract.epub_files import CONTAINER, book, chapter, package

LIMIT = 10**6
ONE = chapter("One", "The first chapter, with a <a href='x'>link</a> and <em>emphasis</em>.")
TWO = chapter("第二章", "第二章的正文。<br/>换行。")
THREE = chapter("Three", "The last chapter.")
NAV = ('<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"><body>'
       '<nav epub:type="toc"><ol><li><a href="a.xhtml">Contents entry</a></li></ol></nav>{}</body>'
       "</html>")


def extract(data: bytes) -> tuple[str, tuple[str, ...]]:
    return epub.text(data, LIMIT)


def test_cover_and_contents_are_skipped_wherever_they_are_named():
    files = {"cover.xhtml": chapter("Cover", "A picture"), "nav.xhtml": NAV.format(""),
             "toc.xhtml": chapter("Contents", "1 2 3"), "one.xhtml": ONE,
             "two.xhtml": NAV.format("<p>Text beside a table of contents.</p>")}
    data = book(files, properties={"nav.xhtml": "scripted nav"}, guide=(
        '<guide><reference type="cover" href="cover.xhtml"/>'
        '<reference type="toc" href="toc.xhtml#start"/></guide>'))
    text, _ = extract(data)
    assert text == ("One\n\nThe first chapter, with a link and emphasis.\n\n\n"
                    "Text beside a table of contents.")


def test_a_chapter_named_twice_is_read_once():
    text, _ = extract(book({"one.xhtml": ONE}, spine=["one.xhtml"] * 1000))
    assert text.count("first chapter") == 1


def test_names_are_resolved_and_unquoted():
    spine = ["../text/chapter%201.xhtml#begin"]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("META-INF/container.xml", CONTAINER)
        archive.writestr("OEBPS/content.opf", package(spine))
        archive.writestr("text/chapter 1.xhtml", ONE)
    assert "first chapter" in extract(buffer.getvalue())[0]


def test_a_chapter_declares_its_encoding():
    page = '<?xml version="1.0" encoding="gbk"?><html><body><p>茶的历史</p></body></html>'
    assert extract(book({"a.xhtml": page.encode("gbk")}))[0] == "茶的历史"


@pytest.mark.parametrize("damage", ["not there", "corrupt", "binary", "unknown id"])
def test_a_missing_or_damaged_chapter_does_not_lose_the_book(damage):
    files = {"one.xhtml": ONE, "two.xhtml": TWO, "three.xhtml": THREE}
    spine = list(files)
    if damage == "not there":
        del files["two.xhtml"]
    elif damage == "binary":
        files["two.xhtml"] = bytes(range(256)) * 4
    elif damage == "unknown id":
        files["content.opf"] = package(spine).replace('<itemref idref="i1"/>',
                                                      '<itemref idref="nobody"/>')
    data = bytearray(book(files, spine=spine))
    if damage == "corrupt":
        begin = data.index(b"two.xhtml") + len("two.xhtml")
        data[begin + 20:begin + 40] = b"\xff" * 20
    text, done = extract(bytes(data))
    assert done == ("extract:epub", "epub:missing_chapters=1")
    assert "first chapter" in text and "last chapter" in text and "第二章" not in text


def test_books_that_are_none_say_why():
    good = book({"one.xhtml": ONE})
    declared = '<!DOCTYPE x [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
    bomb = declared + package(["one.xhtml"])
    for data, words in (
            (b"PK\x03\x04 and no more", "not a zip file"), (good[:-30], "not a zip file"),
            (b"", "not a zip file"),
            (book({"META-INF/container.xml": "<container/>"}), "names no package"),
            (book({"META-INF/container.xml": "<contai"}), "container.xml"),
            (book({"content.opf": "<package/>"}), "no chapters in its spine"),
            (book({"content.opf": bomb}), "declares entities"),
            (book({"content.opf": bomb.encode("utf-16")}), "declares entities"),
            (book({}, spine=["gone.xhtml"]), "no chapter can be read")):
        with pytest.raises(ExtractionError, match=words) as caught:
            extract(data)
        assert caught.value.reason == "invalid EPUB"
    with pytest.raises(NoText, match="no text layer"):
        extract(book({"a.xhtml": "<html><body><img src='x'/></body></html>"}))


def encryption(algorithm: str) -> str:
    return ('<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
            '<enc:EncryptedData xmlns:enc="http://www.w3.org/2001/04/xmlenc#">'
            f'<enc:EncryptionMethod Algorithm="{algorithm}"/></enc:EncryptedData></encryption>')


def test_locked_books_are_named_and_scrambled_fonts_are_no_lock():
    name = "META-INF/encryption.xml"
    fonts = encryption("http://www.idpf.org/2008/embedding")
    assert "first chapter" in extract(book({"one.xhtml": ONE, name: fonts}, spine=["one.xhtml"]))[0]
    aes = encryption("http://www.w3.org/2001/04/xmlenc#aes256-cbc")
    for files in ({name: aes}, {name: "<not xml"}, {"META-INF/rights.xml": "<rights/>"}):
        with pytest.raises(ExtractionError) as caught:
            extract(book({"one.xhtml": ONE, **files}, spine=["one.xhtml"]))
        assert caught.value.reason == "encrypted EPUB"
    locked = bytearray(book({"one.xhtml": ONE}))  # the flag of a password, in each entry
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        for entry in re.finditer(mark, locked):
            locked[entry.start() + place] |= 1
    with pytest.raises(ExtractionError, match="encrypted EPUB"):
        extract(bytes(locked))


def test_a_zip_bomb_is_refused():
    data = book({"one.xhtml": ONE, "two.xhtml": "<p>" + "a" * 5 * LIMIT})
    assert len(data) < LIMIT / 10
    with pytest.raises(ExtractionError, match=r"too large: .* pass max_record_bytes 1000000"):
        extract(data)
    many = {f"{i}.xhtml": "<p>" + "a" * (LIMIT // 5) for i in range(10)}
    with pytest.raises(ExtractionError, match="too large"):
        extract(book(many))


GOOD = book({"one.xhtml": ONE, "two.xhtml": TWO})


@settings(max_examples=200, deadline=None)
@given(st.one_of(
    broken(GOOD), st.binary(max_size=200).map(lambda page: book({"one.xhtml": page})),
    st.text(max_size=200).map(
        lambda text: book({"content.opf": text.encode("utf-8", "replace")}))))
def test_damaged_files_end_as_text_or_with_a_reason(content):
    try:
        text, done = extract(content)
    except (ExtractionError, NoText) as error:
        assert error.reason
    else:
        assert isinstance(text, str) and done[0] == "extract:epub"
