"""Files of every format, whole and broken: what is read, what becomes a dead letter."""

import bz2
import gzip
import io
import json
import zipfile

import pyarrow as pa
import pyarrow.parquet
import zstandard

from tests.data_beam.extract import pdf_files
from tests.data_beam.mini_corpus.corpus import FREE, MiniCorpus, dead, dropped, kept
from tests.data_beam.warc_files import record, response

LONGEST_RECORD = 300_000
"""Bytes of the largest record that the recipe reads."""


def add(corpus: MiniCorpus) -> None:
    encodings(corpus)
    compressed(corpus)
    json_lines(corpus)
    pages(corpus)
    pdfs(corpus)
    epubs(corpus)
    archives(corpus)
    parquet(corpus)


def page(*paragraphs: str, head: str = "") -> str:
    return (f"<!DOCTYPE html><html><head><title>Page</title>{head}</head><body><main>"
            + "".join(f"<p>{each}</p>" for each in paragraphs) + "</main></body></html>")


def encodings(corpus: MiniCorpus) -> None:
    """Byte order mark, then what is declared, then UTF-8, then a guess."""
    zh, en = corpus.chinese.text, corpus.english.text
    text = zh()
    corpus.file("web/gbk-ascii-head.html", page(
        text, head='<meta charset="gb2312"><script>' + "var a = 1; " * 800 + "</script>"
    ).encode("gbk"), kept("zh", text=text, traps=(51,), transforms=("decode:gb18030",),
                          why="the first 8 kB are ASCII"))
    text = zh()
    corpus.file("web/gbk-undeclared.txt", ("\n" * 300 + " " * 300 + "\n" + text).encode("gbk"),
                kept("zh", contains=(text,), traps=(51,), transforms=("decode:gb18030",),
                     why="nothing declares the encoding, and it begins in ASCII"))
    text = zh()
    corpus.file("web/big5.html", page("網頁的編碼在標頭裡。" + text[:60].replace("的", "之"),
                                      head='<meta charset="big5">').encode("big5", "ignore"),
                dropped("gopher_quality", "too few words", traps=(51,),
                        why="a short page that is told to be Big5, and is"))
    text = zh()
    corpus.file("web/utf16.txt", text.encode("utf-16"),
                kept("zh", text=text, traps=(51,), transforms=("decode:utf-16-le",)))
    text = en()
    corpus.file("web/bom.txt", b"\xef\xbb\xbf" + text.encode(),
                kept("en", text=text, untouched=True, why="a byte order mark is no text"))
    text = en() + " The café was full, and nobody paid the £5 that each of them owed."
    corpus.file("web/latin1.html", page(text, head='<meta charset="iso-8859-1">').encode("latin-1"),
                kept("en", text=text, traps=(51,), transforms=("decode:cp1252",)))
    text = zh()
    corpus.file("web/wrong-meta.html", page(text, head='<meta charset="us-ascii">'),
                kept("zh", text=text, traps=(51,), why="the declaration is wrong, the bytes UTF-8"))
    corpus.file("web/half-character.txt", zh().encode()[:-2] + b"\n\xff\xfe\xfd\n" + b"\xc3(" * 30,
                dead("read", "bad encoding", traps=(51, 52),
                     why="no encoding decodes all of it, and no byte is thrown away"))
    corpus.file("web/picture.txt", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20,
                dead("read", "binary content"))
    corpus.file("web/zip.html", b"PK\x03\x04" + b"\0" * 200, dead("read", "binary content"))
    corpus.file("web/empty.txt", b"", dropped("read", "empty file", traps=(42, 46)))
    corpus.file("web/empty.html", b"", dropped("read", "empty file", traps=(42, 46)))


