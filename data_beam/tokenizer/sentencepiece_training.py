"""SentencePiece training in a process of its own, so that the command can show progress.

    python -m data_beam.tokenizer.sentencepiece_training JOB.json

JOB.json: {"sentences": one a line, "model": file to write, "arguments": of the trainer}. Exit
status 3 with the trainer's message as the last line of standard output when it refuses, 4 with the
system's when a file cannot be written.
"""

import io
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import sentencepiece

_REFUSED, _SYSTEM = 3, 4


class TrainingError(RuntimeError):
    """SentencePiece refused; the message is its own."""


def train(sentences: Iterable[str], arguments: dict[str, Any],
          report: Callable[[str], None]) -> tuple[bytes, int]:
    """Trains a model.

    Args:
      sentences: texts without line feed.
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
            file.writelines(f"{sentence}\n" for sentence in sentences)
        job.write_text(json.dumps(
            {"sentences": str(lines), "model": str(model), "arguments": arguments}))
        process = subprocess.Popen(
            [sys.executable, "-m", "data_beam.tokenizer.sentencepiece_training", str(job)],
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
