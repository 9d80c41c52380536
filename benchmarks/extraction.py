"""Pages per second of extraction, on one core.

    python -m benchmarks.extraction [--pages=FOLDER --pdfs=FOLDER --seconds=10]

Takes the HTML files under --pages (Sphinx's, Debian's or any other documentation; without it, made
pages of an article among menus, scripts and advertisements) and the PDF files under --pdfs (without
it, made ones of English and Chinese in two columns), and extracts all in turn, each of these:

    resiliparse, alone    the extractor without our rules
    resiliparse           with them, as `extract.html=resiliparse` does
    trafilatura           with them
    pdf                   PDFium, columns, edges and paragraphs

Time is processor time of the process. Prints pages a second, MB a second of what goes in, and the
ratio to resiliparse alone. The target is 500 HTML pages a second of 60 kB.
"""

import dataclasses
import functools
import gzip
import importlib.metadata
import io
import os
import random
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pypdfium2
from resiliparse.extract.html2text import extract_plain_text

from data_beam.config import ExtractConfig
from data_beam.extract import html, pdf
from data_beam.readers import encoding
from maxlm.cli import command_line

_WORDS = re.findall(r"\w+", """
the a tea leaf river mountain merchant carried brewed long history of and in to from over harbour
price morning book poet officials north wrote learned small great year""")
_HAN = "茶是一种饮料起源于中国后来传到世界各地成为人们日常的商人把压砖翻过高山运草原诗写了书讲怎样"


def made_page(rng: random.Random) -> str:
    """A page of some 60 kB: a third article, the rest what surrounds one on the web."""
    def words(count: int) -> str:
        return " ".join(rng.choices(_WORDS, k=count))

    def links(count: int) -> str:
        return "".join(f'<li class="item-{i}"><a href="/{rng.random()}" title="{words(4)}">'
                       f"{words(5)}</a></li>" for i in range(count))

    body = "".join(
        f'<p class="text">{words(rng.randint(40, 120))} <a href="/{i}">{words(3)}</a>, '
        f'<em>{words(2)}</em> {words(30)}.</p><p>{"".join(rng.choices(_HAN, k=120))}。</p>'
        for i in range(12))
    script = f"<script>var data = [{','.join(str(rng.random()) for _ in range(700))}];</script>"
    return (f"<!DOCTYPE html><html><head><title>{words(5)}</title>{script}<style>"
            f"{'.x{color:red}' * 200}</style></head><body><header><ul>{links(40)}</ul></header>"
            f'<div class="main"><article><h1>{words(6)}</h1>{body}'
            f'<div class="ads">{words(20)}</div><p>责任编辑：张三</p><ul>{links(20)}</ul></article>'
            f"</div><aside>{links(30)}</aside>{script}"
            f"<footer><ul>{links(30)}</ul><p>© 2020 The Tea Company</p></footer></body></html>")


def made_pdf(rng: random.Random) -> bytes:
    """Twenty pages of two columns, through the library that the tests use."""
    try:
        from reportlab.pdfbase import pdfmetrics
        from reportlab.pdfbase.cidfonts import UnicodeCIDFont
        from reportlab.pdfgen.canvas import Canvas
    except ImportError:
        raise SystemExit("error: name PDF files with --pdfs, or pip install reportlab") from None
    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
    buffer = io.BytesIO()
    canvas = Canvas(buffer)
    for page in range(20):
        canvas.setFont("Helvetica", 9)
        canvas.drawString(60, 810, f"Chapter {page // 5}")
        for column, x in enumerate((60, 310)):
            canvas.setFont("STSong-Light" if page % 2 else "Helvetica", 9)
            for row in range(55):
                text = "".join(rng.choices(_HAN, k=24)) if page % 2 else \
                    " ".join(rng.choices(_WORDS, k=9))[:50]
                canvas.drawString(x, 780 - 13 * row - column * 0.1, text)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def read_files(folder: str, patterns: Sequence[str]) -> list[bytes]:
    """The files under a folder, of at most 4 MB each, in the order of their paths."""
    paths = sorted(path for pattern in patterns for path in Path(folder).rglob(pattern)
                   if path.is_file())
    found = []
    for path in paths:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        if len(data) <= 4 * 2**20:
            found.append(data)
    if not found:
        raise SystemExit(f"error: no {' or '.join(patterns)} under {folder}")
    return found


def seconds_a_round(function: Callable[[], object], seconds: float) -> float:
    """Least processor time of a round, of as many as fit in `seconds` (one at least)."""
    best, spent = float("inf"), 0.0
    while spent < seconds or best == float("inf"):
        began = time.process_time()
        function()
        took = time.process_time() - began
        best, spent = min(best, took), spent + took
    return best


def main(argv: Sequence[str]) -> int:
    """The command; see the module's docstring."""
    parser = command_line.Parser(prog="python -m benchmarks.extraction", description=__doc__)
    parser.add_argument("--pages", default="", help="folder of HTML files (default: made ones)")
    parser.add_argument("--pdfs", default="", help="folder of PDF files (default: made ones)")
    parser.add_argument("--seconds", type=float, default=10, help="per extractor (default: 10)")
    arguments = parser.parse_args(argv)
    rng = random.Random(0)
    raw = read_files(arguments.pages, ("*.html", "*.htm")) if arguments.pages else [
        made_page(rng).encode() for _ in range(200)]
    pages, size = [], 0
    for data in raw:
        try:
            pages.append(encoding.decode(data, html=True)[0])
            size += len(data)
        except encoding.Undecodable:
            continue
    files = read_files(arguments.pdfs, ("*.pdf", "*.pdf.gz")) if arguments.pdfs else [made_pdf(rng)]
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}"
                         for name in ("resiliparse", "trafilatura", "pypdfium2"))
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, {versions}")
    print(f"{len(pages)} HTML pages of {size / len(pages) / 1e3:.0f} kB")
    config = ExtractConfig()
    precise = dataclasses.replace(config, html="trafilatura")
    extractors: dict[str, Callable[[str], object]] = {
        "resiliparse, alone": functools.partial(
            extract_plain_text, main_content=True, alt_texts=False, links=False),
        "resiliparse": lambda page: html.main_text(page, config),
        "trafilatura": lambda page: html.main_text(page, precise)}
    first = 0.0
    print(f"{'':>20} {'pages/s':>8} {'MB/s':>7} {'ratio':>6}")
    for name, one in extractors.items():
        took = seconds_a_round(lambda: [one(page) for page in pages],  # noqa: B023
                               arguments.seconds)
        first = first or took
        print(f"{name:>20} {len(pages) / took:>8.0f} {size / took / 1e6:>7.1f} "
              f"{first / took:>6.2f}", flush=True)
    count = sum(len(pypdfium2.PdfDocument(data)) for data in files)
    took = seconds_a_round(lambda: [pdf.text(data, config) for data in files], arguments.seconds)
    print(f"{'pdf':>20} {count / took:>8.0f} {sum(map(len, files)) / took / 1e6:>7.1f}")
    return 0


if __name__ == "__main__":
    command_line.run_command(main)
