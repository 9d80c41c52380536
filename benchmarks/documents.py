"""Real documents for benchmarks: pages of Debian's documentation packages, as JSON lines.

    python -m benchmarks.documents --output=documents.jsonl --count=20000 [--html=FOLDER]

Packages are fetched with `apt-get download` and unpacked with `dpkg -x`; nothing is installed. The
main text of each page comes from resiliparse. Pages are ordered by the hash of their path, so any
number of lines from the top is a sample. With --html the pages themselves of the first 1,000
documents are left in a folder, for benchmarks.extraction.
"""

import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from maxlm.cli.command_line import Parser, run_command
from maxlm.config import ConfigError

PACKAGES = ("linux-doc-6.1", "openjdk-17-doc", "libboost1.81-doc", "qtbase5-doc-html", "erlang-doc",
            "postgresql-doc-15", "python3.11-doc", "debian-reference-en", "rust-doc")
MIN_CHARACTERS = 500
_MAX_BYTES = 1_000_000
_HTML_PAGES = 1_000


def pages(folder: Path) -> Iterator[tuple[str, Path]]:
    """(hash of the path in the package, path) of each HTML page."""
    for path in folder.rglob("*.html"):
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= _MAX_BYTES:
            name = str(path.relative_to(folder))
            yield hashlib.sha256(name.encode()).hexdigest()[:32], path


def write_documents(output: Path, count: int, html: Path | None = None) -> int:
    """Writes `count` documents, or as many as the packages have; how many it wrote.

    Args:
      output: file of JSON lines.
      count: of documents.
      html: folder for the pages of the first ones, or None.

    Raises:
      ConfigError: no apt here, or it knows none of the packages.
    """
    from resiliparse.extract.html2text import extract_plain_text

    for tool in ("apt-get", "dpkg"):
        if shutil.which(tool) is None:
            raise ConfigError(f"there is no {tool} here; give a file of documents of your own, a "
                              "JSON object with a `text` a line, with --documents")
    with tempfile.TemporaryDirectory() as temporary:
        found: list[tuple[str, Path]] = []
        for name in PACKAGES:
            folder = Path(temporary, name)
            folder.mkdir()
            fetched = subprocess.run(["apt-get", "download", "-q", name], cwd=folder,
                                     capture_output=True, text=True)
            for archive in folder.glob("*.deb"):
                subprocess.run(["dpkg", "-x", str(archive), str(folder)], check=True)
            mine = list(pages(folder))
            print(f"{name}: {len(mine):,} pages" if mine else
                  f"{name}: left out: {fetched.stderr.strip().splitlines()[-1:]}", flush=True)
            found += mine
        if not found:
            raise ConfigError("apt-get download got none of the packages; has apt-get update been "
                              "run?")
        written = 0
        unfinished = output.with_name(output.name + ".unfinished")
        with unfinished.open("w", encoding="utf-8") as handle:
            for name, path in sorted(found):
                text = extract_plain_text(path.read_bytes().decode("utf-8", "replace"),
                                          main_content=True, alt_texts=False)
                if len(text) >= MIN_CHARACTERS:
                    handle.write(json.dumps({"id": name, "text": text}) + "\n")
                    written += 1
                    if html is not None and written <= _HTML_PAGES:
                        shutil.copyfile(path, html / f"{name}.html")
                    if written == count:
                        break
        unfinished.rename(output)
    return written


def main(argv: Sequence[str]) -> None:
    parser = Parser(prog="python -m benchmarks.documents", description=__doc__)
    parser.add_argument("--output", required=True, type=Path, help="file to write")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--html", type=Path, help=f"folder for the first {_HTML_PAGES:,} pages")
    arguments = parser.parse_args(argv)
    if arguments.html is not None:
        arguments.html.mkdir(parents=True, exist_ok=True)
    print(f"{write_documents(arguments.output, arguments.count, arguments.html):,} documents in "
          f"{arguments.output}")


if __name__ == "__main__":
    run_command(main)
