"""Training a SentencePiece tokenizer: the sample of texts, the symbols, the trainer.

The sample is chosen by the hash of the documents' ids, so it is the same in every run. The trainer
runs in a process of its own, so that the command can show progress:

    python -m data_beam.tokenizer.training JOB.json

JOB.json: {"sentences": file with one a line, "model": file to write, "arguments": of the trainer}.
The exit status is 3 when the trainer refuses and 4 when a file cannot be written; the message is
the last line of standard output.
"""

import heapq
import io
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import sentencepiece
import xxhash

from data_beam.base.characters import HAN
from data_beam.readers.corpus_files import CorpusFiles, read_rows
from maxlm.config.schema import ConfigError, suggestion

_REFUSED, _SYSTEM = 3, 4
COLUMNS = ["id", "text", "source", "domain", "language", "split"]
_HAN = re.compile(f"[{HAN}]")


class _Smallest:
    """The rows with the smallest hashes that hold a number of bytes of text.

    Attributes:
      seen: bytes of all rows that were added.
    """

    def __init__(self, limit: float):
        self._limit, self._kept, self.seen = limit, 0, 0
        self._heap: list[tuple[int, str, int, dict[str, Any]]] = []

    def add(self, row: dict[str, Any]) -> None:
        size = len(row["text"].encode())
        self.seen += size
        key = -xxhash.xxh3_64_intdigest(row["id"].encode())
        if self._heap and self._kept >= self._limit and key < self._heap[0][0]:
            return
        heapq.heappush(self._heap, (key, row["id"], size, row))
        self._kept += size
        self._shrink()

    def _shrink(self) -> None:
        while self._heap and self._kept - self._heap[0][2] >= self._limit:
            self._kept -= heapq.heappop(self._heap)[2]

    def rows(self, limit: int) -> list[tuple[int, str, dict[str, Any]]]:
        """Hash, id and row of each, in their order; the last one is cut to fit into `limit`."""
        self._limit = limit
        self._shrink()
        kept = [(-key, name, row) for key, name, _, row in sorted(
            self._heap, key=lambda entry: (-entry[0], entry[1]))]
        if self._kept > limit:
            text = kept[-1][2]["text"].encode()[:limit - self._kept].decode("utf-8", "ignore")
            kept[-1] = (*kept[-1][:2], {**kept[-1][2], "text": text})
        return [entry for entry in kept if entry[2]["text"]]


def sample_documents(corpus: CorpusFiles, sample_bytes: int,
                     weights: Mapping[str, float] | None = None, split: str = "train"
                     ) -> tuple[list[dict[str, Any]], int]:
    """Documents of a split with the smallest hashes of their ids, up to `sample_bytes` of text.

    Without weights each document has the same chance, so sources keep their shares. With weights
    each source gets exactly its share of the bytes; when a source has too little text, the whole
    sample is smaller. The last document (of each source) is cut to fit.

    Args:
      corpus: its files.
      sample_bytes: UTF-8 bytes of text; bounds the memory taken.
      weights: source -> share of the bytes, relative to the others; 0 leaves a source out.
      split: which documents to choose from.

    Returns:
      Rows with COLUMNS in the order of their hashes, and how many documents the split has.

    Raises:
      ConfigError: weights for sources that do not exist or have no documents in the split, or
        sources without a weight.
    """
    if weights is None:
        shares = None
        groups: dict[str | None, _Smallest] = {None: _Smallest(sample_bytes)}
    else:
        shares = _shares(corpus, weights, split)
        groups = {name: _Smallest(float(share * sample_bytes)) for name, share in shares.items()}
    seen = 0
    for file in corpus.files:
        for row in read_rows(file.path, COLUMNS):
            if row["split"] == split:
                seen += 1
                group = groups.get(None if shares is None else row["source"])
                if group is not None:
                    group.add(row)
    total = Fraction(sample_bytes)
    for name, share in (shares or {}).items():
        if not groups[name].seen:
            raise ConfigError(f"--weights: source {name!r} has no text in split {split!r}; give it "
                              "weight 0")
        total = min(total, groups[name].seen / share)
    kept = [entry for name, group in groups.items()
            for entry in group.rows(int(total * (shares[str(name)] if shares else 1)))]
    return [row for _, _, row in sorted(kept, key=lambda entry: entry[:2])], seen


