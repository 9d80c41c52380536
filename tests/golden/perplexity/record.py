"""Asks KenLM's lmplz and query, which must be on PATH; see README.md."""

import gzip
import json
import re
import subprocess
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent
CASES = {
    "zh": {"text": "zh", "unit": "character", "order": 5, "prune": [0]},
    "zh, pruned": {"text": "zh", "unit": "character", "order": 5, "prune": [0, 0, 1, 1, 2]},
    "en": {"text": "en", "unit": "word", "order": 5, "prune": [0]},
    "en, bigrams": {"text": "en", "unit": "word", "order": 2, "prune": [0, 1]},
}


def lines(name: str, unit: str) -> list[list[str]]:
    """Tokens by line, written apart from the product's own code."""
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    if unit == "character":
        split = [[c for c in line if not c.isspace()] for line in text.split("\n")]
    else:
        split = [re.findall(r"[^\W]+|[^\w\s]", line.lower()) for line in text.split("\n")]
    return [tokens for tokens in split if tokens]


def write(path: Path, tokens: list[list[str]]) -> None:
    path.write_text("".join(" ".join(line) + "\n" for line in tokens), encoding="utf-8")


def lmplz(text: Path, arpa: Path, order: int, prune: list[int]) -> str:
    """Writes an ARPA file; returns what lmplz says on standard error."""
    return subprocess.run(
        ["lmplz", "-o", str(order), "-S", "200M", "--text", str(text), "--arpa", str(arpa),
         "--prune", *map(str, prune)], check=True, capture_output=True, text=True).stderr


def main() -> None:
    expected = {}
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as temporary:
            text, arpa = Path(temporary) / "text", Path(temporary) / "arpa"
            write(text, lines(case["text"], case["unit"]))
            said = lmplz(text, arpa, case["order"], case["prune"])
            write(text, lines(f"{case['text']}_held_out", case["unit"]))
            with open(text, encoding="utf-8") as handle:
                answer = subprocess.run(["query", "-v", "word", str(arpa)], stdin=handle,
                                        check=True, capture_output=True, text=True).stdout
            sizes = [int(size) for size in re.findall(r"^ngram \d+=(\d+)$", arpa.read_text(
                encoding="utf-8"), re.MULTILINE)]
            expected[name] = {
                **case, "ngrams": sizes,
                "discounts": [[float(value) for value in found] for found in re.findall(
                    r"D1=(\S+) D2=(\S+) D3\+=(\S+)", said)],
                "log10": [float(value) for value in re.findall(r"=\d+ \d+ (\S+)", answer)]}
            if name == "zh, pruned":
                (FOLDER / "zh_lmplz.arpa.gz").write_bytes(
                    gzip.compress(arpa.read_bytes(), mtime=0))
    (FOLDER / "expected.json").write_text(
        json.dumps(expected, indent=None, ensure_ascii=False).replace("}, ", "},\n") + "\n",
        encoding="utf-8")


if __name__ == "__main__":
    main()