def compressed(corpus: MiniCorpus) -> None:
    """Compression is told by content; damage is never silent."""
    for name, pack in (("gzip", gzip.compress), ("zstd", zstandard.compress),
                       ("bzip2", bz2.compress)):
        text = corpus.english.text()
        corpus.file(f"web/{name}.txt", pack(text.encode()),
                    kept("en", text=text, untouched=True, why="the name says nothing of it"))
    members = corpus.english.text(), corpus.english.text()
    corpus.file("web/two-members.txt", b"".join(gzip.compress(f"{each}\n".encode())
                                                for each in members),
                kept("en", text="\n".join(members), traps=(52,), why="two gzip members"))
    whole = gzip.compress(corpus.chinese.text().encode())
    corpus.file("web/cut.txt", whole[:len(whole) // 2], dead("read", "truncated gzip", traps=(52,)))
    corpus.file("web/no-trailer.txt", whole[:-4], dead("read", "truncated gzip", traps=(52,),
                                                       why="only the length is missing"))
    corpus.file("web/wrong-checksum.txt", whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:],
                dead("read", "corrupt gzip", traps=(52,), why="one bit of the checksum"))
    corpus.file("web/flipped.txt", bz2.compress(corpus.chinese.text().encode())[:60] + b"\x55" * 20,
                dead("read", "corrupt bzip2", traps=(52,)))
    corpus.file("web/cut-zstd.txt", zstandard.compress(corpus.chinese.text().encode())[:-9],
                dead("read", "truncated zstd", traps=(52,)))
    # Lines of a file that breaks off: the whole ones count, the damage itself is one dead letter.
    rows = corpus.rows("rows/cut.jsonl.gz")
    texts = [corpus.english.text() for _ in range(3)] + ["x" * 200_000]
    for text in texts:
        rows.raw(json.dumps({"text": text, "licence": "CC0-1.0", "url": "u"}), None)
    packed = gzip.compress(rows.data, 0)
    corpus.file("rows/cut.jsonl.gz", packed[:-1000],
                dead("read", "truncated gzip", traps=(52,), why="the file as a whole"),
                [kept("en", text=text, traps=(52,)) for text in texts[:3]])


def json_lines(corpus: MiniCorpus) -> None:
    """One bad line does not cost the others."""
    with corpus.rows("rows/damaged.jsonl") as rows:
        rows.add(corpus.english.text(), kept("en", traps=(52,), why="before the bad lines"))
        rows.raw(b'{"text": "\xff\xfe bad byte", "licence": "MIT", "url": "u"}',
                 dead("read", "bad encoding", traps=(52,)))
        rows.raw('{"text": "it stops here', dead("read", "invalid JSON", traps=(52,)))
        rows.raw('{"txt": "another field", "licence": "MIT", "url": "u"}',
                 dead("read", "missing field", traps=(56,)))
        rows.raw('{"text": null, "licence": "MIT", "url": "u"}', dead("read", "missing field"))
        rows.raw('{"text": 7, "licence": "MIT", "url": "u"}', dead("read", "missing field"))
        rows.raw(json.dumps({"text": corpus.english.text(), "url": "u"}),
                 kept("en", licence=FREE, why="no licence of its own: that of the source"))
        rows.raw('["a", "list"]', dead("read", "missing field"))
        rows.raw(json.dumps(corpus.chinese.text()), kept("zh", why="a bare text"))
        rows.raw("", None)  # blank lines are no records
        rows.raw('{"text": "\\ud800", "licence": "MIT", "url": "u"}',
                 dead("read", "bad encoding", why="half of a surrogate pair"))
        rows.raw("[" * 100_000, dead("read", "nested too deeply", traps=(46,)))
        rows.raw('{"text": "' + "x" * (LONGEST_RECORD + 1) + '"}',
                 dead("read", "too large", traps=(52,)))
        rows.add(corpus.chinese.text(), kept("zh", traps=(52,), why="after all of them"))
    corpus.file("rows/blank.jsonl", b"\n\n  \n", dropped("read", "empty file", traps=(42,)))


def pages(corpus: MiniCorpus) -> None:
    """Text of web pages without what stands around it."""
    en, zh = corpus.english, corpus.chinese
    story = en.sentences()
    corpus.file("web/news.html", f"""<html><head><title>News</title></head><body>
<nav><ul><li><a href="/">Home</a></li><li><a href="/n">News</a></li><li><a href="/s">Sport</a></li>
<li><a href="/w">Weather</a></li></ul></nav>
<div class="ads"><p>Buy the new phone today and save forty percent</p></div>
<article><h1>Notes</h1><p>{" ".join(story[:4])}</p><p>{" ".join(story[4:])}</p></article>
<div class="share-buttons">Share on Facebook</div>
<div class="cookie-notice">This site uses cookies to give you the best experience.</div>
<footer>Copyright 2020 Example Ltd. All rights reserved.</footer></body></html>""",
                kept("en", contains=(" ".join(story[:4]), " ".join(story[4:])),
                     lacks=("save forty percent", "Facebook", "cookies", "All rights reserved",
                            "Weather"), transforms=("extract:html",)))
    story = zh.sentences()
    corpus.file("web/xinwen.html", f"""<html><head><meta charset="utf-8"><title>新闻</title></head>
<body><div class="nav"><a href="/">首页</a> <a href="/a">新闻</a> <a href="/b">体育</a></div>
<div id="content"><p>{"".join(story[:4])}</p><p>{"".join(story[4:])}</p>
<p>（责任编辑：王小明）</p><p>上一篇：天气预报</p><p>分享到：微信 微博</p></div>
<div class="guanggao">限时优惠，全场五折，点击购买</div>
<div>版权所有 © 2020 某某网 京ICP备12345678号</div></body></html>""",
                kept("zh", contains=("".join(story[:4]), "".join(story[4:])),
                     lacks=("责任编辑", "上一篇", "分享到", "五折", "ICP备", "首页"),
                     transforms=("extract:html", "boilerplate_lines")))
    twice = page(en.text())
    corpus.file("web/same-a.html", twice, kept("en", traps=(50,)))
    corpus.file("web/same-b.html", twice,
                dropped("dedup", "exact duplicate", traps=(50,),
                        why="the same page twice in a process gives the same text"))
    corpus.file("web/script.html", "<html><script>var text = 'nothing but a script';</script>",
                dropped("filter", "empty after extraction", traps=(46,)))
    corpus.file("web/menu.html", "<html><body>" + "".join(
        f"<p>{item}</p>" for item in ("Home", "About us", "Products", "Services", "Prices",
                                      "Our team", "Careers", "Contact", "Imprint")),
                dropped("filter", "short lines", why="a menu"))
    corpus.file("web/caidan.html", '<html><meta charset="utf-8"><body>' + "".join(
        f"<p>{item}</p>" for item in ("公司简介", "产品中心", "新闻动态", "成功案例", "人才招聘",
                                      "在线留言", "售后服务", "下载中心", "行业资讯", "企业文化",
                                      "荣誉资质", "技术支持", "合作伙伴", "友情提示")),
                dropped("filter", "short lines", traps=(49,), why="a menu in Chinese"))
    text = zh.text()
    corpus.file("web/entities.html", page(
        text.replace("，", "&#65292;") + "&nbsp;A&amp;B&nbsp;两家公司都参加了展览。"),
                kept("zh", contains=(text, "A&B"), lacks=("&#", "&amp;", "&nbsp;")))
    text = en.text()
    corpus.file("web/readme.md", "---\ntitle: x\n---\n# What this page is about\n\n"
                                 f"[![b](b.svg)](x)\n\n{text}\n\n"
                                 "See [the page](https://example.org/page).\n",
                kept("en", contains=("# What this page is about", text, "See the page."),
                     lacks=("title: x", "b.svg", "example.org"), transforms=("extract:markdown",)))


def pdfs(corpus: MiniCorpus) -> None:
    """Reading order, hyphens, running headers; and PDFs that hold no text."""
    text = corpus.english.text()
    corpus.file("books/plain.pdf", pdf_files.make(pdf_files.lines(pdf_files.wrapped(text, 400))),
                kept("en", text=text, transforms=("extract:pdf",)))
    text = corpus.chinese.text()
    corpus.file("books/zhongwen.pdf", pdf_files.make(pdf_files.lines(
        pdf_files.wrapped(text, 400, pdf_files.CHINESE), font=pdf_files.CHINESE)),
        kept("zh", text=text, transforms=("extract:pdf",)))
    numbers = [f"(cid:{17 * i % 90 + 3})" * 6 for i in range(40)]
    corpus.file("books/no-map.pdf", pdf_files.make(pdf_files.lines(numbers)),
                dropped("extract", "garbled text", traps=(53,)))
    corpus.file("books/replaced.txt", "T\ufffd\ufffd \ufffdp\ufffdce of t\ufffdxt " * 40,
                dropped("extract", "garbled text", traps=(53,), why="U+FFFD all over"))
    corpus.file("books/private.txt", "".join(chr(0xE000 + i % 400) for i in range(600)),
                dropped("extract", "garbled text", traps=(53,), why="private-use characters"))
    text = corpus.chinese.text()
    corpus.file("books/one-unknown.txt", text.replace("。", "\ufffd", 1),
                kept("zh", traps=(53,), why="a single U+FFFD in a whole text is no reason"))
    corpus.file("books/scanned.pdf", pdf_files.make(lambda canvas: canvas.rect(50, 50, 400, 600)),
                dropped("extract", "no text layer"))
    corpus.file("books/cut.pdf", b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog",
                dead("extract", "damaged PDF", traps=(52,)))


def epub(chapters: list[str], order: list[int], leave_out: int | None = None) -> bytes:
    """A book whose spine lists its chapters in some order."""
    items = "".join(f'<item id="c{i}" href="c{i}.xhtml" media-type="application/xhtml+xml"/>'
                    for i in range(len(chapters)))
    spine = "".join(f'<itemref idref="c{i}"/>' for i in order)
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as book:
        def put(name: str, text: str) -> None:
            book.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), text)

        put("mimetype", "application/epub+zip")
        put("META-INF/container.xml", '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:'
            'container"><rootfiles><rootfile full-path="o/p.opf"/></rootfiles></container>')
        put("o/p.opf", '<package xmlns="http://www.idpf.org/2007/opf"><manifest>'
            '<item id="nav" href="nav.xhtml" properties="nav" '
            f'media-type="application/xhtml+xml"/>{items}</manifest><spine><itemref idref="nav"/>'
            f"{spine}</spine></package>")
        put("o/nav.xhtml", '<html><body><nav epub:type="toc"><ol><li>Table of all chapters</li>'
            "</ol></nav></body></html>")
        for i, text in enumerate(chapters):
            if i != leave_out:
                put(f"o/c{i}.xhtml", '<html xmlns="http://www.w3.org/1999/xhtml"><body>'
                    f"<p>{text}</p></body></html>")
    return data.getvalue()


