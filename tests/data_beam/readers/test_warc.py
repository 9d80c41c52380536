"""Web archives: pages and texts out, everything else counted, damage survived and named."""

import gzip
import hashlib
import zlib
from pathlib import Path

import pytest
import zstandard

from data_beam.base.records import DeadLetter, Record
from tests.data_beam.readers import reading
from tests.data_beam.readers.reading import outcomes
from tests.data_beam.warc_files import members, record, response

LIMIT = 2000


def read(folder: Path, data: bytes) -> list:
    (folder / "a.warc").write_bytes(data)
    return reading.read(folder, LIMIT, format="warc")


PAGE = "<html><body><p>茶的历史 and more</p></body></html>"


@pytest.mark.parametrize("form", ["plain", "members", "one gzip", "zstd"])
def test_pages_and_texts_come_out_and_other_records_are_counted_or_no_documents(tmp_path, form):
    records = [
        record("warcinfo", b"software: test"),
        record("request", b"GET / HTTP/1.1\r\n\r\n", "http://e.org/1"),
        response(PAGE.encode(), "http://e.org/1"),
        record("metadata", b"x: y", "http://e.org/1"),
        response(b"gone", "http://e.org/2", status="404 Not Found"),
        response(b"%PDF-1.4", "http://e.org/3", content_type="application/pdf"),
        record("conversion", "纯文本".encode(), "http://e.org/4", Content_Type="text/plain"),
        record("resource", PAGE.encode(), "<http://e.org/5>", Content_Type="text/html"),
        record("response", b"1 2 3", "dns:e.org", Content_Type="text/dns"),
        response(b"\xff\xfe bad \xd8", "http://e.org/6"),
        response(b"x" * (LIMIT + 1), "http://e.org/7"),
        response(b"  ", "http://e.org/8"),
        response(PAGE.encode(), "http://e.org/9", content_type="image/png",
                 WARC_Identified_Payload_Type="text/html"),
        record("response", b"no http", "http://e.org/10", Content_Type="application/http"),
    ]
    data = {"plain": b"".join, "members": members,
            "zstd": lambda r: zstandard.compress(b"".join(r)),
            "one gzip": lambda r: gzip.compress(b"".join(r))}[form](records)
    items = read(tmp_path, data)
    assert outcomes(items) == [
        ("Record", 3, PAGE), ("Dropped", 5, "http status"), ("Dropped", 6, "not html"),
        ("Record", 7, "纯文本"), ("Record", 8, PAGE), ("Dropped", 9, "not html"),
        ("DeadLetter", 10, "bad encoding"), ("DeadLetter", 11, "too large"),
        ("Dropped", 12, "empty file"), ("Record", 13, PAGE), ("DeadLetter", 14, "invalid HTTP")]
    assert [item.url for item in items if isinstance(item, Record)] == [
        f"http://e.org/{number}" for number in (1, 4, 5, 9)]
    assert [item.format for item in items if isinstance(item, Record)] == [
        "html", "text", "html", "html"]
    places = [sum(map(len, records[:n])) for n in range(14)] if form == "plain" else [
        len(members(records[:n])) for n in range(14)] if form == "members" else [0] * 14
    assert [item.offset for item in items if isinstance(item, Record)] == [
        places[n] for n in (2, 6, 7, 12)]
    assert items[0].bytes_sha256 == hashlib.sha256(PAGE.encode()).hexdigest()
    assert items[1].detail == "404" and items[2].detail == "application/pdf"


def test_a_record_that_does_not_say_that_it_is_a_response_may_be_one(tmp_path):
    page = response(PAGE.encode()).replace(
        b"Content-Type: application/http; msgtype=response\r\n", b"")
    assert page.count(b"Content-Type") == 1
    none, = read(tmp_path, record("response", b"1 2 3"))
    assert (none.reason, none.detail) == ("not html", "no HTTP")
    assert outcomes(read(tmp_path, page)) == [("Record", 1, PAGE)]


@pytest.mark.parametrize("body, is_page", [
    (PAGE.encode(), True), (b"\r\n <!DOCTYPE html><p>x", True),
    (b"\xef\xbb\xbf<HTML lang=zh>x", True),
    (gzip.compress(PAGE.encode()), True), (b"<!-- a --><p>x", True), (b"<br>x", True),
    (b"<bread>x", False), (b"%PDF-1.7 <html>", False), (b"{}", False),
    (b"<?xml version='1.0'?>", False),
    (b"x <html>", False), (b"<html", False)])
def test_a_response_without_a_media_type_is_a_page_where_it_begins_as_one(tmp_path, body, is_page):
    http = "Content-Encoding: gzip\r\n" if body.startswith(b"\x1f") else ""
    untyped = response(body, http=http).replace(b"Content-Type: text/html; charset=utf-8\r\n", b"")
    length = len(untyped.split(b"\r\n\r\n", 1)[1]) - 4
    untyped = untyped.replace(b"Content-Length: %d" % (length + 40), b"Content-Length: %d" % length)
    item, = read(tmp_path, untyped)
    assert isinstance(item, Record) == is_page
    assert is_page or (item.reason, item.detail) == ("not html", "no Content-Type")


