"""Small corpora of known copies, made by `prepare`, for tests."""

import json
import random
from pathlib import Path

import pyarrow.parquet as pq

from data_beam import prepare
from data_beam.config import (
    DedupConfig,
    FilterConfig,
    InputConfig,
    MinHashConfig,
    RecipeConfig,
    SourceConfig,
    SplitConfig,
)
from data_beam.runners import beam_options

HAN = "".join(map(chr, range(0x4E00, 0x5200)))


def recipe(root: Path, dedup: DedupConfig, shards: int = 3, sources: int = 1) -> RecipeConfig:
    return RecipeConfig(
        sources=tuple(SourceConfig(name, "general", "CC0-1.0", (
            InputConfig(str(root), f"{name}*.jsonl", "jsonl"),)) for name in "abc"[:sources]),
        filters=FilterConfig(min_characters=1, max_short_line_fraction=1.0), dedup=dedup,
        split=SplitConfig(validation=0.2, test=0.2), shards=shards)


def write(root: Path, texts: list[str], name: str = "a.jsonl") -> None:
    root.mkdir(exist_ok=True)
    (root / name).write_text("".join(json.dumps({"text": t}) + "\n" for t in texts), "utf-8")


def run(made: RecipeConfig, output: Path, *options: str) -> Path:
    result = prepare.prepare(made, str(output), beam_options.pipeline_options(options))
    assert result is not None
    return output


def rows(output: Path, kind: str) -> list[dict]:
    return [row for path in sorted((output / kind).glob("*.parquet"))
            for row in pq.read_table(path).to_pylist()]


NEAR = DedupConfig(minhash=MinHashConfig(enabled=True))


def words(generator: random.Random, count: int, han: bool = False) -> list[str]:
    return [generator.choice(HAN) if han else f"w{generator.randrange(2000)}"
            for _ in range(count)]


def joined(parts: list[str], han: bool) -> str:
    return ("" if han else " ").join(parts)
