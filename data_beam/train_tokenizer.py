"""A SentencePiece tokenizer from a corpus.

    python -m data_beam.train_tokenizer --corpus=CORPUS --output=TOK --vocab_size=8192

writes

    TOK/tokenizer.model   SentencePiece; pad 0, BOS 1, EOS 2, unknown 3, then user-defined symbols
    TOK/report.json       characters and bytes per token by source and by domain, byte pieces,
                          unknown pieces, what it was trained on

Texts come back exactly: normalisation is the identity, spaces are kept (runs of them may become one
piece), line feeds and tabs are pieces of their own, digits are split, and with --byte_fallback any
character without a piece is spelled by its bytes. Words like <s> in a text stay text.

It learns from a sample of the documents for training, chosen by the hash of their ids. The same
corpus and flags give the same bytes. Run it again and it does nothing.
"""

import hashlib
import heapq
import json
import math
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

import xxhash
from apache_beam.io.filesystems import FileSystems

from data_beam.corpus_files import CorpusFiles, find_documents, read_rows
from data_beam.sinks import files, json_files, output_folder
from data_beam.spm_training import TrainingError, train
from maxlm.config import command_line
from maxlm.config.schema import ConfigError
from maxlm.data.corpus import TOKENIZER_FILE
from maxlm.data.tokenizer import SPACE_MARK, SentencePieceTokenizer, Tokenizer

PAD_ID, BOS_ID, EOS_ID, UNK_ID = range(4)
# Line feeds and tabs never join other characters in a piece, so they are pieces from the start.
_WHITESPACE = ("\n", "\n\n", "\t", "\t\t", "\t\t\t", "\t\t\t\t")
# SentencePiece skips sentences with NUL and with its own mark for unknown characters, and takes
# its mark for spaces as a space. Sentences end there instead, and the three are spelled by bytes.
_SENTENCE_ENDS = re.compile(f"[\0\n\t{SPACE_MARK}\u2585]+")
_SENTENCE_CHARACTERS = 4096
_THREADS = 2  # fixed, because unigram training sums floats per thread
_REPORT_BYTES = 2_000_000
_FERTILITY = {str: {"characters_per_token": float, "bytes_per_token": float, "byte_pieces": int,
                    "tokens": int, "unknown": int}}
_REPORT = {"sha256": str, "inputs": dict, "sources": _FERTILITY, "domains": _FERTILITY,
           "trained_on": {"sentences": int, "skipped_sentences": int}}


def sample_documents(corpus: CorpusFiles, sample_bytes: int) -> tuple[list[dict[str, Any]], int]:
    """Documents for training with the smallest hashes of their ids, up to `sample_bytes` of text.

    Each has the same chance, so sources keep their shares. The last one is cut to fit.

    Returns:
      Rows with id, text, source, domain in the order of their hashes, and how many there were.
    """
    heap: list[tuple[int, str, int, dict[str, Any]]] = []
    total, seen = 0, 0
    for file in corpus.files:
        for row in read_rows(file.path, ["id", "text", "source", "domain", "split"]):
            if row["split"] != "train":
                continue
            seen += 1
            size = len(row["text"].encode())
            key = -xxhash.xxh3_64_intdigest(row["id"].encode())
            if heap and total >= sample_bytes and key < heap[0][0]:
                continue
            heapq.heappush(heap, (key, row["id"], size, row))
            total += size
            while total - heap[0][2] >= sample_bytes:
                total -= heapq.heappop(heap)[2]
    rows = [entry[3] for entry in sorted(heap, key=lambda entry: (-entry[0], entry[1]))]
    if total > sample_bytes:
        over = total - sample_bytes
        kept = rows[-1]["text"].encode()[:-over]
        rows[-1]["text"] = kept.decode("utf-8", "ignore")
    return rows, seen


