"""The scripts: their help and mistakes, and the quickstart from end to end on a few steps."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "scripts"


def script(name: str, *arguments: str, cwd: Path = ROOT, timeout: float = 60,
           **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["bash", str(SCRIPTS / name), *arguments], cwd=cwd, text=True, capture_output=True,
        timeout=timeout, env={**os.environ, "XLA_FLAGS": "", **environment})


@pytest.mark.parametrize("name", ["quickstart.sh", "test.sh"])
def test_help_from_anywhere(name, tmp_path):
    shown = script(name, "--help", cwd=tmp_path)
    assert shown.returncode == 0 and not shown.stderr
    assert f"bash scripts/{name}" in shown.stdout and "set -euo" not in shown.stdout
    assert list(tmp_path.iterdir()) == []


def test_mistakes_are_one_line(tmp_path):
    unknown = script("quickstart.sh", "--hlep")
    assert (unknown.returncode, unknown.stderr) == (2, "error: unknown option --hlep; see --help\n")
    for steps in ("abc", "1e3", "-5", "0", "010"):
        done = script("quickstart.sh", STEPS=steps)
        assert (done.returncode, done.stderr) == (
            2, f"error: STEPS must be a whole number of at least 1, got '{steps}'\n")
    for name in ("quickstart.sh", "test.sh"):
        done = script(name, PYTHON="/bin/false", VENV=str(tmp_path / "venv"))
        assert done.returncode == 2
        assert done.stderr == ("error: PYTHON=/bin/false is not a Python of 3.11 or later with "
                               "venv and pip\n")


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_the_quickstart_with_few_steps_and_once_more(tmp_path):
    venv = Path(sys.prefix)
    if not (venv / ".maxlm-installed-test").exists():
        pytest.skip("needs the environment that scripts/test.sh makes")
    name = "it's an output"  # must survive the shell, and the command lines shown
    output = tmp_path / name

    def quickstart() -> subprocess.CompletedProcess:
        return script("quickstart.sh", name, cwd=tmp_path, timeout=900, VENV=str(venv), STEPS="10")

    first = quickstart()
    assert first.returncode == 0, first.stderr
    for number in range(1, 7):
        assert f"[{number}/6]" in first.stdout
    assert "INFO:" not in first.stderr and "WARNING:" not in first.stderr
    assert "held-out perplexity: " in first.stdout and "after 10 steps" in first.stdout
    shown = [shlex.split(line) for line in first.stdout.splitlines() if " -m " in line]
    assert [words[2] for words in shown] == [
        "data_beam.prepare", "data_beam.train_tokenizer", "data_beam.tokenize", "maxlm.train",
        "maxlm.evaluate", "maxlm.generate", "maxlm.generate"]
    assert f"--workdir={output}/run" in shown[3]
    assert "--config.telemetry.console_seconds=10" in shown[3]  # standard error is no terminal
    assert shown[5][-3:] == ["--prompt=The function returns", "--prompt=第一条　为了",
                             "--prompt=def __init__(self, "]

    # Sources, chance before training, less than half of it after ten steps.
    manifest = json.loads((output / "corpus/manifest.json").read_text(encoding="utf-8"))
    assert len(manifest["sources"]) >= 3
    rows = [json.loads(line) for line in (output / "run/metrics.jsonl").read_text().splitlines()]
    held_out = [row["eval/perplexity"] for row in rows if "eval/perplexity" in row]
    assert 0.8 * 8192 < held_out[0] < 1.25 * 8192  # chance
    assert held_out[-1] < 0.5 * held_out[0]
    evaluation = json.loads((output / "evaluation.json").read_text(encoding="utf-8"))
    assert evaluation["step"] == 10
    texts = (output / "continuations.txt").read_text(encoding="utf-8")
    assert "The function returns" in texts and "第一条" in texts and "def __init__" in texts

    second = quickstart()
    assert second.returncode == 0
    assert second.stdout.count("done before") == 6
    assert "after 10 steps" in second.stdout

    # What is gone is made again, and with it what came from it: the same, as it happens.
    shutil.rmtree(output / "run")
    third = quickstart()
    assert third.returncode == 0, third.stderr
    assert third.stdout.count("done before") == 3 and "[3/6] Tokens" in third.stdout
    assert (output / "continuations.txt").read_text(encoding="utf-8") == texts

    (output / "run/metrics.jsonl").unlink()  # and cannot be made without training anew
    fourth = quickstart()
    assert fourth.returncode == 1
    assert fourth.stderr.splitlines()[-1].startswith(f"error: {output}/run has checkpoints but no")
