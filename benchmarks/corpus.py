"""Speed of data_beam on real documents, and of datatrove beside it.

    python -m benchmarks.corpus --documents=documents.jsonl --peer_python=PATH

Documents are JSON lines with a `text`; without --documents they are made from Debian's
documentation packages (benchmarks/documents.py). In documents per second of processor time:

    filters      Gopher quality and repetition, C4, FineWeb, on documents in memory
    signatures   5-grams of words and their MinHash signature (14 x 8), on documents in memory
    chain        data_beam.prepare from JSON lines to Parquet: filters, MinHash with clusters,
                 output; with one process and two

The fate of each document under the filters is compared with datatrove's, and differences are listed
by rule. The chain of data_beam does more than datatrove's: it repairs texts, names their language,
compares candidate pairs before it calls them copies, and keeps what it dropped.
"""

import collections
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import corpus_recipe
from benchmarks.documents import write_documents
from maxlm.cli.command_line import Parser, run_command
from maxlm.config import ConfigError

ROOT = Path(__file__).resolve().parent.parent
_POLL_SECONDS = 0.1
_PAGE, _TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass
class Usage:
    """What a command and all processes below it took."""

    wall: float = 0.0
    processor: float = 0.0
    """Seconds of all processes together."""
    memory: int = 0
    """Most resident bytes of all processes together at one time."""


def measure(command: list[str], folder: Path) -> tuple[str, Usage]:
    """Runs a command in a session of its own; its last line on standard output, and its usage.

    Read from /proc, for workers that are killed at the end are in nobody's account.
    """
    usage = Usage()
    seconds: dict[str, float] = {}
    with (folder / "output.txt").open("w+") as output:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT,
                                   start_new_session=True)
        over = threading.Event()

        def poll() -> None:
            while not over.wait(_POLL_SECONDS):
                resident = 0
                for stat in Path("/proc").glob("[0-9]*/stat"):
                    try:
                        fields = stat.read_text().rpartition(")")[2].split()
                    except (FileNotFoundError, ProcessLookupError):
                        continue
                    if int(fields[3]) == process.pid:  # the session
                        seconds[stat.parent.name] = (int(fields[11]) + int(fields[12])) / _TICKS
                        resident += int(fields[21]) * _PAGE
                usage.memory = max(usage.memory, resident)

        watcher = threading.Thread(target=poll)
        watcher.start()
        status = process.wait()
        usage.wall = time.perf_counter() - start
        over.set()
        watcher.join()
        usage.processor = sum(seconds.values())
        output.seek(0)
        text = output.read().strip()
    if status:
        raise ConfigError(f"{' '.join(command[:4])} ended with {status}:\n{text[-2000:]}")
    return text.splitlines()[-1] if text else "", usage


def read_texts(documents: Path, count: int) -> list[str]:
    texts: list[str] = []
    with documents.open(encoding="utf-8") as handle:
        for line in handle:
            if len(texts) == count:
                break
            texts.append(json.loads(line)["text"])
    return texts


def our_filters(texts: list[str], output: Path) -> float:
    """Processor seconds; writes the fate of each document."""
    from data_beam.base.records import Document, Dropped, Origin
    from data_beam.config import FilterConfig
    from data_beam.filters import C4Config
    from data_beam.filters.text_filter import TextFilter

    config = FilterConfig(rules=corpus_recipe.RULES, c4=C4Config(end_marks="paper"))
    filters = [TextFilter.by_name[name](config) for name in config.rules]
    fates: list[list[str] | None] = []
    start = time.process_time()
    for text in texts:
        outcome: Document | Dropped = Document(
            Origin("documents", ""), text, "", "", "", "en", 1.0, "", "", ())
        for each in filters:
            outcome = each(outcome)
            if isinstance(outcome, Dropped):
                break
        fates.append([outcome.stage, outcome.reason] if isinstance(outcome, Dropped) else None)
    seconds = time.process_time() - start
    output.write_text(json.dumps(fates))
    return seconds


def our_signatures(texts: list[str], output: Path) -> float:
    """Processor seconds."""
    from data_beam.dedup.signatures import band_keys, shingles, signature

    bands, rows = corpus_recipe.BANDS, corpus_recipe.ROWS
    start = time.process_time()
    for text in texts:
        band_keys(signature(shingles(text, corpus_recipe.WORD_NGRAM), bands * rows), bands, rows)
    return time.process_time() - start


def split_lines(documents: Path, count: int, folder: Path, files: int = 8) -> int:
    """Deals the first `count` documents out to files; their bytes of JSON."""
    folder.mkdir()
    handles = [(folder / f"{number}.jsonl").open("wb") for number in range(files)]
    size = 0
    with documents.open("rb") as source:
        for index, line in enumerate(source):
            if index == count:
                break
            handles[index % files].write(line)
            size += len(line)
    for handle in handles:
        handle.close()
    return size


def our_chain(folder: Path, processes: int, output: Path) -> list[str]:
    command = [sys.executable, "-m", "data_beam.prepare",
               f"--config={ROOT / 'benchmarks' / 'corpus_recipe.py'}:{folder}",
               f"--output={output}", "--stages=extract,filter,dedup,finish"]
    if processes > 1:
        command += ["--direct_running_mode=multi_processing",
                    f"--direct_num_workers={processes}"]
    return command


def differences(documents: int, ours: list[Any], theirs: list[Any]) -> str:
    """Documents whose fate differs, by what each side says."""
    counts = collections.Counter(
        (" / ".join(a) if a else "kept", " / ".join(b) if b else "kept")
        for a, b in zip(ours, theirs, strict=True)
        if (a[0] if a else None) != (b[0] if b else None))
    lines = [f"decisions: {documents - sum(counts.values()):,} of {documents:,} the same"]
    lines += [f"  {count:5} data_beam {a}; datatrove {b}" for (a, b), count in counts.most_common()]
    return "\n".join(lines)


