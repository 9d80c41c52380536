"""Formats that are rarer, and damage that is."""

import gzip
import io
import json
import sqlite3
import tempfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import zstandard
from reportlab.lib.pdfencrypt import StandardEncryption

from tests.data_beam.extract import pdf_files
from tests.data_beam.mini_corpus.corpus import MiniCorpus, dead, dropped, kept
from tests.data_beam.mini_corpus.reading import epub, page
from tests.data_beam.warc_files import record, response


def add(corpus: MiniCorpus) -> None:
    json_arrays(corpus)
    databases(corpus)
    packages(corpus)
    encrypted(corpus)
    more_damage(corpus)


def json_arrays(corpus: MiniCorpus) -> None:
    """A file that is one array."""
    texts = corpus.english.text(), corpus.chinese.text()
    corpus.file("archive/list.json", json.dumps([texts[0], {"text": texts[1]}, {"body": "x"}, 7]),
                records=(kept("en", text=texts[0]), kept("zh", text=texts[1]),
                         dead("read", "missing field", traps=(56,)),
                         dead("read", "missing field")))
    corpus.file("archive/object.json", '{"text": "no array"}', dead("read", "invalid JSON"))
    corpus.file("archive/cut.json", '[{"text": "tw',
                records=(dead("read", "invalid JSON", traps=(52,)),))
    texts = corpus.english.text(), corpus.chinese.text()
    good = [json.dumps({"text": text}).encode() for text in texts]
    no_json = dead("read", "invalid JSON", traps=(52,))
    corpus.file("archive/damaged.json", b"[%s, \"bad \xff byte\", {no JSON}, %s, \"cu" % (*good,),
                records=(kept("en", text=texts[0], traps=(52,)),
                         dead("read", "bad encoding", traps=(52,)), no_json,
                         kept("zh", text=texts[1], traps=(52,)), no_json))
    corpus.file("archive/none.json", "[]", dropped("read", "empty file", traps=(42,)))


def databases(corpus: MiniCorpus) -> None:
    """The rows of a query in their order."""
    texts = corpus.english.text(), corpus.chinese.text()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "posts.sqlite")
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE posts (place INTEGER, text TEXT)")
            connection.executemany("INSERT INTO posts VALUES (?, ?)", [
                (2, texts[1]), (1, texts[0]), (3, None)])
            connection.execute("INSERT INTO posts VALUES (4, CAST(x'ff41' AS TEXT))")
        connection.close()
        data = path.read_bytes()
    corpus.file("archive/posts.sqlite", data, records=(
        kept("en", text=texts[0]), kept("zh", text=texts[1]), dead("read", "missing field"),
        dead("read", "missing field", traps=(51,))))
    corpus.file("archive/broken.sqlite", data[:100] + b"\xff" * 500,
                dead("read", "bad database", traps=(52,)))


def packages(corpus: MiniCorpus) -> None:
    """What installed Python packages say of themselves."""
    text = corpus.english.text()
    corpus.file("packages/good.metadata", "Metadata-Version: 2.1\nName: p\nDescription-Content-"
                f"Type: text/markdown\n\n# A package for those who read\n\n{text}\n",
                kept("en", contains=(text,), lacks=("Metadata-Version",),
                     transforms=("extract:package_description",)))
    corpus.file("packages/no.metadata", "Just a text, and no metadata at all.\n",
                dead("extract", "no package metadata"))
    s = corpus.english.sentences()
    corpus.file("packages/good.py", f'"""{" ".join(s[:4])}"""\n\n\ndef f(x):\n    """'
                f'{" ".join(s[4:])}"""\n    return x  # a comment is no documentation\n',
                kept("en", contains=(" ".join(s[:4]), " ".join(s[4:])), lacks=("a comment",),
                     transforms=("extract:docstrings",)))
    corpus.file("packages/bad.py", "def f(:\n    return\n", dead("extract", "invalid Python"))
    corpus.file("packages/bare.py", "def f(x):\n    return x\n",
                dropped("filter", "empty after extraction"))


def encrypted(corpus: MiniCorpus) -> None:
    """Books that nobody may read."""
    drawn = pdf_files.lines(pdf_files.wrapped(corpus.english.text(), 400))
    lock = StandardEncryption("password", "owner", canPrint=0, strength=128)
    data = pdf_files.make(drawn, encrypt=lock)
    corpus.file("books/locked.pdf", data, dead("extract", "encrypted PDF"))
    book = io.BytesIO(epub([corpus.english.text()], [0]))
    with zipfile.ZipFile(book, "a") as archive:
        archive.writestr(zipfile.ZipInfo("META-INF/rights.xml", (2020, 1, 1, 0, 0, 0)), "<rights/>")
    corpus.file("books/locked.epub", book.getvalue(), dead("extract", "encrypted EPUB"))
    corpus.file("books/pictures.epub", epub(["", "<img src='a.png'/>"], [0, 1]),
                dropped("extract", "no text layer", traps=(54,)))


def more_damage(corpus: MiniCorpus) -> None:
    """Of a damaged file what is whole is used, and the damage is said."""
    en, zh = corpus.english.text, corpus.chinese.text
    whole = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(zh().encode()))
    whole[len(whole) // 2] ^= 0x40
    corpus.file("web/flipped-zstd.txt", bytes(whole), dead("read", "corrupt zstd", traps=(52,)))
    text = en()
    corpus.file("archive/broken.warc", b"".join([
        response(page(text).encode(), content_type="text/html"),
        b"no record at all\r\nand more of it\r\n\r\n",
        response(b"", content_type="text/html"),
        record("response", b"not http!", Content_Type="application/http"),
        record("request", b"GET ")]), records=(
            kept("en", text=text),
            dead("read", "invalid WARC", traps=(52,), why="no record begins there"),
            dropped("read", "empty file", traps=(42,), why="a page without a body"),
            dead("read", "invalid HTTP", traps=(52,))))
    texts = [en(), zh()]
    handle = io.BytesIO()
    with pyarrow.parquet.ParquetWriter(handle, pa.schema([("text", pa.string())]),
                                       use_dictionary=False, compression="none",
                                       write_page_checksum=True, write_statistics=False) as writer:
        for text in texts:
            writer.write_table(pa.table({"text": [text]}))
    data = bytearray(handle.getvalue())
    place = data.index(texts[1].encode()) + 100
    data[place] ^= 0x20
    corpus.file("archive/damaged.parquet", bytes(data), dead(
        "read", "damaged Parquet", traps=(52,), why="a flipped bit in the second of two groups"),
        [kept("en", text=texts[0], traps=(52,))])
    rows = corpus.rows("rows/members.jsonl.gz")
    text = en()
    rows.raw(json.dumps({"text": text, "licence": "MIT", "url": "u"}), None)
    packed = bytearray(gzip.compress(rows.data) + gzip.compress(rows.data))
    packed[-20] ^= 0xff
    corpus.file("rows/members.jsonl.gz", bytes(packed), dead("read", "corrupt gzip", traps=(52,)), [
        kept("en", text=text, traps=(52,), why="nothing of the damaged second member is used")])
