"""metrics.jsonl: rows survive a kill, and what comes after the checkpoint is cut off."""

import json
import math
import os

import numpy as np
import pytest

from maxlm.config import ConfigError
from maxlm.telemetry.metrics import MetricsFile, read_metrics


def test_rows_are_in_the_file_as_soon_as_they_are_written(tmp_path):
    path = tmp_path / "metrics.jsonl"
    file = MetricsFile(path, None)
    row = {"step": 1, "loss": 6.25, "source": "文字"}
    file.write(row)
    assert [json.loads(line) for line in path.read_text("utf-8").splitlines()] == [row]
    file.close()


@pytest.mark.parametrize(
    "tail", ["", '{"step": 4, "lo', '{"step": 3, "eval/loss": 1.0}', "\x00\x00", "\udc80"])
def test_resuming_keeps_the_rows_up_to_the_checkpoint(tmp_path, tail):
    path = tmp_path / "metrics.jsonl"
    whole = [{"step": 1, "loss": 0.1}, {"step": 2, "loss": 0.2}, {"step": 2, "eval/loss": 0.3},
             {"step": 3, "loss": 1 / 3}]
    path.write_bytes(("".join(json.dumps(row) + "\n" for row in whole) + tail).encode(
        "utf-8", "surrogateescape"))
    file = MetricsFile(path, 2)
    assert read_metrics(path) == whole[:3]
    file.write(whole[3])
    file.close()
    assert read_metrics(path) == whole  # floats to the last bit


def test_a_new_run_starts_an_empty_file(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 0, "eval/loss": 1.0}\n')
    MetricsFile(path, None).close()
    assert path.read_bytes() == b""
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("content", [b'{"step": 0}\n{"step": 7, "loss": 1.0}\n{"st',
                                     b"my notes\n", b"[1]\n", b"\xff\xfe\n"])
def test_a_new_run_keeps_the_rows_of_another(tmp_path, content):
    path = tmp_path / "metrics.jsonl"
    lines: list[str] = []
    for number in (1, 2):
        path.write_bytes(content)
        MetricsFile(path, None, lines.append).close()
        assert path.read_bytes() == b""
        assert (tmp_path / f"metrics.jsonl.old-{number}").read_bytes() == content
    assert len(lines) == 2 and lines[1].endswith("kept in metrics.jsonl.old-2")


@pytest.mark.parametrize("line", ["my notes", "[1]", '{"loss": 1}', '{"step": "1"}'])
def test_a_file_of_something_else_is_not_resumed(tmp_path, line):
    path = tmp_path / "metrics.jsonl"
    content = f'{{"step": 1}}\n{line}\n'
    path.write_text(content)
    with pytest.raises(ConfigError, match=r"metrics\.jsonl: line 2 is not a row"):
        MetricsFile(path, 1)
    assert path.read_text() == content


@pytest.mark.parametrize(("value", "name"), [
    (math.nan, "nan"), (math.inf, "inf"), (-math.inf, "-inf"), (np.float64("nan"), "nan")])
def test_what_is_not_finite_is_null_and_named(tmp_path, value, name):
    path = tmp_path / "metrics.jsonl"
    file = MetricsFile(path, None)
    file.write({"step": 1, "loss": value, "grad_norm": 1.5, "source": "nan"})
    file.write({"step": 2, "loss": 1e300})
    file.close()

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    rows = [json.loads(line, parse_constant=refuse) for line in path.read_text().splitlines()]
    assert rows == [{"step": 1, "loss": None, "grad_norm": 1.5, "source": "nan",
                     "nonfinite": {"loss": name}}, {"step": 2, "loss": 1e300}]
    assert read_metrics(path) == rows


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_an_error_once(tmp_path):
    path = tmp_path / "metrics.jsonl"
    file = MetricsFile(path, None)
    os.dup2(os.open("/dev/full", os.O_WRONLY), file._file.fileno())
    with pytest.raises(OSError, match="No space left"):
        file.write({"step": 1})
    file.close()  # and not again here