def test_the_charset_of_the_http_header_comes_first(tmp_path):
    page = '<meta charset="windows-1251"><p>Привет</p>'  # which decodes the same bytes to others
    item, = read(tmp_path, response(
        page.encode("koi8-r"), content_type='text/html;charset="KOI8-R"'))
    assert item.text == page and item.transforms == ("decode:koi8-r",)
    page = '<meta charset="gbk"><p>茶的历史</p>'
    item, = read(tmp_path, response(page.encode("gbk"), content_type="text/html"))
    assert item.text == page and item.transforms == ("decode:gb18030",)


def chunked(body: bytes) -> bytes:
    return b"5\r\n" + body[:5] + b"\r\n%x;x=y\r\n" % len(body[5:]) + body[5:] + b"\r\n0\r\n\r\n"


@pytest.mark.parametrize("http, encode", [
    ("Transfer-Encoding: chunked\r\n", chunked),
    ("Content-Encoding: gzip\r\n", gzip.compress),
    ("Content-Encoding: deflate\r\n", zlib.compress),
    ("Content-Encoding: deflate\r\n", lambda data: zlib.compress(data)[2:-4]),
    ("Content-Encoding: zstd\r\n", zstandard.compress),
    ("Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n",
     lambda data: chunked(gzip.compress(data))),
    ("Transfer-Encoding: chunked\r\nContent-Encoding: br\r\n", bytes),  # undone by the archiver
    ("Content-Encoding: gzip\r\n", bytes), ("Content-Encoding: identity\r\n", bytes),
])
def test_transfer_and_content_encodings_are_undone(tmp_path, http, encode):
    item, = read(tmp_path, response(encode(PAGE.encode()), http=http))
    assert item.text == PAGE


@pytest.mark.parametrize("http, body, reason", [
    ("Content-Encoding: br\r\n", b"\x8b\x02\x80abc", "unknown content encoding"),
    ("Content-Encoding: gzip\r\n", gzip.compress(PAGE.encode())[:-5], "invalid HTTP"),
    ("Content-Encoding: gzip\r\n", gzip.compress(b"x" * 10**6), "too large"),
    ("Content-Encoding: zstd\r\n", zstandard.compress(b"x" * 10**6), "too large"),
    ("Content-Encoding: zstd\r\n", b"\x28\xb5\x2f\xfd\xff\xff\xff", "invalid HTTP"),
    ("Content-Encoding: zstd\r\n", zstandard.compress(PAGE.encode())[:-3], "invalid HTTP"),
    ("Transfer-Encoding: chunked\r\n", b"5\r\nab", "invalid HTTP"),
])
def test_bodies_that_cannot_be_had_are_dead_letters(tmp_path, http, body, reason):
    assert outcomes(read(tmp_path, response(body, http=http) + response(PAGE.encode()))) == [
        ("DeadLetter", 1, reason), ("Record", 2, PAGE)]


def test_a_cut_payload_is_marked(tmp_path):
    item, = read(tmp_path, response(PAGE.encode(), WARC_Truncated="length"))
    assert item.transforms == ("warc:truncated",)


TEXTS = [f"<p>page {i} {hashlib.sha256(bytes([i])).hexdigest()}</p>" for i in range(20)]
URLS = [f"http://e.org/{i}" for i in range(20)]
PAGES = [response(text.encode(), url) for text, url in zip(TEXTS, URLS, strict=True)]


@pytest.mark.parametrize("compress", [members, b"".join], ids=["gzip", "plain"])
def test_a_file_cut_short_gives_its_good_records_and_is_named(tmp_path, compress):
    data = compress(PAGES)
    for cut in range(1, len(data), 97):
        items = read(tmp_path, data[:cut])
        good = [item for item in items if isinstance(item, Record)]
        assert [item.url for item in good] == URLS[:len(good)]
        rest = items[len(good):]
        whole = compress(PAGES[:len(good)])
        if data[:cut].rstrip(b"\r\n") == whole.rstrip(b"\r\n"):
            assert not rest or isinstance(rest[0], DeadLetter)
        else:
            assert len(rest) == 1 and isinstance(rest[0], DeadLetter), cut
            assert "damaged" in rest[0].detail or rest[0].reason == "invalid WARC"


@pytest.mark.parametrize("harm", [
    lambda part: part[:60] + b"\xff" * 30 + part[90:],
    lambda part: part[:-6] + bytes([part[-6] ^ 1]) + part[-5:],
    lambda part: part[:40] + bytes([part[40] ^ 85]) + part[41:]],
    ids=["stretch", "checksum", "one byte"])
@pytest.mark.parametrize("bad", [0, 7, 19])
def test_a_corrupt_member_costs_its_own_record(tmp_path, harm, bad):
    parts = [gzip.compress(page) for page in PAGES]
    parts[bad] = harm(parts[bad])
    items = read(tmp_path, b"".join(parts))
    assert [item.url for item in items if isinstance(item, Record)] == [
        *URLS[:bad], *URLS[bad + 1:]]
    dead, = (item for item in items if isinstance(item, DeadLetter))
    assert (dead.reason, dead.origin.record) == ("corrupt gzip", bad + 1)


