"""benchmarks.corpus runs, on a few documents."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks import corpus

ROOT = Path(__file__).resolve().parents[2]


def test_filters_and_signatures_are_measured(tmp_path):
    documents = tmp_path / "documents.jsonl"
    pages = sorted((ROOT / "docs").glob("*.md"))
    documents.write_text("".join(json.dumps({"text": page.read_text("utf-8")}) + "\n"
                                 for page in pages[:6]), "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.corpus", f"--documents={documents}", "--counts=6",
         "--skip_chain"], cwd=ROOT, capture_output=True, text=True, check=True)
    rates = {line.split()[0]: line.split()[1] for line in done.stdout.splitlines()
             if line.startswith(("filters", "signatures"))}
    assert int(rates["filters"]) > 0 and int(rates["signatures"]) > 0
    few = subprocess.run(
        [sys.executable, "-m", "benchmarks.corpus", f"--documents={documents}", "--counts=7"],
        cwd=ROOT, capture_output=True, text=True)
    assert few.returncode == 2 and "has only 6 documents" in few.stderr


def test_differences_are_listed_by_rule():
    kept, short, long = None, ["c4", "few"], ["c4", "other words"]
    text = corpus.differences(4, [kept, short, short, kept], [kept, long, kept, ["fineweb", "x"]])
    assert text.splitlines() == [
        "decisions: 2 of 4 the same",
        "      1 data_beam c4 / few; datatrove kept",
        "      1 data_beam kept; datatrove fineweb / x"]


def test_documents_are_dealt_out(tmp_path):
    documents = tmp_path / "documents.jsonl"
    documents.write_text("".join(f'{{"text": "{i}"}}\n' for i in range(20)))
    size = corpus.split_lines(documents, 10, tmp_path / "parts", files=3)
    parts = [path.read_text().splitlines() for path in sorted((tmp_path / "parts").iterdir())]
    assert [len(lines) for lines in parts] == [4, 3, 3] and size == 10 * len('{"text": "0"}\n')


def test_usage_of_a_command_is_measured(tmp_path):
    program = "import time; b = bytearray(50_000_000); t = time.process_time()\n" \
              "while time.process_time() < t + 0.5: pass\nprint('last')"
    last, usage = corpus.measure([sys.executable, "-c", program], tmp_path)
    assert last == "last"
    assert usage.processor >= 0.2 and usage.wall >= 0.5 and usage.memory > 50_000_000
