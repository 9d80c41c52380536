"""Trains a SentencePiece tokenizer on a corpus.

    python -m data_beam.train_tokenizer --corpus=CORPUS --output=TOK --vocab_size=8192

writes

    TOK/tokenizer.model   SentencePiece; pad 0, BOS 1, EOS 2, unknown 3, then user-defined symbols
    TOK/report.json       characters, bytes and words per token by source, domain and language, byte
                          pieces, unknown pieces, what it was trained on

Decoding gives back the exact text: normalisation is the identity, spaces are kept (runs of them may
become one piece), line feeds and tabs are separate pieces, digits are split, and with
--byte_fallback any character without a piece is spelled by its bytes. Words like <s> in a text stay
text.

It is trained on a sample of the training documents, chosen by the hash of their ids; --weights sets
the share of each source in it. The same corpus and flags give the same bytes. A second run does
nothing.
"""

import hashlib
import json
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from apache_beam.io.filesystems import FileSystems

from data_beam.base import files, json_files
from data_beam.models.samples import parse_weights, sample_documents
from data_beam.readers.corpus_files import find_documents
from data_beam.runners.progress import StatusLine
from data_beam.sinks import output_folder
from data_beam.tokenizer.fertility import fertility, table
from data_beam.tokenizer.training import (
    TrainingError,
    han_share,
    joined,
    refuse_symbol,
    sentences,
    symbol_lines,
    train,
)
from maxlm.config import command_line
from maxlm.config.schema import ConfigError
from maxlm.data.sentencepiece_model import exact_unigram
from maxlm.data.tokenizer import SENTENCEPIECE_FILE, SPACE_MARK, SentencePieceTokenizer

PAD_ID, BOS_ID, EOS_ID, UNK_ID = range(4)
# Line feeds and tabs never join other characters in a piece, so they are pieces from the start.
_WHITESPACE = ("\n", "\n\n", "\t", "\t\t", "\t\t\t", "\t\t\t\t")
# SentencePiece skips sentences with NUL and with its own mark for unknown characters, and takes
# its mark for spaces as a space. Sentences end there instead, and the three are spelled by bytes.
_SENTENCE_ENDS = re.compile(f"[\0\n\t{SPACE_MARK}\u2585]+")
_SENTENCE_CHARACTERS = 4096
_FLAGS = ("vocab_size", "model_type", "character_coverage", "byte_fallback",
          "user_defined_symbols", "phrases", "split_digits", "weights", "sample_bytes")
"""In the order of report.json."""
_THREADS = 2  # fixed, because unigram training sums floats per thread
_REPORT_BYTES = 2_000_000
_PHRASE_CHARACTERS = 64
# A corpus with this share of Han characters is taken for one of a large script.
_MUCH_HAN = 0.1
_COVERAGE_OF_HAN, _COVERAGE = 0.9995, 0.9999
_FERTILITY = {str: {"characters_per_token": float, "bytes_per_token": float, "byte_pieces": int,
                    "tokens": int, "unknown": int}}
_REPORT = {"sha256": str, "inputs": dict, "sources": _FERTILITY, "domains": _FERTILITY,
           "trained_on": {"sentences": int, "skipped_sentences": int}}


def _refusal(message: str, vocab_size: int) -> ConfigError:
    """The trainer's message as a message about the command's flags."""
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


def _symbols(text: str) -> list[str]:
    symbols = [symbol for symbol in text.split(",") if symbol]
    for symbol in symbols:
        if symbols.count(symbol) > 1:
            raise ConfigError(f"--user_defined_symbols: {symbol!r} is given twice")
        if " " in symbol:
            raise ConfigError(f"--user_defined_symbols: {symbol!r} must not contain spaces; give "
                              "phrases in a file, --phrases")
        refuse_symbol(symbol, "--user_defined_symbols")
    return symbols


def _already_trained(output: str, inputs: dict[str, Any]) -> dict[str, Any] | None:
    """The report of a tokenizer of these inputs, None when there is none.

    The report is written first, so another program wrote a model without one.

    Raises:
      ConfigError: another tokenizer is there.
    """
    model = FileSystems.join(output, SENTENCEPIECE_FILE)
    path = FileSystems.join(output, "report.json")
    is_there = FileSystems.exists(model)
    if not FileSystems.exists(path):
        if is_there:
            raise ConfigError(f"--output: {model} has no report.json, so this command did not "
                              "write it; choose another --output or move it away")
        return None
    report = output_folder.finished(
        output, "report.json", lambda path: json_files.read(path, _REPORT),
        output_folder.other_inputs("tokenizer", inputs))
    assert report is not None
    if not is_there:  # a run was stopped before it wrote the model
        return None
    if hashlib.sha256(files.read_bytes(model)).hexdigest() != report["sha256"]:
        raise ConfigError(f"--output: {model} is damaged or not the one of its report.json; "
                          f"remove {output} and run again")
    return report