def component(mode: str, documents: Path, count: int, peer: str, folder: Path
              ) -> tuple[dict[str, float], str]:
    """Documents per second of processor time by contestant, and what differs."""
    ours, theirs = folder / f"{mode}.ours.json", folder / f"{mode}.theirs.json"
    commands = {"data_beam": [sys.executable, "-m", "benchmarks.corpus", f"--worker={mode}",
                              f"--documents={documents}", f"--counts={count}",
                              f"--worker_output={ours}"]}
    if peer:
        commands["datatrove"] = [peer, str(ROOT / "benchmarks" / "corpus_datatrove.py"), mode,
                                 str(documents), str(count), str(theirs)]
    rates = {}
    for name, command in commands.items():
        last, _ = measure(command, folder)
        rates[name] = count / json.loads(last)["seconds"]
    note = ""
    if peer and mode == "filters":
        note = differences(count, json.loads(ours.read_text()), json.loads(theirs.read_text()))
    return rates, note


def chains(documents: Path, counts: list[int], processes: list[int], peer: str, folder: Path
           ) -> list[str]:
    """A line a run, then the ratios."""
    lines = [f"\n{'chain':12}{'documents':>10}{'processes':>10}{'wall s':>8}{'CPU s':>8}"
             f"{'docs/s/core':>12}{'MB/s':>7}{'peak MB':>9}{'kept':>8}"]
    found: dict[tuple[str, int, int], Usage] = {}
    for count in counts:
        source = folder / f"documents-{count}"
        size = split_lines(documents, count, source)
        for number in processes:
            for name in ("data_beam", *(("datatrove",) if peer else ())):
                output = folder / f"{name}-{count}-{number}"
                command = our_chain(source, number, output) if name == "data_beam" else [
                    peer, str(ROOT / "benchmarks" / "corpus_datatrove.py"), "chain", str(source),
                    str(number), str(output)]
                last, usage = measure(command, folder)
                found[name, count, number] = usage
                if name == "data_beam":
                    books = json.loads((output / "stages" / "finish" / "manifest.json").read_text())
                    kept = sum(source["kept"] for source in books["sources"].values())
                else:
                    kept = json.loads(last)["kept"]
                lines.append(
                    f"{name:12}{count:10,}{number:10}{usage.wall:8.1f}{usage.processor:8.1f}"
                    f"{count / usage.processor:12.0f}{size / usage.wall / 1e6:7.2f}"
                    f"{usage.memory / 2**20:9.0f}{kept:8,}")
                print(lines[-1], file=sys.stderr, flush=True)
    for name in sorted({key[0] for key in found}):
        small, large = min(counts), max(counts)
        if small < large:
            one, many = found[name, small, processes[0]], found[name, large, processes[0]]
            lines.append(f"{name}: {large / small:g} times the documents take "
                         f"{many.processor / one.processor:.2f} times the processor time and "
                         f"{many.memory / one.memory:.2f} times the memory")
        if len(processes) > 1:
            alone, pair = found[name, large, processes[0]], found[name, large, processes[-1]]
            lines.append(f"{name}: {processes[-1]} processes are "
                         f"{alone.wall / pair.wall:.2f} times as fast as {processes[0]}")
    return lines


def main(argv: Sequence[str]) -> None:
    parser = Parser(prog="python -m benchmarks.corpus", description=__doc__)
    parser.add_argument("--documents", type=Path, help="JSON lines with a text; default: made")
    parser.add_argument("--counts", type=int, nargs="+", default=[5_000, 20_000],
                        help="documents of the chains; the components take the first")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--peer_python", default="", metavar="PATH",
                        help="interpreter with datatrove[processing,io] and spacy; none: alone")
    parser.add_argument("--skip_chain", action="store_true", help="only filters and signatures")
    parser.add_argument("--worker", choices=("filters", "signatures"),
                        help="used by the benchmark itself")
    parser.add_argument("--worker_output", type=Path, help="used by the benchmark itself")
    arguments = parser.parse_args(argv)
    if arguments.worker:
        texts = read_texts(arguments.documents, arguments.counts[0])
        work = our_filters if arguments.worker == "filters" else our_signatures
        print(json.dumps({"seconds": work(texts, arguments.worker_output)}))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        documents = arguments.documents
        if documents is None:
            documents = folder / "documents.jsonl"
            write_documents(documents, max(arguments.counts))
        documents = documents.resolve()
        texts = read_texts(documents, max(arguments.counts))
        if len(texts) < max(arguments.counts):
            raise ConfigError(f"--counts: {documents} has only {len(texts):,} documents")
        lines = [f"{len(texts):,} documents of {sum(map(len, texts)) / len(texts) / 1e3:.1f} "
                 f"thousand characters", f"{'':12}{'data_beam':>10}{'datatrove':>10}{'ratio':>7}"
                 "   documents per second of processor time"]
        notes = []
        for mode in ("filters", "signatures"):
            rates, note = component(mode, documents, min(arguments.counts), arguments.peer_python,
                                    folder)
            ours, theirs = rates["data_beam"], rates.get("datatrove")
            lines.append(f"{mode:12}{ours:10.0f}" + (f"{theirs:10.0f}{ours / theirs:7.2f}"
                                                     if theirs else f"{'-':>10}"))
            print(lines[-1], file=sys.stderr, flush=True)
            notes += [note] if note else []
        if not arguments.skip_chain:
            lines += chains(documents, arguments.counts, arguments.processes,
                            arguments.peer_python, folder)
        print("\n".join(lines + notes))


if __name__ == "__main__":
    run_command(main)
