"""Encodings: mark, header, meta, UTF-8, sniffing, in this order, and never a replaced byte."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_beam.readers.encoding import Undecodable, decode, decode_python

CHINESE = "中文网页的正文，讲的是茶的历史。茶起源于中国，后来传到世界各地，成为人们日常的饮料。" * 4


def page(body: str, charset: str = "", head: int = 0) -> str:
    content = f'content="text/html; charset={charset}"'
    meta = f'<meta http-equiv="Content-Type" {content}>' if charset else ""
    return f"<html><head>{meta}<title>a title</title><script>{'x' * head}</script></head>" \
           f"<body>{body}</body></html>"


TEA = "茶的历史" * 20
XML_PAGE = '<?xml version="1.0" encoding="gbk"?><html><meta charset="utf-8"><p>茶的历史</p></html>'
ABOUT_META = 'In HTML one writes <meta charset="gbk">: 中文'


@pytest.mark.parametrize("text, written_in, header, codec", [
    # What the page declares.
    (page("茶中文" * 20, "gbk"), "gbk", "", "gb18030"),
    (page("茶中文" * 20, "gb18030"), "gb18030", "", "gb18030"),
    (page("茶中文" * 20, "big5"), "big5", "", "big5"),
    (page("茶中文" * 20, "utf-8"), "utf-8", "", "utf-8"),
    (page("お茶の歴史" * 20, "shift_jis"), "shift_jis", "", "shift_jis"),
    (page("朱镕基" * 5, "gb2312"), "gbk", "", "gb18030"),  # 镕 is not in GB2312
    # 200 kB of ASCII before the first Chinese byte, and no declaration or a wrong one.
    (page(CHINESE, head=200_000), "gbk", "", "gb18030"),
    (page(CHINESE, "utf-8", head=200_000), "gbk", "", "gb18030"),
    # The header wins over meta, and an XML declaration too.
    (page("Привет мир", "utf-8"), "koi8-r", "koi8-r", "koi8-r"),
    (XML_PAGE, "gbk", "", "gb18030"),
    # An unknown or wrong header is ignored.
    *((page(TEA, "gbk"), "gbk", header, "gb18030") for header in (
        "no-such-codec", "utf-8", "ascii", "utf-16")),
    # A meta tag that can be read as ASCII is not UTF-16.
    (page("plain 中文", "utf-16"), "utf-8", "", "utf-8"),
])
def test_the_first_candidate_that_decodes_every_byte_wins(text, written_in, header, codec):
    assert decode(text.encode(written_in), header, html=True) == (text, codec)


def test_the_mark_wins_over_header_and_meta():
    text = page("naïve 中文", "gbk")
    for codec, mark in (("utf-8", codecs.BOM_UTF8), ("utf-16-le", codecs.BOM_UTF16_LE),
                        ("utf-16-be", codecs.BOM_UTF16_BE), ("utf-32-le", codecs.BOM_UTF32_LE),
                        ("utf-32-be", codecs.BOM_UTF32_BE)):
        assert decode(mark + text.encode(codec), header="big5", html=True) == (text, codec)


def test_meta_counts_in_html_only():
    """These bytes are valid in both encodings, and are other texts."""
    data = ABOUT_META.encode()
    assert decode(data) == (ABOUT_META, "utf-8")
    assert decode(data, html=True) == (data.decode("gb18030"), "gb18030")


@pytest.mark.parametrize("data", [
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256)) * 10,
    b"%PDF-1.7\n" + b"text only, but a PDF\n" * 50,
    bytes(range(1, 32)) * 50,
    b"PK\x03\x04rest", b"plain text with a \0 in it",
])
def test_binary_content_is_refused(data):
    with pytest.raises(Undecodable) as caught:
        decode(data, html=True)
    assert caught.value.reason == "binary content"


def test_bytes_in_no_encoding_are_refused_and_the_place_is_named():
    with pytest.raises(Undecodable, match="utf-8 by its mark, but invalid start byte at byte 4"):
        decode(codecs.BOM_UTF8 + b"good\xff")


ENGLISH = "The “old” town — naïve, they said — had a café, and another, and many visitors. " * 5


@pytest.mark.parametrize("text, bad", [
    (CHINESE, b"\xff"), (CHINESE, b"\x93"), (CHINESE, b"\xe4\xb8"), (ENGLISH, b"\xe9"),
    (ENGLISH, b"\xed\xa0\x80"), ("“Yes”, she said.", b"\x92"),
    ("Une façon d'être près de l'été, où tout près, déjà, à côté du café. ", b"\xe9"),
    ("Привет, это обычный русский текст. ", b"\xff"),
    # Halves of a surrogate pair, U+110000, Java's zero: in the form of UTF-8, and all there is.
    ("plain English text", b"\xed\xa0\x80"), ("plain", b"\xed\xa0\xbd\xed\xb8\x80"),
    ("plain", b"\xf4\x90\x80\x80"), ("plain", b"\xc0\x80")], ids=repr)
@pytest.mark.parametrize("html", [True, False])
def test_utf_8_with_a_few_bad_bytes_is_not_another_encoding(text, bad, html):
    """In every script, and wherever the bad byte is: a single-byte code page decodes anything."""
    data = text.encode()
    middle = len(text[:len(text) // 2].encode())
    for broken in (bad + data, data + bad + b" end", data[:middle] + bad + data[middle:]):
        with pytest.raises(Undecodable, match="UTF-8 with a few bad bytes; utf-8 fails") as caught:
            decode(broken, html=html)
        assert caught.value.reason == "bad encoding"
    assert decode(data) == (text, "utf-8")


@pytest.mark.parametrize("text, codec", [
    ("“CAFÉ” — naïve, coût élevé, ÉCOLE… Voilà»", "cp1252"), ("a single é in English", "cp1252"),
    ("It’s plain English but for this", "cp1252"), ("“CAFÉ”", "cp1252"),
    ("«ÀÉ»: ’É’ É” Ü“", "cp1252"), ("Привет мир, это «обычный» русский текст. МОСКВА", "cp1251"),
    ("Привет мир, это обычный русский текст. МОСКВА", "koi8-r"), (CHINESE, "gb18030"),
    ("学习中文，品茶论道，泄露", "gb18030"), ("繁體中文的網頁，講的是茶的歷史。", "big5"),
    ("日本語の文章です。カタカナとひらがな。", "shift_jis"),
    ("日本語の文章です。カタカナとひらがな。", "euc_jp"),
    ("한국어 텍스트는 이렇게 생겼습니다. 타이틀", "euc_kr"),
    ("แบบนี้เป็นแบบของแผนการที่เพราะโครงการ", "cp874")])
def test_text_in_another_encoding_is_not_called_broken_utf_8(text, codec):
    data = text.encode(codec)
    for content in (data, b"English before it. " * 50 + data, data * 20):
        try:
            found = decode(content)[1]
        except Undecodable as error:  # sniffing may fail; it must have been tried
            assert "sniffed" in error.detail
        else:
            assert found != "utf-8"
    if codec == "gb18030" or ("É" in text and "À" not in text):
        assert decode(b"English before it. " + data * 20)[0] == "English before it. " + text * 20


def test_python_source_is_read_by_its_own_declaration():
    source = '# -*- coding: latin-1 -*-\ns = "naïve"\n'
    assert decode_python(source.encode("latin-1"))[0] == source
    assert decode_python(codecs.BOM_UTF8 + b"x = 1\n")[0] == "x = 1\n"
    for bad in (b"# coding: no-such-codec\n", b's = "\xff"\n', b"x\0y\n"):
        with pytest.raises(Undecodable):
            decode_python(bad)


@given(st.binary(max_size=500), st.sampled_from(["", "gbk", "utf-8", "utf-7", "idna", "rot13",
                                                  "base64", "undefined", "unicode_escape", "\0"]))
def test_any_bytes_and_any_header_are_text_or_refused(data, header):
    head = f'<meta charset="{header}">'.encode()
    declaration = f'<?xml version="1.0" encoding="{header}"?>'.encode()
    for content in (data, head + data, declaration + data):
        try:
            text, codec = decode(content, header, html=True)
        except Undecodable as error:
            assert error.reason in ("bad encoding", "binary content")
        else:
            assert isinstance(text, str) and codec
            text.encode("utf-8")  # no half of a surrogate pair
