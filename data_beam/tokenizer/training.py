"""Training a SentencePiece tokenizer: the sentences, the symbols, the trainer.

The trainer runs in a process of its own, so that the command can show progress:

    python -m data_beam.tokenizer.training JOB.json

JOB.json: {"sentences": file with one a line, "model": file to write, "arguments": of the trainer}.
The exit status is 3 when the trainer refuses and 4 when a file cannot be written; the message is
the last line of standard output.
"""

import io
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import sentencepiece

from data_beam.base.characters import HAN
from maxlm.config.schema import ConfigError

_REFUSED, _SYSTEM = 3, 4
_HAN = re.compile(f"[{HAN}]")


def han_share(texts: Iterable[str]) -> float:
    """Share of Han characters among all that are not white space; 0 for no text."""
    han = characters = 0
    for text in texts:
        han += len(_HAN.findall(text))
        characters += sum(map(len, text.split()))
    return han / max(1, characters)


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