def train_tokenizer(corpus: str, output: str, flags: dict[str, Any]) -> dict[str, Any]:
    """Trains a tokenizer unless it is there; returns its report.

    Args:
      corpus: folder that data_beam.prepare wrote.
      output: existing folder, locked.
      flags: the command's other flags, checked; `character_coverage` None follows the share of Han
        characters in the sample.

    Raises:
      ConfigError: no corpus, a vocabulary that the text cannot give, something else in `output`, a
        full disk.
    """
    vocab_size, sample_bytes = flags["vocab_size"], flags["sample_bytes"]
    found = find_documents(corpus)
    phrases = json.dumps(flags["phrases"], ensure_ascii=False).encode()
    inputs = {"corpus": found.fingerprint, **flags,
              "phrases": hashlib.sha256(phrases).hexdigest() if flags["phrases"] else None}
    report = _already_trained(output, inputs)
    if report is not None:
        model = FileSystems.join(output, SENTENCEPIECE_FILE)
        print(f"{model} is complete and of these inputs: nothing to do")
        return report
    print(f"sampling up to {sample_bytes / 1e6:g} MB of {found.rows:,} documents", flush=True)
    rows, seen = sample_documents(found, sample_bytes, flags["weights"])
    if not rows:
        raise ConfigError(f"--corpus: {corpus} has no documents in its split 'train'")
    sizes: Counter[str] = Counter()
    for row in sorted(rows, key=lambda row: row["source"]):
        sizes[row["source"]] += len(row["text"].encode())
    size = sizes.total()
    han = han_share(row["text"] for row in rows)
    coverage = flags["character_coverage"] or (
        _COVERAGE_OF_HAN if han >= _MUCH_HAN else _COVERAGE)
    print(f"training on {len(rows):,} documents, {size / 1e6:.1f} MB ("
          + ", ".join(f"{name} {part / size:.1%}" for name, part in sizes.items())
          + f"); {han:.1%} of the characters are Han, character coverage {coverage}", flush=True)
    if flags["weights"] and size < 0.99 * sample_bytes:
        print(f"note: to keep the weights, the sample has {size / 1e6:.1f} MB and not "
              f"{sample_bytes / 1e6:g} MB: a source has no more text", flush=True)
    status, started = StatusLine(2.0), time.monotonic()
    symbols = joined([*flags["user_defined_symbols"], *flags["phrases"]])
    count = 0

    def counted() -> Iterator[str]:
        nonlocal count
        for row in rows:
            for sentence in sentences(row["text"], _SENTENCE_ENDS, _SENTENCE_CHARACTERS):
                count += 1
                yield sentence

    def report_pieces(line: str) -> None:
        pieces = re.search(r"(?:merges|sub_iter=\d+ size)=(\d+)", line)  # of BPE, of unigram
        if pieces:
            status(f"training: {pieces[1]} pieces considered for {vocab_size}")

    arguments = {
        **{name: flags[name] for name in (
            "vocab_size", "model_type", "byte_fallback", "split_digits")},
        "character_coverage": coverage,
        "user_defined_symbols": [*symbols, *_WHITESPACE],
        "pad_id": PAD_ID, "bos_id": BOS_ID, "eos_id": EOS_ID, "unk_id": UNK_ID,
        "normalization_rule_name": "identity", "add_dummy_prefix": False,
        "remove_extra_whitespaces": False, "allow_whitespace_only_pieces": True,
        "shuffle_input_sentence": False, "num_threads": _THREADS,
        "max_sentence_length": 8 * _SENTENCE_CHARACTERS,
    }
    try:
        with output_folder.naming_full_disk(tempfile.gettempdir(), field="TMPDIR"):
            model, skipped = train(counted(), arguments, report_pieces)
    except TrainingError as error:
        raise _refusal(str(error), vocab_size) from None
    status.show(f"trained in {time.monotonic() - started:.1f} s", last=True)
    if flags["model_type"] == "unigram":
        model = exact_unigram(model)
    tokenizer = SentencePieceTokenizer(model)
    report = {
        "sha256": tokenizer.sha256,
        "vocab_size": tokenizer.vocab_size,
        "special_ids": {"pad": PAD_ID, "bos": BOS_ID, "eos": EOS_ID, "unk": UNK_ID},
        "inputs": inputs,
        "character_coverage": coverage,
        "han_share": round(han, 4),
        "trained_on": {"documents": len(rows), "of_documents": seen, "bytes": size,
                       "sentences": count, "skipped_sentences": skipped,
                       "bytes_by_source": sizes},
        # Measured on the sample itself.
        **fertility(tokenizer, rows, _REPORT_BYTES),
    }
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    with output_folder.naming_full_disk(output, "tokenizer"):
        for name, content in (("report.json", text.encode()), (SENTENCEPIECE_FILE, model)):
            files.write_atomically(FileSystems.join(output, name), output, content)
    return report