def with_length(page: bytes, change: int) -> bytes:
    """A record whose Content-Length is wrong by some bytes."""
    head, block = page.split(b"\r\n\r\n", 1)
    length = len(block) - 4
    return head.replace(b"Content-Length: %d" % length,
                        b"Content-Length: %d" % (length + change)) + b"\r\n\r\n" + block


@pytest.mark.parametrize("compress", [members, b"".join, lambda r: gzip.compress(b"".join(r))],
                         ids=["members", "plain", "one gzip"])
@pytest.mark.parametrize("change", [
    30, -30, 1, -1, 4, -4, 26, 150, -100, 400, 1000,
    len(PAGES[4].split(b"\r\n\r\n")[0]) + 4])  # up to the end of the next record's header
def test_a_wrong_length_is_found_out_and_no_record_is_lost(tmp_path, compress, change):
    pages = [*PAGES[:3], with_length(PAGES[3], change), *PAGES[4:]]
    items = read(tmp_path, compress(pages))
    assert [(item.url, item.text.rstrip("\r\n")) for item in items] == [
        *zip(URLS, TEXTS, strict=True)]
    assert [i for i, item in enumerate(items) if "warc:wrong_length" in item.transforms] == (
        [3] if change not in (1, 4) else [])  # one that takes in line ends does no harm


@pytest.mark.parametrize("change", [30, -30, 10**9])
@pytest.mark.parametrize("kind", ["request", "metadata", "response"])
def test_a_wrong_length_of_other_records(tmp_path, kind, change):
    """Of records that are no documents, and of those that are too large: the next is found."""
    block = b"x" * (LIMIT + 70_000 if kind == "response" else 100)
    bad = with_length(record(kind, block), change)
    found = [item.url for item in read(tmp_path, PAGES[0] + bad + PAGES[1])
             if isinstance(item, Record)]
    if change < 10**9:
        assert found == URLS[:2]
    else:  # more than is held in memory: the file is named as truncated
        *_, last = read(tmp_path, PAGES[0] + bad + PAGES[1])
        assert (last.reason, last.origin.record) == ("truncated WARC", None)


def test_the_last_record_with_a_wrong_length(tmp_path):
    short, long = with_length(PAGES[1], -30), with_length(PAGES[1], 30)
    for last, outcome in ((short, ("Record", 2, TEXTS[1])),
                          (long, ("DeadLetter", None, "truncated WARC")),
                          (short + b"more", ("DeadLetter", 2, "invalid WARC"))):
        assert outcomes(read(tmp_path, PAGES[0] + last)) == [("Record", 1, TEXTS[0]), outcome]


def test_a_page_that_quotes_an_archive_is_whole(tmp_path):
    quoted = b"<p>An archive:</p><pre>\r\n\r\nWARC/1.0\r\nWARC-Type: response\r\n\r\n</pre>"
    pages = [response(quoted), PAGES[0]]
    assert outcomes(read(tmp_path, b"".join(pages)))[0] == ("Record", 1, quoted.decode())


def test_garbage_between_records_is_one_dead_letter(tmp_path):
    bad = PAGES[1].replace(b"Content-Length", b"Content-Size  ")
    data = PAGES[0] + bad + b"\r\ngarbage\r\n WARC/1.0\r\nmore\r\n" * 5 + PAGES[2]
    assert outcomes(read(tmp_path, data)) == [
        ("Record", 1, TEXTS[0]), ("DeadLetter", 2, "invalid WARC"), ("Record", 3, TEXTS[2])]


@pytest.mark.parametrize("data, outcome", [
    (b"no archive at all " * 10, ("DeadLetter", 1, "invalid WARC")),
    (record("warcinfo", b"x"), ("Dropped", None, "no documents")),
    (record("warcinfo", b"x") + record("Reponse", b"y") * 2, ("Dropped", None, "no documents")),
    (members([record("revisit", b"y")]), ("Dropped", None, "no documents")),
    (record("", b"y"), ("DeadLetter", 1, "invalid WARC")),
    (b"\r\n\r\n", ("Dropped", None, "empty file")),
    (b"WARC/1.0\r\n" + b"a: b\r\n" * 60_000, ("DeadLetter", 1, "invalid WARC")),
    (b"WARC/1.0\r\nContent-Length: 99999999999999999999\r\nWARC-Type: response\r\n\r\n",
     ("DeadLetter", None, "truncated WARC")),
    (b"WARC/1.0\r\nContent-Length: -1\r\n\r\n", ("DeadLetter", 1, "invalid WARC")),
])
def test_files_without_documents(tmp_path, data, outcome):
    item, = read(tmp_path, data)
    assert outcomes([item]) == [outcome]
    assert b"Reponse" not in data or item.detail == "records: reponse 2, warcinfo 1"