def epubs(corpus: MiniCorpus) -> None:
    """Chapters in the order of the spine; one that is missing does not cost the book."""
    one, two, three = (corpus.english.text() for _ in range(3))
    corpus.file("books/order.epub", epub([one, two, three], [2, 0, 1]),
                kept("en", text=f"{three}\n{one}\n{two}", traps=(54,),
                     lacks=("Table of all chapters",), transforms=("extract:epub", "c4:lines")))
    one, two, three = (corpus.chinese.text() for _ in range(3))
    corpus.file("books/missing.epub", epub([one, two, three], [0, 1, 2], leave_out=1),
                kept("zh", text=f"{one}\n\n{three}", traps=(54,),
                     transforms=("extract:epub", "epub:missing_chapters=1")))
    corpus.file("books/broken.epub", epub([one], [0])[:300],
                dead("extract", "invalid EPUB", traps=(54,)))
    corpus.file("books/no-chapter.epub", epub([one], [0], leave_out=0),
                dead("extract", "invalid EPUB", traps=(54,)))


def archives(corpus: MiniCorpus) -> None:
    """WARC and WET; a corrupt member costs its own record."""
    en, zh = corpus.english.text, corpus.chinese.text
    texts = [en(), zh(), zh(), en(), zh()]
    broken = bytearray(gzip.compress(response(page(zh()).encode())))
    broken[len(broken) // 2:len(broken) // 2 + 40] = b"\xff" * 40
    records = [
        (record("warcinfo", b"info"), None),
        (response(page(texts[0]).encode(), "https://e.org/a", content_type="text/html"),
         kept("en", text=texts[0], url="https://e.org/a")),
        (response(page(texts[1]).encode("gbk"), content_type="text/html; charset=gbk"),
         kept("zh", text=texts[1], traps=(51,), transforms=("decode:gb18030",),
              why="the header names the encoding")),
        (response(page(texts[2], head='<meta charset="big5">').encode()),
         kept("zh", text=texts[2], traps=(51,), why="the header comes before meta")),
        (response(page("Not found").encode(), status="404 Not Found"),
         dropped("read", "http status")),
        (response(b"\x89PNG", content_type="image/png"), dropped("read", "not html")),
        (None, dead("read", "corrupt gzip", traps=(52,), why="a flipped stretch in one member")),
        (response(page(texts[3]).encode(), content_type="text/html"),
         kept("en", text=texts[3], traps=(52,), why="behind the damage")),
        (record("conversion", texts[4].encode(), "https://e.org/e", Content_Type="text/plain"),
         kept("zh", text=texts[4], url="https://e.org/e", why="WET")),
    ]
    corpus.file("archive/pages.warc.gz", b"".join(
        bytes(broken) if data is None else gzip.compress(data) for data, _ in records),
        records=[label for _, label in records])
    text = en()
    plain = response(page(text).encode(), content_type="text/html")
    corpus.file("archive/cut.warc", plain + plain[:-300],
                dead("read", "truncated WARC", traps=(52,), why="the second record breaks off"),
                [kept("en", text=text, traps=(52,))])


def parquet(corpus: MiniCorpus) -> None:
    """A table; a row without a text, and a file that is none."""
    texts = [corpus.english.text(), corpus.chinese.text(), None, "", corpus.chinese.text()]
    labels = [kept("en", text=texts[0]), kept("zh", text=texts[1]), dead("read", "missing field"),
              dropped("filter", "empty after extraction", traps=(42, 46)),
              kept("zh", text=texts[4])]
    handle = io.BytesIO()
    pyarrow.parquet.write_table(pa.table({"text": pa.array(texts, pa.string())}), handle)
    corpus.file("archive/rows.parquet", handle.getvalue(), records=labels)
    corpus.file("archive/cut.parquet", handle.getvalue()[:-40],
                dead("read", "invalid Parquet", traps=(52,)))
    handle = io.BytesIO()
    pyarrow.parquet.write_table(pa.table({"body": ["another name"]}), handle)
    corpus.file("archive/other.parquet", handle.getvalue(),
                dead("read", "missing field", traps=(56,)))
