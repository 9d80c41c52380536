"""What a running command shows: progress on standard error, and the table of counts at the end."""

import json
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

from apache_beam.io.filesystems import FileSystems

from data_beam.base import files

_SECONDS = 0.5


class StatusLine:
    """A line now and then, on standard error by default: rewritten in place on a terminal, a new
    line every `seconds` elsewhere."""

    def __init__(self, seconds: float = 5.0, stream: TextIO | None = None):
        self._stream = stream if stream is not None else sys.stderr
        self.terminal = self._stream.isatty()
        self.seconds = 0.5 if self.terminal else seconds
        self._shown = time.monotonic()

    def __call__(self, line: str | Callable[[], str]) -> None:
        """Shows a line (or what makes it) if enough time has passed."""
        if time.monotonic() - self._shown > self.seconds:
            self.show(line if isinstance(line, str) else line())

    def show(self, line: str, last: bool = False) -> None:
        """Shows a line in any case; the last one stays."""
        self._shown = time.monotonic()
        begin, end = ("\r\x1b[K", "\n" if last else "") if self.terminal else ("", "\n")
        print(f"{begin}{line}", end=end, file=self._stream, flush=True)


class WorkerProgress:
    """The counts of one worker, in a small file of a local folder that the command reads every few
    seconds; in none if the folder is ""."""

    def __init__(self, folder: str):
        self._folder, self._name = folder, f"{uuid.uuid4().hex}.json"
        self._done = {"files": 0, "bytes": 0, "documents": 0}
        self._reported = 0.0

    def add(self, **done: int) -> None:
        """Counts `files`, `bytes` or `documents`."""
        for key, count in done.items():
            self._done[key] += count
        if self._folder and time.monotonic() - self._reported > _SECONDS:
            self.flush()

    def flush(self) -> None:
        if self._folder:
            self._reported = time.monotonic()
            data = json.dumps(self._done).encode("ascii")
            files.write_atomically(FileSystems.join(self._folder, self._name), self._folder, data)


class Progress:
    """A line every few seconds while a stage runs. Workers on this machine leave their counts in
    small files of `folder`. The `unit`, `bytes` or `documents`, is counted against the total of the
    whole stage, which reads its documents in so many passes."""

    def __init__(self, stage: str, folder: Path, unit: str, total: int,
                 stream: TextIO | None = None, passes: int = 1):
        self._stage, self._folder, self._unit, self._total = stage, folder, unit, total
        self._passes = passes
        self._line = StatusLine(stream=stream)
        self._stop = threading.Event()
        self._started = time.monotonic()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Progress":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._line.show(self.line(), last=True)

    def _run(self) -> None:
        while not self._stop.wait(self._line.seconds):
            self._line.show(self.line())

    def line(self) -> str:
        done = {"files": 0, "bytes": 0, "documents": 0}
        for path in self._folder.glob("*.json"):
            for key, value in json.loads(path.read_bytes()).items():
                done[key] += value
        elapsed = time.monotonic() - self._started
        # A bundle that a worker tries again counts twice.
        whole = self._total * self._passes
        fraction = min(1.0, done[self._unit] / whole) if whole else 1.0
        read = f"{done['files']:,} files, " if done["files"] else ""
        documents = done["documents"] // self._passes
        text = f"{self._stage} {fraction:4.0%}, {read}{documents:,} documents; {elapsed:.0f} s"
        if 0.02 < fraction < 1 and elapsed > 2:
            left = round(elapsed / fraction - elapsed)
            # "0 s left" may be wrong: the last bytes read may contain most of the documents.
            text += f", about {left} s left" if left else ""
        return text


def summary(manifest: dict[str, Any], examples: Mapping[tuple[str, str, str], str]) -> str:
    """Table by source: read (+ made) = kept + dropped + dead letters, with the reasons below.

    The column `made` counts documents that augmentation made; without any it is left out.

    Args:
      manifest: of the corpus.
      examples: a dead letter of some sources, stages and reasons, in words.
    """
    heading = ("source", "domain", "read", "made", "kept", "dropped", "dead", "MB of text",
               "languages")
    rows: list[tuple[str, ...]] = [heading]
    reasons = []

    def add(name: str, domain: str, counts: dict[str, Any], languages: str) -> None:
        numbers = (f"{counts[kind]:,}" for kind in (
            "read", "augmented", "kept", "dropped", "dead_letters"))
        rows.append((name, domain, *numbers, f"{counts['bytes'] / 1e6:.2f}", languages))

    for name, counts in manifest["sources"].items():
        languages = sorted(counts["languages"].items(), key=lambda item: (-item[1], item[0]))
        totals = {}
        for kind in ("dropped", "dead_letters"):
            totals[kind] = sum(sum(counted.values()) for counted in counts[kind].values())
            for stage, counted in counts[kind].items():
                for reason, count in counted.items():
                    reasons.append(
                        f"  {name}: {kind.replace('_', ' ')}, {stage}, {reason}: {count:,}")
                    if kind == "dead_letters" and (name, stage, reason) in examples:
                        reasons.append(f"    for example {examples[name, stage, reason]}")
        add(name, counts["domain"], {**counts, **totals},
            ", ".join(language for language, _ in languages[:3]))
    total = manifest["total"]
    add("total", "", total, "")
    if not total["augmented"]:
        rows = [row[:3] + row[4:] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for entry in rows:
        cells = [cell.rjust(width) if 2 <= i <= len(widths) - 2 else cell.ljust(width)
                 for i, (cell, width) in enumerate(zip(entry, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines + reasons)