def sentences(text: str) -> Iterator[str]:
    """What SentencePiece learns from: lines, the long ones in parts, none of which it skips."""
    for line in _SENTENCE_ENDS.split(text):
        while len(line) > _SENTENCE_CHARACTERS:
            cut = line.rfind(" ", _SENTENCE_CHARACTERS // 2, _SENTENCE_CHARACTERS)
            cut = cut if cut > 0 else _SENTENCE_CHARACTERS
            yield line[:cut]
            line = line[cut:]
        if line.strip(" "):
            yield line


def fertility(tokenizer: Tokenizer, rows: Sequence[dict[str, Any]], key: str
              ) -> dict[str, dict[str, Any]]:
    """Characters, bytes, tokens and their ratios by the column `key`, over at most 2 MB of each."""
    counts: dict[str, dict[str, Any]] = {}
    for row in rows:
        entry = counts.setdefault(row[key], dict.fromkeys(
            ("documents", "characters", "bytes", "tokens", "byte_pieces", "unknown"), 0))
        if entry["bytes"] >= _REPORT_BYTES:
            continue
        ids = tokenizer.encode(row["text"])
        entry["documents"] += 1
        entry["characters"] += len(row["text"])
        entry["bytes"] += len(row["text"].encode())
        entry["tokens"] += len(ids)
        entry["byte_pieces"] += sum(map(tokenizer.is_byte, ids))
        entry["unknown"] += ids.count(tokenizer.unk_id)
    for entry in counts.values():
        tokens = max(1, entry["tokens"])
        entry["characters_per_token"] = round(entry["characters"] / tokens, 4)
        entry["bytes_per_token"] = round(entry["bytes"] / tokens, 4)
    return dict(sorted(counts.items()))


def _refusal(message: str, vocab_size: int) -> ConfigError:
    """The trainer's message in the command's words."""
    high = re.search(r"Vocabulary size too high \(\d+\).*<= (\d+)", message)
    if high:
        return ConfigError(f"--vocab_size: {vocab_size} is more than the text allows; the most "
                           f"that is possible is {high[1]}")
    low = re.search(r"smaller than required_chars. \d+ vs (\d+)", message)
    if low:
        return ConfigError(f"--vocab_size: {vocab_size} is too small for the characters of the "
                           f"text; at least {int(low[1]) + 1} are needed, or a smaller "
                           "--character_coverage")
    return ConfigError(f"SentencePiece refused: {message}")


class _Progress:
    """The stage of training on standard error, one line rewritten on a terminal."""

    def __init__(self, vocab_size: int):
        self._vocab_size = vocab_size
        self._started = self._shown = time.monotonic()

    def __call__(self, line: str) -> None:
        now = time.monotonic()
        pieces = re.search(r"(?:merges|sub_iter=\d+ size)=(\d+)", line)  # of BPE, of unigram
        if pieces and now - self._shown > (0.2 if sys.stderr.isatty() else 2):
            self._shown = now
            begin, end = ("\r\x1b[K", "") if sys.stderr.isatty() else ("", "\n")
            print(f"{begin}training: {pieces[1]} pieces considered for {self._vocab_size}, "
                  f"{now - self._started:.0f} s", end=end, file=sys.stderr, flush=True)

    def done(self) -> None:
        begin = "\r\x1b[K" if sys.stderr.isatty() else ""
        print(f"{begin}trained in {time.monotonic() - self._started:.1f} s", file=sys.stderr)


def _symbols(text: str) -> list[str]:
    symbols = [symbol for symbol in text.split(",") if symbol]
    for symbol in symbols:
        if symbols.count(symbol) > 1:
            raise ConfigError(f"--user_defined_symbols: {symbol!r} is given twice")
        if re.search(rf"[\s{SPACE_MARK}]", symbol):
            raise ConfigError(f"--user_defined_symbols: {symbol!r} must not contain spaces")
        if symbol in ("<pad>", "<s>", "</s>", "<unk>"):
            raise ConfigError(f"--user_defined_symbols: {symbol!r} is the name of a special id")
    return symbols


def train_tokenizer(corpus: str, output: str, *, vocab_size: int, model_type: str,
                    character_coverage: float, user_defined_symbols: list[str],
                    byte_fallback: bool, sample_bytes: int) -> dict[str, Any]:
    """Trains a tokenizer unless it is there; returns its report.

    Raises:
      ConfigError: no corpus, a vocabulary that the text cannot give, something else in `output` or
        another run writing it, a full disk.
    """
    with output_folder.exclusive(output) as folder:
        return _train_tokenizer(corpus, folder, {
            "vocab_size": vocab_size, "model_type": model_type,
            "character_coverage": character_coverage, "byte_fallback": byte_fallback,
            "user_defined_symbols": user_defined_symbols, "sample_bytes": sample_bytes})


def _already_trained(output: str, inputs: dict[str, Any]) -> dict[str, Any] | None:
    """The report of a tokenizer of these inputs, None when there is none.

    The report is written first, so a model without one is not this command's.

    Raises:
      ConfigError: there is something else.
    """
    model = FileSystems.join(output, TOKENIZER_FILE)
    path = FileSystems.join(output, "report.json")
    is_there = FileSystems.exists(model)
    if not FileSystems.exists(path):
        if is_there:
            raise ConfigError(f"--output: {model} is there without a report.json, so it is of "
                              "something else; choose another --output or move it away")
        return None
    try:
        report = json_files.read(path, _REPORT)
    except json_files.NotThisKind as error:
        raise ConfigError(f"--output: {path} is damaged or no report of a tokenizer ({error}); "
                          "choose another --output or move it away") from None
    changed = [name for name, value in inputs.items() if report["inputs"].get(name) != value]
    if changed:
        raise ConfigError(f"--output: {output} holds a tokenizer made with another "
                          f"{', '.join(changed)}; choose another --output or remove it")
    if not is_there:  # a run was stopped between the two
        return None
    if hashlib.sha256(files.read_bytes(model)).hexdigest() != report["sha256"]:
        raise ConfigError(f"--output: {model} is damaged or not that of its report.json; remove "
                          f"{output} and run again")
    return report


def _train_tokenizer(corpus: str, output: str, flags: dict[str, Any]) -> dict[str, Any]:
    vocab_size, sample_bytes = flags["vocab_size"], flags["sample_bytes"]
    found = find_documents(corpus)
    inputs = {"corpus": found.fingerprint, **flags}
    report = _already_trained(output, inputs)
    if report is not None:
        print(f"{FileSystems.join(output, TOKENIZER_FILE)} is there and of these inputs: nothing "
              "to do")
        return report
    print(f"sampling up to {sample_bytes / 1e6:g} MB of {found.rows:,} documents", flush=True)
    rows, seen = sample_documents(found, sample_bytes)
    if not rows:
        raise ConfigError(f"--corpus: {corpus} has no documents in its split 'train'")
    size = sum(len(row["text"].encode()) for row in rows)
    print(f"training on {len(rows):,} documents, {size / 1e6:.1f} MB", flush=True)
    progress = _Progress(vocab_size)
    count = 0

    def counted() -> Iterator[str]:
        nonlocal count
        for row in rows:
            for sentence in sentences(row["text"]):
                count += 1
                yield sentence

    arguments = {
        **{name: flags[name] for name in (
            "vocab_size", "model_type", "character_coverage", "byte_fallback")},
        "user_defined_symbols": [*flags["user_defined_symbols"], *_WHITESPACE],
        "pad_id": PAD_ID, "bos_id": BOS_ID, "eos_id": EOS_ID, "unk_id": UNK_ID,
        "normalization_rule_name": "identity", "add_dummy_prefix": False,
        "remove_extra_whitespaces": False, "allow_whitespace_only_pieces": True,
        "split_digits": True, "shuffle_input_sentence": False, "num_threads": _THREADS,
        "max_sentence_length": 8 * _SENTENCE_CHARACTERS,
    }
    try:
        model, skipped = train(counted(), arguments, progress)
    except TrainingError as error:
        raise _refusal(str(error), vocab_size) from None
    except OSError as error:
        full = files.disk_full(error)
        if not full:
            raise
        raise ConfigError(f"TMPDIR: cannot write to {tempfile.gettempdir()}: {full}; make room or "
                          "set TMPDIR to a folder on a larger disk") from error
    progress.done()
    tokenizer = SentencePieceTokenizer(model)
    report = {
        "sha256": tokenizer.sha256,
        "vocab_size": tokenizer.vocab_size,
        "special_ids": {"pad": PAD_ID, "bos": BOS_ID, "eos": EOS_ID, "unk": UNK_ID},
        "inputs": inputs,
        "trained_on": {"documents": len(rows), "of_documents": seen, "bytes": size,
                       "sentences": count, "skipped_sentences": skipped},
        # Measured on the sample itself.
        "sources": fertility(tokenizer, rows, "source"),
        "domains": fertility(tokenizer, rows, "domain"),
    }
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    try:
        for name, content in (("report.json", text.encode()), (TOKENIZER_FILE, model)):
            files.write_atomically(FileSystems.join(output, name), output,
                                   lambda handle, content=content: handle.write(content))
    except OSError as error:
        full = files.disk_full(error)
        if not full:
            raise
        raise ConfigError(f"--output: cannot write to {output}: {full}; there is no tokenizer yet. "
                          "Make room and run again") from error
    return report


def main(argv: Sequence[str]) -> int:
    """The command; see the module's docstring."""
    parser = command_line.Parser(prog="python -m data_beam.train_tokenizer", description=__doc__)
    parser.add_argument("--corpus", required=True, help="folder that data_beam.prepare wrote")
    parser.add_argument("--output", required=True, help="folder of the tokenizer")
    parser.add_argument("--vocab_size", type=int, default=8192, help="number of ids (8192)")
    parser.add_argument("--model_type", choices=("bpe", "unigram"), default="bpe",
                        help="how pieces are found (bpe)")
    parser.add_argument("--character_coverage", type=float, default=0.9995,
                        help="share of characters that get a piece; 0.9995 suits Chinese, 0.9999 "
                        "English (0.9995)")
    parser.add_argument("--user_defined_symbols", type=str, default="",
                        help="texts that are always one piece, for example [MED],[LAW]")
    parser.add_argument("--byte_fallback", action="store_true", default=True,
                        help="spell characters without a piece by their bytes (the default)")
    parser.add_argument("--nobyte_fallback", dest="byte_fallback", action="store_false",
                        help="characters without a piece are unknown; texts may not come back")
    parser.add_argument("--sample_bytes", type=float, default=50e6,
                        help="bytes of text to learn from at most (50e6)")
    arguments = parser.parse_args(argv)
    least = UNK_ID + 1 + len(_WHITESPACE)
    if arguments.vocab_size <= least:
        raise ConfigError(f"--vocab_size: must be more than {least}, got {arguments.vocab_size}")
    if not 0 < arguments.character_coverage <= 1:
        raise ConfigError("--character_coverage: must be above 0 and at most 1, got "
                          f"{arguments.character_coverage}")
    if not 1 <= arguments.sample_bytes < math.inf:  # false for a nan
        raise ConfigError("--sample_bytes: must be a number of at least 1, got "
                          f"{arguments.sample_bytes:g}")
    report = train_tokenizer(
        arguments.corpus, arguments.output, vocab_size=arguments.vocab_size,
        model_type=arguments.model_type, character_coverage=arguments.character_coverage,
        user_defined_symbols=_symbols(arguments.user_defined_symbols),
        byte_fallback=arguments.byte_fallback, sample_bytes=int(arguments.sample_bytes))
    trained = report["trained_on"]
    if trained["skipped_sentences"]:
        print(f"warning: {trained['skipped_sentences']:,} of {trained['sentences']:,} sentences "
              "were skipped")
    print(f"{'source':<20} {'characters/token':>16} {'bytes/token':>12} {'byte pieces':>12} "
          f"{'unknown':>8}")
    for name, entry in report["sources"].items():
        print(f"{name:<20} {entry['characters_per_token']:>16.2f} "
              f"{entry['bytes_per_token']:>12.2f} "
              f"{entry['byte_pieces'] / max(1, entry['tokens']):>12.2%} {entry['unknown']:>8,}")
    print(f"tokenizer: {FileSystems.join(arguments.output, TOKENIZER_FILE)}")
    return 0


if __name__ == "__main__":
    command_line.run_command(main)
