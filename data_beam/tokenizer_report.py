"""Compares how many tokens tokenizers need for the texts of a corpus.

    python -m data_beam.tokenizer_report --corpus=CORPUS --tokenizer=TOK/tokenizer.model \\
        --compare=OTHER/tokenizer.json --output=report.json

prints a table by source, domain and language and writes the same numbers as JSON:

    chars/token   characters of text in a token: higher is cheaper
    tokens/word   fertility; words are cut by white space, Chinese ones by rjieba
    bytes/token   UTF-8 bytes in a token, which compares languages
    byte pieces   share of tokens that are parts of a character
    unknown       share of tokens that stand for unknown characters, whose text is lost

All of them see the same documents: those with the smallest hashes of their ids in a split.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from data_beam.models.samples import sample_documents
from data_beam.readers.corpus_files import find_documents
from data_beam.tokenizer.fertility import fertility, table
from maxlm.cli import command_line
from maxlm.config.schema import ConfigError, suggestion
from maxlm.data.corpus import SPLITS
from maxlm.data.tokenizer import SentencePieceTokenizer, Tokenizer

_PARTS = ("all", "sources", "domains", "languages")


def _names(paths: Sequence[str]) -> list[str]:
    """A short name for each path: its folder's or the file's if these differ."""
    folders = [Path(path).resolve().parent.name if Path(path).is_file() else Path(path).name
               for path in paths]
    return folders if len(set(folders)) == len(folders) else list(paths)


def report(corpus: str, paths: Sequence[str], split: str, sample_bytes: int) -> dict[str, Any]:
    """Fertility of tokenizers on `sample_bytes` (UTF-8) of the documents in a split of a corpus:
    {"split", "documents", "bytes", "tokenizers": {name: {"path", "kind", "vocab_size", "sha256",
    "all", "sources", "domains", "languages"}}}, see `data_beam.tokenizer.fertility`. Paths are
    SentencePiece models, tokenizer.json files, or folders with one of them."""
    if len(set(paths)) < len(paths):
        raise ConfigError("--compare: a tokenizer is given twice")
    tokenizers = {name: Tokenizer.load(path, "--compare" if number else "--tokenizer",
                                       documents=False)
                  for number, (name, path) in enumerate(zip(_names(paths), paths, strict=True))}
    rows, _ = sample_documents(find_documents(corpus), sample_bytes, split=split)
    if not rows:
        raise ConfigError(f"--corpus: {corpus} has no documents in its split {split!r}")
    return {
        "split": split, "documents": len(rows),
        "bytes": sum(len(row["text"].encode()) for row in rows),
        "tokenizers": {name: {
            "path": path,
            "kind": "sentencepiece" if isinstance(tokenizer, SentencePieceTokenizer) else
            "huggingface",
            "vocab_size": tokenizer.vocab_size, "sha256": tokenizer.sha256,
            **fertility(tokenizer, rows, sample_bytes)}
            for path, (name, tokenizer) in zip(paths, tokenizers.items(), strict=True)}}


def main(argv: Sequence[str]) -> int:
    """The command; see the module's docstring."""
    parser = command_line.Parser(prog="python -m data_beam.tokenizer_report", description=__doc__)
    parser.add_argument("--corpus", required=True, help="folder that data_beam.prepare wrote")
    parser.add_argument("--tokenizer", required=True,
                        help="SentencePiece model, tokenizer.json, or a folder with one of them")
    parser.add_argument("--compare", action="append", default=[],
                        help="another tokenizer; may be given several times")
    parser.add_argument("--split", default="train", help="documents of this split (train)")
    parser.add_argument("--sample_bytes", type=command_line.size, default=5_000_000,
                        help="bytes of text to look at, at most (5e6)")
    parser.add_argument("--output", help="JSON file for the numbers; replaced if it is there")
    arguments = parser.parse_args(argv)
    if arguments.split not in SPLITS:
        raise ConfigError(f"--split: no split {arguments.split!r}; "
                          f"{suggestion(arguments.split, SPLITS)}")
    found = report(arguments.corpus, [arguments.tokenizer, *arguments.compare], arguments.split,
                   arguments.sample_bytes)
    for name, entry in found["tokenizers"].items():
        print(f"{name}: {entry['kind']}, {entry['vocab_size']:,} ids ({entry['path']})")
    for line in table(found["tokenizers"], _PARTS):
        print(line)
    if arguments.output:
        temporary = Path(f"{arguments.output}.tmp")
        temporary.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n",
                             encoding="utf-8")
        temporary.replace(arguments.output)
    return 0


if __name__ == "__main__":
    command_line.run_command(main)
