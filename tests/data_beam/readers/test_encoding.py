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


@pytest.mark.parametrize("codec", ["gbk", "gb18030", "big5", "utf-8", "shift_jis"])
def test_a_declared_encoding_is_followed(codec):
    text = page("茶中文" * 20 if codec != "shift_jis" else "お茶の歴史" * 20, codec)
    assert decode(text.encode(codec), html=True)[0] == text


@pytest.mark.parametrize("declared", ["", "utf-8"])
def test_a_gbk_page_with_a_long_ascii_head_is_sniffed(declared):
    # 200 kB of ASCII before the first Chinese byte, and no declaration or a wrong one.
    text = page(CHINESE, declared, head=200_000)
    assert decode(text.encode("gbk"), html=True) == (text, "gb18030")


def test_a_page_that_claims_gb2312_may_use_characters_of_gbk():
    text = page("朱镕基" * 5, "gb2312")  # 镕 is not in GB2312
    assert decode(text.encode("gbk"), html=True)[0] == text


def test_the_mark_wins_over_header_and_meta():
    text = page("naïve 中文", "gbk")
    assert decode(codecs.BOM_UTF8 + text.encode(), header="big5", html=True) == (text, "utf-8")
    for codec, mark in (("utf-16-le", codecs.BOM_UTF16_LE), ("utf-16-be", codecs.BOM_UTF16_BE),
                        ("utf-32-le", codecs.BOM_UTF32_LE), ("utf-32-be", codecs.BOM_UTF32_BE)):
        assert decode(mark + text.encode(codec), html=True) == (text, codec)


def test_the_header_wins_over_meta():
    text = page("Привет мир", "utf-8")
    assert decode(text.encode("koi8-r"), header="koi8-r", html=True) == (text, "koi8-r")


def test_an_xml_declaration_counts_before_meta():
    text = '<?xml version="1.0" encoding="gbk"?><html><meta charset="utf-8"><p>茶的历史</p></html>'
    assert decode(text.encode("gbk"), html=True) == (text, "gb18030")
    assert decode(text.encode("big5", "replace"), header="big5", html=True)[1] == "big5"


def test_an_unknown_or_wrong_header_is_passed_over():
    text = page("茶的历史" * 20, "gbk")
    for header in ("no-such-codec", "utf-8", "ascii", "utf-16"):
        assert decode(text.encode("gbk"), header=header, html=True) == (text, "gb18030")


def test_meta_means_nothing_outside_html():
    # These bytes are valid in both encodings, and mean different text.
    text = 'In HTML one writes <meta charset="gbk">: 中文'
    assert decode(text.encode()) == (text, "utf-8")
    assert decode(text.encode(), html=True) == (text.encode().decode("gb18030"), "gb18030")


def test_a_meta_that_claims_utf_16_is_not_believed():
    text = page("plain 中文", "utf-16")
    assert decode(text.encode(), html=True) == (text, "utf-8")


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
def test_utf_8_but_for_a_few_bytes_is_no_other_encoding(text, bad, html):
    """Whatever the script, and wherever the bad byte is: a single-byte code page takes any."""
    data = text.encode()
    middle = len(text[:len(text) // 2].encode())
    for broken in (bad + data, data + bad + b" end", data[:middle] + bad + data[middle:]):
        with pytest.raises(Undecodable, match="UTF-8 but for a few bytes; utf-8 fails") as caught:
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
