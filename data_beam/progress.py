"""What a running `prepare` shows, and the table at its end."""

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any, TextIO


class Progress:
    """A line every few seconds while the block runs: documents read, then shards written.

    Workers leave their counts in small files in `folder`; they are on this machine. On a terminal
    one line is rewritten, elsewhere a new one is printed now and then.
    """

    def __init__(self, folder: Path, output: Path, total_bytes: int, total_shards: int,
                 stream: TextIO = sys.stderr):
        self._folder, self._output = folder, output
        self._total, self._shards, self._stream = total_bytes, total_shards, stream
        self._terminal = stream.isatty()
        self._stop = threading.Event()
        self._started = time.monotonic()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Progress":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._show()
        if self._terminal:
            print(file=self._stream)

    def _run(self) -> None:
        while not self._stop.wait(0.5 if self._terminal else 5.0):
            self._show()

    def line(self) -> str:
        """The line as of now."""
        done = {"files": 0, "bytes": 0, "documents": 0}
        for path in self._folder.glob("*.json"):
            for key, value in json.loads(path.read_bytes()).items():
                done[key] += value
        elapsed = time.monotonic() - self._started
        # A worker's second try of a file counts twice.
        fraction = min(1.0, done["bytes"] / self._total) if self._total else 1.0
        written = sum(1 for path in self._output.glob("*/*") if "-of-" in path.name)
        text = (f"read {fraction:4.0%}, {done['files']:,} files, {done['documents']:,} documents; "
                f"written {written}/{self._shards} files; {elapsed:.0f} s")
        if 0.02 < fraction < 1 and elapsed > 2:
            text += f", about {elapsed / fraction - elapsed:.0f} s of reading left"
        return text

    def _show(self) -> None:
        if self._terminal:
            print(f"\r\x1b[K{self.line()}", end="", file=self._stream, flush=True)
        else:
            print(self.line(), file=self._stream, flush=True)


def summary(manifest: dict[str, Any]) -> str:
    """Table by source: read = kept + dropped + dead letters, with the reasons below."""
    heading = ("source", "domain", "read", "kept", "dropped", "dead", "MB of text", "languages")
    rows: list[tuple[str, ...]] = [heading]
    reasons = []
    for name, counts in manifest["sources"].items():
        languages = sorted(counts["languages"].items(), key=lambda item: (-item[1], item[0]))
        rows.append((name, counts["domain"], f"{counts['read']:,}", f"{counts['kept']:,}",
                     f"{sum(counts['dropped'].values()):,}",
                     f"{sum(counts['dead_letters'].values()):,}", f"{counts['bytes'] / 1e6:.2f}",
                     ", ".join(language for language, _ in languages[:3])))
        for kind in ("dropped", "dead_letters"):
            reasons += [f"  {name}: {kind.replace('_', ' ')}, {reason}: {count:,}"
                        for reason, count in counts[kind].items()]
    total = manifest["total"]
    rows.append(("total", "", f"{total['read']:,}", f"{total['kept']:,}", f"{total['dropped']:,}",
                 f"{total['dead_letters']:,}", f"{total['bytes'] / 1e6:.2f}", ""))
    widths = [max(len(row[i]) for row in rows) for i in range(len(heading))]
    lines = []
    for entry in rows:
        cells = [cell.rjust(width) if 2 <= i <= 6 else cell.ljust(width)
                 for i, (cell, width) in enumerate(zip(entry, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines + reasons)
