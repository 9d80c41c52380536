"""Tokens per second of the data loader.

    python -m benchmarks.loader [--documents=20000 --mean_tokens=600 --seconds=5]

Makes a corpus of random documents of two sources in a temporary folder, then measures on one core,
alternating:

    memmap     slices of a flat file of uint16 tokens: input and target and nothing else, the least
               a loader could do
    concat     maxlm's loader, both sources mixed 0.7 to 0.3
    best_fit   the same with best-fit packing

Prints millions of tokens (padding not counted) per second of one core's time, and the ratio to
memmap. Time is processor time of the whole process, threads and decompression included. Also
prints the time to lay out a plan, per million documents.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from data_beam.sinks.array_record import write_shard
from maxlm.config import DataConfig, TokenSource, command_line
from maxlm.data.corpus import Manifest, SourceEntry, TokenRecord, token_dtype
from maxlm.data.loader import make_loader
from maxlm.data.packing import BestFitLayout, ConcatLayout
from maxlm.data.plan import Plan

VOCAB_SIZE = 32_000
SOURCES = {"web": 0.7, "code": 0.3}
SHARDS = 4


def document_lengths(rng: np.random.Generator, count: int, mean: float) -> np.ndarray:
    """Log-normal lengths with a long tail, as web pages have. [count] int32, at least 2."""
    sigma = 1.0
    lengths = rng.lognormal(np.log(mean) - sigma**2 / 2, sigma, count)
    return np.maximum(2, lengths).astype(np.int32)


def write_corpus(folder: Path, documents: int, mean: float) -> None:
    """A token corpus of random documents, and the same tokens end to end in `flat.bin`."""
    rng = np.random.default_rng(0)
    dtype = token_dtype(VOCAB_SIZE)
    (folder / "train").mkdir()
    entries = []
    with open(folder / "flat.bin", "wb") as flat:
        for name in SOURCES:
            shards = []
            for number in range(SHARDS):
                rows = []
                for length in document_lengths(rng, documents // 2 // SHARDS, mean):
                    # Zipf-distributed ids compress about as real ones do.
                    tokens = np.minimum(rng.zipf(1.2, length) + 3, VOCAB_SIZE - 1).astype(dtype)
                    flat.write(tokens.tobytes())
                    rows.append((TokenRecord(rng.bytes(16), tokens), 4 * len(tokens)))
                shards.append(write_shard(
                    str(folder / "train"), str(folder), name, number, SHARDS, rows))
            entries.append(SourceEntry(
                name=name, domain="general", licence="none", shards=tuple(shards),
                **{key: sum(getattr(s, key) for s in shards)
                   for key in ("documents", "tokens", "bytes")}))
    manifest = Manifest(
        format=1, split="train", vocab_size=VOCAB_SIZE, bos_id=1, eos_id=2, pad_id=0,
        tokenizer_sha256="", recipe="", sources=tuple(entries),
        **{key: sum(getattr(e, key) for e in entries) for key in ("documents", "tokens", "bytes")})
    (folder / "train" / "manifest.json").write_text(manifest.to_json())


def memmap_reader(path: Path, length: int, batch_size: int) -> Callable[[int], int]:
    """Reads random rows of a flat file; returns the tokens of the step."""
    flat = np.memmap(path, token_dtype(VOCAB_SIZE), "r")
    rng = np.random.default_rng(0)

    def step(_: int) -> int:
        rows = np.stack([flat[begin:begin + length + 1].astype(np.int32)
                         for begin in rng.integers(0, len(flat) - length - 1, batch_size)])
        batch = {"tokens": rows[:, :-1], "targets": rows[:, 1:]}
        return batch["tokens"].size

    return step


def loader(plan: Plan) -> Callable[[int], int]:
    """Takes the next batch of maxlm's loader; returns the tokens of the step."""
    batches = make_loader(plan, 0, 10**9, range(plan.batch_size))

    def step(_: int) -> int:
        return int(np.count_nonzero(next(batches)[1]["segment_ids"]))

    return step


def measure(readers: dict[str, Callable[[int], int]], seconds: float) -> dict[str, float]:
    """Tokens per second of processor time over all threads; each reader in turn, several times."""
    tokens, spent, steps = (dict.fromkeys(readers, 0.0) for _ in range(3))
    for reader in readers.values():
        reader(0)
    rounds = 5
    for _ in range(rounds):
        for name, reader in readers.items():
            begin = time.process_time()
            while time.process_time() - begin < seconds / rounds:
                tokens[name] += reader(int(steps[name]))
                steps[name] += 1
            spent[name] += time.process_time() - begin
    return {name: tokens[name] / spent[name] for name in readers}


def build_seconds(documents: int, mean: float, length: int) -> dict[str, float]:
    """Seconds to lay out documents, by packing."""
    lengths = document_lengths(np.random.default_rng(1), documents, mean)
    result = {}
    for name, build in (("concat", lambda: ConcatLayout(lengths, length)),
                        ("best_fit", lambda: BestFitLayout(lengths, length, [documents]))):
        begin = time.process_time()
        build()
        result[name] = time.process_time() - begin
    return result


def main(argv: Sequence[str]) -> int:
    """The command; see the module's docstring."""
    parser = command_line.Parser(prog="python -m benchmarks.loader", description=__doc__)
    parser.add_argument("--documents", type=int, default=20_000, help="documents of the corpus")
    parser.add_argument("--mean_tokens", type=float, default=600, help="their mean length")
    parser.add_argument("--batch_tokens", type=int, default=2**16, help="tokens in a batch")
    parser.add_argument("--seconds", type=float, default=5, help="per reader and row length")
    arguments = parser.parse_args(argv)
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, numpy {np.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        print(f"writing {arguments.documents:,} documents", flush=True)
        write_corpus(path, arguments.documents, arguments.mean_tokens)
        sources = tuple(TokenSource(path=folder, source=name, weight=weight)
                        for name, weight in SOURCES.items())
        print(f"{'tokens in a row':>15} {'reader':>10} {'M tokens/s/core':>16} {'/ memmap':>9}")
        for length in (512, 2048):
            batch_size = max(1, arguments.batch_tokens // length)
            readers = {"memmap": memmap_reader(path / "flat.bin", length, batch_size)}
            for packing in ("concat", "best_fit"):
                readers[packing] = loader(Plan.build(DataConfig(
                    tokens=sources, sequence_length=length, batch_size=batch_size,
                    packing=packing), seed=0))
            speeds = measure(readers, arguments.seconds)
            for name, speed in speeds.items():
                print(f"{length:>15} {name:>10} {speed / 1e6:>16.2f} "
                      f"{speed / speeds['memmap']:>9.2f}", flush=True)
    documents = 1_000_000
    for name, seconds in build_seconds(documents, arguments.mean_tokens, 2048).items():
        print(f"plan of {documents:,} documents, {name}: {seconds:.2f} s")
    return 0


if __name__ == "__main__":
    command_line.run_command(main)
