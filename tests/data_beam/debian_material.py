"""Real documents for tests: Debian's documentation packages, the same books in several formats.

Fetched once with `apt-get download` and unpacked with `dpkg -x` (nothing is installed) into
`$MAXLM_TEST_CACHE`, by default `~/.cache/maxlm-tests`. Where apt cannot, the test that asks is
skipped and says why.
"""

import dataclasses
import functools
import gzip
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

PACKAGES = ("debian-reference-en", "debian-reference-zh-cn", "debian-reference-zh-tw",
            "python3.11-doc", "debian-faq", "debian-faq-zh-cn", "installation-guide-amd64",
            "manpages-zh", "debmake-doc", "live-manual-epub", "live-manual-html",
            "live-manual-txt")
_SECONDS = 120


def cache_folder() -> Path:
    return Path(os.environ.get("MAXLM_TEST_CACHE") or Path.home() / ".cache" / "maxlm-tests")


def _fetch(name: str, folder: Path) -> None:
    """Leaves the unpacked package at `folder`, whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        try:
            subprocess.run(["apt-get", "download", "-q", name], cwd=temporary, check=True,
                           timeout=_SECONDS, capture_output=True, text=True)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"apt-get download {name}: {error.stderr.strip().splitlines()[-1]} "
                        "(has apt-get update been run?)")
        except subprocess.TimeoutExpired:
            pytest.skip(f"apt-get download {name}: no answer in {_SECONDS} s")
        archive, = Path(temporary).glob("*.deb")
        subprocess.run(["dpkg", "-x", str(archive), f"{temporary}/unpacked"], check=True)
        try:
            os.rename(f"{temporary}/unpacked", folder)
        except OSError:
            if not folder.is_dir():  # else another process was first
                raise


def packages(*names: str) -> dict[str, Path]:
    """Folders of the unpacked packages by name; all of `PACKAGES` when none is named.

    Skips the calling test where there is no apt, or it cannot fetch a package.
    """
    names = names or PACKAGES
    for tool in ("apt-get", "dpkg"):
        if shutil.which(tool) is None:
            pytest.skip(f"Debian's documentation is fetched with {tool}, which is not here")
    result = {}
    for name in names:
        folder = cache_folder() / "debian" / name
        if not folder.is_dir():
            _fetch(name, folder)
        result[name] = folder
    return result


@dataclasses.dataclass(frozen=True)
class Book:
    """One book in several formats. `.gz` files are to be read as they are by the readers."""

    name: str
    text: Path
    html: tuple[Path, ...]
    """Its pages, without the index."""
    pdf: Path | None = None
    epub: Path | None = None

    def plain(self) -> str:
        """The text twin."""
        return gzip.decompress(self.text.read_bytes()).decode("utf-8")


def _pages(folder: Path, pattern: str) -> tuple[Path, ...]:
    return tuple(sorted(p for p in folder.glob(pattern) if not p.name.startswith("index.")))


@functools.cache
def books() -> Sequence[Book]:
    """Books whose text, HTML and more are the same words, English and Chinese.

    Skips the calling test as `packages` does.
    """
    share = {name: folder / "usr/share" for name, folder in packages().items()}
    result: list[Book] = []

    def add(name: str, folder: Path, stem: str, html: tuple[Path, ...], *forms: str) -> None:
        paths = {form.partition(".")[0]: folder / f"{stem}.{form}" for form in forms}
        result.append(Book(name, folder / f"{stem}.txt.gz", html, **paths))

    for language, suffix in (("en", ""), ("zh-cn", "-zh-cn")):
        folder = share[f"debian-faq{suffix}"] / "doc/debian/FAQ"
        add(f"debian-faq-{language}", folder, f"debian-faq.{language}",
            _pages(folder / (language if suffix else ""), f"*.{language}.html"),
            *([] if suffix else ["pdf.gz"]))  # the Chinese one holds a few pages only
    for language in ("en", "zh-cn", "zh-tw"):
        folder = share[f"debian-reference-{language}"] / "debian-reference"
        add(f"debian-reference-{language}", folder, f"debian-reference.{language}",
            _pages(folder, f"*.{language}.html"), "pdf")
    for language in ("en", "zh-cn", "zh-tw"):
        folder = share["debmake-doc"] / "doc/debmake-doc"
        add(f"debmake-doc-{language}", folder, f"debmake-doc.{language}",
            _pages(folder / "html", f"*.{language}.html"), "pdf", "epub")
    for language in ("en", "zh_CN"):
        folder = share["installation-guide-amd64"] / "doc/installation-guide-amd64" / language
        add(f"installation-guide-{language}", folder, f"install.{language}",
            _pages(folder, "*.html"), "pdf.gz")
    manual = "doc/live-manual"
    result.append(Book(
        "live-manual-en", share["live-manual-txt"] / manual / "txt/live-manual.en.txt.gz",
        (share["live-manual-html"] / manual / "html/live-manual.en.html",), None,
        share["live-manual-epub"] / manual / "epub/live-manual.en.epub"))
    return tuple(result)
