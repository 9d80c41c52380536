"""Near copies among Debian's books: their text, HTML, PDF and EPUB forms, and unrelated pages.

The forms of a book in one language are copies of each other. Translations are not, though commands
and listings in them are the same; nor are pages of Python's documentation, or manual pages.
"""

import itertools
import os
from pathlib import Path

import pytest

from data_beam import prepare
from data_beam.config import (
    DedupConfig,
    ExtractConfig,
    FilterConfig,
    InputConfig,
    MinHashConfig,
    RecipeConfig,
    SourceConfig,
)
from data_beam.extract.html import main_text
from data_beam.runners import beam_options
from tests.data_beam import debian_material
from tests.data_beam.dedup.cases import rows


def lay_out(root: Path) -> None:
    """The books, a file a form, under `books/`, and two hundred unrelated documents beside."""
    (root / "books").mkdir(parents=True)
    for book in debian_material.books():
        for form, path in (("text", book.text), ("pdf", book.pdf), ("epub", book.epub)):
            if path is not None:
                os.symlink(path, root / "books" / f"{book.name}.{form}")
        pages = [main_text(page.read_text("utf-8"), ExtractConfig())[0] for page in book.html]
        (root / "books" / f"{book.name}.html.joined").write_text("\n\n".join(pages), "utf-8")
    found = debian_material.packages("python3.11-doc", "manpages-zh")
    for name, pattern in (("python3.11-doc", "**/library/*.html"),
                          ("manpages-zh", "**/zh_CN/man1/*.gz")):
        (root / name).mkdir()
        pages = [path for path in sorted(found[name].glob(pattern)) if path.stat().st_size > 3000]
        for path in pages[:100]:
            os.symlink(path, root / name / f"{path.parts[-3]}-{path.name}")


def recipe(root: Path, threshold: float) -> RecipeConfig:
    def some(pattern: str, format: str) -> InputConfig:
        return InputConfig(str(root), pattern, format)

    return RecipeConfig(
        sources=(SourceConfig("debian", "general", "GPL-2.0-or-later", (
            some("books/*.text", "text"), some("books/*.joined", "text"),
            some("books/*.pdf", "pdf"), some("books/*.epub", "epub"),
            some("python3.11-doc/*.html", "html"), some("manpages-zh/*.gz", "text"))),),
        filters=FilterConfig(max_short_line_fraction=1.0),
        dedup=DedupConfig(minhash=MinHashConfig(enabled=True, threshold=threshold)))


def clusters(output: Path) -> list[set[str]]:
    found: dict[str, set[str]] = {}
    for row in rows(output, "clusters"):
        found.setdefault(row["cluster"], set()).add(row["path"])
    return list(found.values())


def pairs(groups: list[set[str]]) -> set[tuple[str, str]]:
    return {pair for group in groups for pair in itertools.combinations(sorted(group), 2)}


@pytest.mark.slow
@pytest.mark.parametrize(("threshold", "least_recall"), [(0.6, 1.0), (0.7, 0.9)])
def test_forms_of_a_book_are_copies_and_unrelated_documents_are_not(
        tmp_path, capsys, threshold, least_recall):
    lay_out(tmp_path / "raw")
    output = tmp_path / "out"
    manifest = prepare.prepare(recipe(tmp_path / "raw", threshold), str(output),
                               beam_options.pipeline_options([]))
    assert manifest is not None and not manifest["total"]["dead_letters"]
    names = [path.name for path in (tmp_path / "raw/books").iterdir()]
    truth = pairs([{f"books/{name}" for name in names if name.partition(".")[0] == book.name
                    or name.startswith(f"{book.name}.")} for book in debian_material.books()])
    found = pairs([group for group in clusters(output)
                   if any(path.startswith("books/") for path in group)])
    with capsys.disabled():
        print(f"\nthreshold {threshold}: {len(found & truth)} of {len(truth)} pairs of forms found,"
              f" {len(found - truth)} other pairs; {manifest['total']['read']} documents")
        for pair in sorted(truth - found):
            print("  not found:", *pair)
    assert found <= truth  # precision 1
    assert len(found) >= least_recall * len(truth)