def _shares(corpus: CorpusFiles, weights: Mapping[str, float], split: str) -> dict[str, Fraction]:
    """Share of each source of a positive weight; they sum to 1."""
    names = [source.name for source in corpus.sources]
    for name in weights:
        if name not in names:
            raise ConfigError(f"--weights: the corpus has no source {name!r}; "
                              f"{suggestion(name, names)}")
    for source in corpus.sources:
        if source.splits.get(split) and source.name not in weights:
            raise ConfigError(f"--weights: source {source.name!r} has no weight; give {source.name}"
                              "=0 to leave it out")
    total = sum(map(Fraction, weights.values()))
    if not total:
        raise ConfigError("--weights: all are 0")
    return {name: Fraction(weight) / total for name, weight in weights.items() if weight}


def bytes_by_source(rows: Iterable[dict[str, Any]]) -> dict[str, int]:
    """UTF-8 bytes of text by source, sorted by name."""
    sizes: Counter[str] = Counter()
    for row in rows:
        sizes[row["source"]] += len(row["text"].encode())
    return dict(sorted(sizes.items()))


def han_share(texts: Iterable[str]) -> float:
    """Share of Han characters among all that are not white space; 0 for no text."""
    han = characters = 0
    for text in texts:
        han += len(_HAN.findall(text))
        characters += sum(map(len, text.split()))
    return han / max(1, characters)


def parse_weights(text: str) -> dict[str, float] | None:
    """`source=0.7,other=0.3` -> weights, "" -> None.

    Raises:
      ConfigError: an entry of another form, a weight that is no number of at least 0.
    """
    weights: dict[str, float] = {}
    for entry in filter(None, text.split(",")):
        name, equals, value = entry.partition("=")
        try:
            weight = float(value)
        except ValueError:
            weight = -1.0
        if not equals or not name or not 0 <= weight < float("inf"):
            raise ConfigError(f"--weights: {entry!r} is not SOURCE=WEIGHT with a weight of at "
                              "least 0, for example medicine=0.7,web=0.3")
        if name in weights:
            raise ConfigError(f"--weights: source {name!r} is given twice")
        weights[name] = weight
    return weights or None