def main(argv: Sequence[str]) -> int:
    """The command; see the module's docstring."""
    parser = command_line.Parser(prog="python -m data_beam.train_tokenizer", description=__doc__)
    parser.add_argument("--corpus", required=True, help="folder that data_beam.prepare wrote")
    parser.add_argument("--output", required=True, help="folder of the tokenizer")
    parser.add_argument("--vocab_size", type=int, default=8192, help="number of ids (8192)")
    parser.add_argument("--model_type", choices=("bpe", "unigram"), default="bpe",
                        help="how pieces are found (bpe)")
    parser.add_argument("--weights", type=str, default="", metavar="SOURCE=WEIGHT,...",
                        help="share of each source in the bytes that are learned from, for example "
                        "medicine=0.7,web=0.3 (the sources' own shares)")
    parser.add_argument("--character_coverage", type=float,
                        help="share of characters that get a piece (0.9995 where at least 10 %% of "
                        "the sample's characters are Han, else 0.9999)")
    parser.add_argument("--user_defined_symbols", type=str, default="",
                        help="texts that are always one piece, for example [MED],[LAW]")
    parser.add_argument("--phrases", metavar="FILE",
                        help="whole phrases that are always one piece, one a line of a UTF-8 file, "
                        f"at most {_PHRASE_CHARACTERS} characters each")
    for name, yes, no in (
            ("split_digits", "each digit is a piece of its own", "digits may join in pieces"),
            ("byte_fallback", "spell characters without a piece by their bytes",
             "characters without a piece are unknown; texts may not come back")):
        parser.add_argument(f"--{name}", action="store_true", default=True,
                            help=f"{yes} (the default)")
        parser.add_argument(f"--no{name}", dest=name, action="store_false", help=no)
    parser.add_argument("--sample_bytes", type=command_line.size, default=50_000_000,
                        help="bytes of text to learn from at most (50e6)")
    arguments = parser.parse_args(argv)
    least = UNK_ID + 1 + len(_WHITESPACE)
    if arguments.vocab_size <= least:
        raise ConfigError(f"--vocab_size: must be more than {least}, got {arguments.vocab_size}")
    if arguments.character_coverage is not None and not 0 < arguments.character_coverage <= 1:
        raise ConfigError("--character_coverage: must be above 0 and at most 1, got "
                          f"{arguments.character_coverage}")
    symbols, phrases = _symbols(arguments.user_defined_symbols), []
    if arguments.phrases is not None:
        phrases, left_out = symbol_lines(arguments.phrases, "--phrases", _PHRASE_CHARACTERS)
        both = [phrase for phrase in phrases if phrase in symbols]
        phrases = [phrase for phrase in phrases if phrase not in symbols]
        print(f"{len(phrases):,} phrases of {arguments.phrases}; left out: "
              f"{left_out['empty']:,} empty lines, {left_out['repeated'] + len(both):,} repeated")
    if arguments.vocab_size <= least + len(symbols) + len(phrases):
        raise ConfigError(f"--vocab_size: {arguments.vocab_size} leaves no room beside "
                          f"{len(symbols) + len(phrases):,} symbols and phrases")
    flags = {**{name: getattr(arguments, name) for name in _FLAGS}, "phrases": phrases,
             "user_defined_symbols": symbols, "weights": parse_weights(arguments.weights)}
    with output_folder.exclusive(arguments.output) as output:
        report = train_tokenizer(arguments.corpus, output, flags)
    trained = report["trained_on"]
    print(f"{trained['sentences']:,} sentences, {trained['skipped_sentences']:,} of them skipped "
          "by SentencePiece")
    for line in table({"": report}, ("sources", "languages")):
        print(line)
    print(f"tokenizer: {FileSystems.join(arguments.output, SENTENCEPIECE_FILE)}")
    return 0


if __name__ == "__main__":
    command_line.run_command(main, "run the same command again to start over")
