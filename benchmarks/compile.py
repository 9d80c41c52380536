"""The compiled train step of 7B and 70B on TPU and GPU, beside MaxText's: no accelerator is needed.

    python -m benchmarks.compile --figures=FOLDER [--only=NAME] [--write=docs/benchmarks.md]

Compiles each row with `python -m maxlm.compile`, one after another, keeps the figures in FOLDER
(rows that are there already are not compiled again) and prints the table. The same code, jax and
compiler give the same table to the byte, so compile times go to standard error. MaxText's figures
were recorded with one version of libtpu; with another one the command refuses.
"""

import dataclasses
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from maxlm.cli.command_line import Parser, run_command
from maxlm.config import ConfigError, RunFailure, local_path

# MaxText 0.2.5, full remat, FSDP over all chips, compiled with jax 0.12.0.1 and this libtpu.
RECORDED_WITH = "libtpu 0.0.52"
BEGIN, END = "<!-- benchmarks.compile: begin -->", "<!-- benchmarks.compile: end -->"


@dataclasses.dataclass(frozen=True)
class Row:
    """One program.

    Attributes:
      peak, temporary: MaxText's `peak_memory` and `temp_size` in bytes, if recorded.
      target: what the row should reach, for the reader.
    """

    name: str
    config: str
    topology: str
    settings: dict[str, int]
    peak: int | None = None
    temporary: int | None = None
    target: str = ""


def _small(topology: str, devices: int, rows: int, **recorded: int) -> Row:
    settings = {"run.accumulation_steps": 1, "data.sequence_length": 2048,
                "data.batch_size": rows * devices}
    peak = recorded.get("peak")
    return Row(f"7b-{topology.replace(':', '-')}", "configs/7b.py", topology, settings,
               target=f"peak below {peak * 0.9 / 1e9:.2f} GB" if peak else "", **recorded)


ROWS = {row.name: row for row in (
    _small("v5p:4x4x4", 64, 1, peak=3_274_423_040, temporary=2_017_722_368),
    _small("v5e:4x4", 16, 8, peak=15_866_731_520, temporary=10_910_597_120),
    _small("v5e:16x16", 256, 1, peak=2_022_440_960, temporary=1_785_905_152),
    _small("v6e:16x16", 256, 1, peak=1_851_055_872, temporary=1_545_764_864),
    Row("7b-million-tokens", "configs/7b.py", "v5p:4x4x4",
        {"run.accumulation_steps": 1, "data.batch_size": 256},
        target="MFU 65 %, recomputed under 10 %"),
    Row("70b", "configs/70b.py", "v5p:8x8x8", {}, target="MFU 60 %"),
    Row("7b-h100", "configs/7b.py", "h100x8", {"run.accumulation_steps": 128}, target="fits"),
)}


def measure(row: Row, file: Path) -> None:
    """Compiles a row and writes its figures.

    Raises:
      RunFailure: the command failed.
    """
    command = [sys.executable, "-m", "maxlm.compile", f"--config={row.config}",
               f"--topology={row.topology}", f"--json={file}",
               *(f"--config.{name}={value}" for name, value in row.settings.items())]
    done = subprocess.run(command, text=True, capture_output=True)
    if done.returncode not in (0, 3):
        raise RunFailure(f"{row.name}: {' '.join(command)} failed: {done.stderr.strip()[-2000:]}")


def require_one_compiler(figures: dict[str, dict[str, Any]]) -> None:
    """Checks that all TPU programs come from the libtpu that MaxText's figures are of.

    Raises:
      ConfigError: names the rows of other versions.
    """
    other = {name: values["compiler"] for name, values in figures.items()
             if ROWS[name].topology.count(":") and values["compiler"] != RECORDED_WITH}
    if other:
        raise ConfigError(
            f"--figures: {', '.join(f'{n} is of {v}' for n, v in other.items())}, and MaxText's "
            f"figures are of {RECORDED_WITH}; figures of different versions cannot be compared")


def table(figures: dict[str, dict[str, Any]]) -> str:
    """The table in Markdown, bytes of one device and step."""
    lines = ["| program | topology | fits | peak | MaxText's peak | temporaries | MaxText's "
             "temporaries | bytes sent | recomputed | bound | MFU at most | target |",
             "|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for name, row in ROWS.items():
        if name not in figures:
            continue
        values = figures[name]
        compiled = "program_flops" in values
        sent = sum(values["collective_bytes_by_axis"].values()) if compiled else None
        lines.append("| " + " | ".join([
            name, row.topology, "yes" if values["fits"] else "no", _number(values["peak_bytes"]),
            _number(row.peak), _number(values["temp_bytes"]), _number(row.temporary),
            _number(sent), f"{values['recompute_share']:.1%}" if compiled else "",
            values["bound"] if compiled else "",
            f"{values['predicted_mfu']:.1%}" if compiled else "", row.target]) + " |")
    compilers = sorted({f"{values['compiler']} with jax {values['jax']}"
                        for values in figures.values()})
    return "\n".join([*lines, "", f"Compiled by {', '.join(compilers)}; MaxText 0.2.5 by "
                      f"{RECORDED_WITH}."])


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def replace_table(page: str, text: str) -> str:
    """The page with the table between its two marks.

    Raises:
      ConfigError: the page has no such marks.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ConfigError(f"--write: the page has no lines {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def main(argv: Sequence[str]) -> int:
    parser = Parser(prog="python -m benchmarks.compile", description=__doc__)
    parser.add_argument("--figures", required=True, help="folder of the figures, one file a row")
    parser.add_argument("--only", choices=list(ROWS), action="append",
                        help="compile and print this row only; may be repeated")
    parser.add_argument("--write", metavar="FILE", help="also put the table into this page")
    arguments = parser.parse_args(argv)
    folder = local_path(arguments.figures, "--figures")
    folder.mkdir(parents=True, exist_ok=True)
    figures: dict[str, dict[str, Any]] = {}
    for name in arguments.only or ROWS:
        file = folder / f"{name}.json"
        if not file.exists():
            measure(ROWS[name], file)
        figures[name] = json.loads(file.read_text(encoding="utf-8"))
        print(f"{name}: compiled in {figures[name]['compile_seconds']:.0f} s", file=sys.stderr)
    require_one_compiler(figures)
    text = table(figures)
    print(text)
    if arguments.write:
        page = local_path(arguments.write, "--write")
        page.write_text(replace_table(page.read_text(encoding="utf-8"), text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    run_command(main)