def sentences(text: str, ends: re.Pattern[str], characters: int) -> Iterator[str]:
    """Lines of a text without those of white space only; long ones are cut.

    Args:
      text: any.
      ends: pattern of the separators of sentences, which are left out.
      characters: longest part. It is cut at its last space, if there is one in its second half.
    """
    for line in ends.split(text):
        while len(line) > characters:
            cut = line.rfind(" ", characters // 2, characters)
            cut = cut if cut > 0 else characters
            yield line[:cut]
            line = line[cut:]
        if line.strip(" "):
            yield line


def symbol_lines(path: str, field: str, longest: int) -> tuple[list[str], dict[str, int]]:
    """Pieces from a file with one a line, in its order.

    Args:
      path: UTF-8 text. Empty lines and repeated ones are left out and counted.
      field: what the user set, for messages.
      longest: most characters of a line.

    Returns:
      The lines, and how many were left out: {"empty": ..., "repeated": ...}.

    Raises:
      ConfigError: no such file, or a line that cannot be one piece; names the line.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            content = file.read()
    except OSError as error:
        raise ConfigError(f"{field}: cannot read {path!r}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{field}: {path!r} is not UTF-8 at byte {error.start}") from None
    lines: dict[str, None] = {}
    left_out = {"empty": 0, "repeated": 0}
    for number, raw in enumerate(content.split("\n"), 1):
        line = raw.removesuffix("\r")
        if not line:
            left_out["empty"] += number <= content.count("\n")  # not what follows the last feed
        elif line in lines:
            left_out["repeated"] += 1
        else:
            refuse_symbol(line, f"{field}: {path}, line {number}")
            if len(line) > longest:
                raise ConfigError(f"{field}: {path}, line {number}: {len(line)} characters "
                                  f"({line[:40]!r}...); a piece has at most {longest}")
            lines[line] = None
    return list(lines), left_out


def refuse_symbol(symbol: str, where: str) -> None:
    """Raises ConfigError, with `where` in front, for a text that cannot be one piece."""
    if symbol != symbol.strip():
        raise ConfigError(f"{where}: {symbol!r} begins or ends with white space")
    if re.search(r"[^\S ]|  ", symbol):
        raise ConfigError(f"{where}: {symbol!r} has white space other than single spaces inside")
    if re.search("[\0\u2581\u2585]", symbol):
        raise ConfigError(f"{where}: {symbol!r} has a character that SentencePiece keeps for "
                          "itself (NUL, U+2581 or U+2585)")
    if symbol in ("<pad>", "<s>", "</s>", "<unk>") or re.fullmatch("<0x[0-9A-F]{2}>", symbol):
        raise ConfigError(f"{where}: {symbol!r} is the name of a special id")


def joined(symbols: Sequence[str]) -> list[str]:
    """Symbols as SentencePiece spells them."""
    return [symbol.replace(" ", "\u2581") for symbol in symbols]


class TrainingError(RuntimeError):
    """SentencePiece refused; the message is its own."""


def train(texts: Iterable[str], arguments: dict[str, Any],
          report: Callable[[str], None]) -> tuple[bytes, int]:
    """Trains a model.

    Args:
      texts: sentences, without line feeds.
      arguments: of SentencePieceTrainer, besides input and output.
      report: called with each line that the trainer logs.

    Returns:
      The model's bytes, and how many sentences the trainer skipped.

    Raises:
      TrainingError: the trainer refused.
      OSError: temporary files cannot be written.
    """
    with tempfile.TemporaryDirectory() as folder:
        lines, model, job = (Path(folder, name) for name in ("sentences", "model", "job.json"))
        with open(lines, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{sentence}\n" for sentence in texts)
        job.write_text(json.dumps(
            {"sentences": str(lines), "model": str(model), "arguments": arguments}))
        process = subprocess.Popen(
            [sys.executable, "-m", "data_beam.tokenizer.training", str(job)],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
        assert process.stdout is not None
        skipped, last = 0, ""
        try:
            for line in process.stdout:
                last = line.strip()
                found = re.search(r"Skipped (\d+) too long sentences", last)
                skipped += int(found[1]) if found else "Skipped:" in last or "Skip" in last
                report(last)
            status = process.wait()
        finally:
            process.kill()
        if status == _REFUSED:
            raise TrainingError(last)
        if status == _SYSTEM:
            raise OSError(last)
        if status:
            raise RuntimeError(f"SentencePiece ended with status {status}: {last}")
        return model.read_bytes(), skipped


def main() -> int:
    job = json.loads(Path(sys.argv[1]).read_text())
    model = io.BytesIO()
    with open(job["sentences"], encoding="utf-8", newline="\n") as file:
        try:
            sentencepiece.SentencePieceTrainer.train(  # pyright: ignore
                sentence_iterator=(line.removesuffix("\n") for line in file), model_writer=model,
                **job["arguments"])
        except RuntimeError as error:
            sys.stderr.flush()
            print(" ".join(str(error).split()), flush=True)
            return _REFUSED
    try:
        Path(job["model"]).write_bytes(model.getvalue())
    except OSError as error:
        print(error, flush=True)
        return _SYSTEM
    return 0


if __name__ == "__main__":
    sys.exit(main())
