"""Trains an n-gram model on clean text, for the perplexity filter.

    python -m data_beam.train_perplexity --corpus=CLEAN --language=zh --output=MODEL

The command writes

    MODEL/model.npz         n-grams with probabilities and backoffs
    MODEL/tokenizer.model   for --unit=piece, the SentencePiece model
    MODEL/model.json        unit, language, perplexity of clean held-out documents by percentile;
                            written last
    MODEL/model.arpa        with --arpa, the same model in ARPA format, for other programs

The model is the one that KenLM's lmplz estimates from the same tokens: interpolated modified
Kneser-Ney. Each line is a sentence; whitespace is left out. Units:

    character   every character is a token (the default for zh, ja, yue and wuu)
    word        runs of letters and digits in lower case, other characters alone (the default for
                other languages)
    piece       pieces of the SentencePiece model that --tokenizer names

It is trained on a sample of the training documents, chosen by the hash of their ids; a share of
them is held out to measure percentiles. The same corpus and flags give the same bytes. If the model
exists already, the command does nothing.

With --import_model a model of another program is imported, and its percentiles are measured:

    python -m data_beam.train_perplexity --import_model=zh.arpa --corpus=CLEAN --language=zh \\
        --unit=piece --tokenizer=zh.sp.model --output=MODEL

Name the folder in a recipe: config.perplexity.models, see docs/model_filters.md.
"""

import gzip
import hashlib
import io
import itertools
import re
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from apache_beam.io.filesystems import FileSystems

from data_beam.base import files
from data_beam.models import arpa, folder, samples
from data_beam.models import perplexity as perplexities
from data_beam.models.kneser_ney import FALLBACK_DISCOUNTS, estimate
from data_beam.models.units import UNITS, Tokens, vocabulary_of
from data_beam.readers.corpus_files import find_documents
from data_beam.sinks import output_folder
from maxlm.cli import command_line
from maxlm.config.schema import ConfigError

_CHARACTER_LANGUAGES = ("zh", "ja", "yue", "wuu")
_MIN_HELD_OUT = 10
_MAX_ORDER = 10


def _documents(flags: dict[str, Any]) -> tuple[Iterable[tuple[str, str]], str]:
    """The documents, and a fingerprint of their files."""
    if flags["corpus"]:
        corpus = find_documents(flags["corpus"])
        return samples.corpus_documents(corpus, flags["language"]), corpus.fingerprint
    paths = flags["text"]
    for path in paths:
        if not FileSystems.exists(path):
            raise ConfigError(f"--text: {path} does not exist")
    digests = [hashlib.sha256(files.read_bytes(path)).hexdigest() for path in paths]
    return samples.text_documents(paths), hashlib.sha256(" ".join(digests).encode()).hexdigest()


def _tokenizer(path: str) -> bytes:
    if not FileSystems.exists(path):
        raise ConfigError(f"--tokenizer: {path} does not exist")
    pieces = files.read_bytes(path)
    try:
        Tokens("piece", ("<unk>",), pieces)
    except (RuntimeError, ValueError):
        raise ConfigError(f"--tokenizer: {path} is not a SentencePiece model") from None
    return pieces


def _train(texts: list[str], flags: dict[str, Any], pieces: bytes
           ) -> tuple[perplexities.Score, dict[str, np.ndarray], dict[str, Any], Any]:
    started = time.monotonic()
    vocabulary = vocabulary_of(flags["unit"], texts, pieces)
    tokens = Tokens(flags["unit"], vocabulary, pieces)
    ids = np.concatenate([tokens(text) for text in texts])
    if not len(ids):
        raise ConfigError("--corpus: the documents contain no tokens")
    print(f"{len(ids):,} tokens, {len(vocabulary):,} different", flush=True)
    order, prune = flags["order"], flags["prune"]
    made = estimate(ids, vocabulary, order, prune + prune[-1:] * (order - len(prune)),
                    lambda line: print(line, flush=True))
    print(f"trained in {time.monotonic() - started:.1f} s")
    for n in made.fallback_orders:
        print(f"warning: the {n}-gram counts of this text have no Kneser-Ney discounts (too little "
              f"text, or too regular); {FALLBACK_DISCOUNTS} are used")
    description = {
        "order": order, "reader": "ngrams", "ngrams": list(made.model.sizes),
        "discounts": [[round(value, 6) for value in entry] for entry in made.discounts],
        "fallback_orders": list(made.fallback_orders), "tokens": len(ids)}
    return (perplexities.ngram_score(made.model, tokens), perplexities.to_arrays(made.model),
            description, made.model)


def _import(path: str, unit: str, pieces: bytes
            ) -> tuple[perplexities.Score, dict[str, np.ndarray], dict[str, Any], dict[str, bytes]]:
    """Imports a model of another program: an ARPA file, plain or gzip, or a KenLM binary file."""
    data = files.read_bytes(path)
    packed = data.startswith(b"\x1f\x8b")
    if packed or arpa.is_arpa(data):
        lines: Any = io.BytesIO(data)
        try:
            model = arpa.read(gzip.GzipFile(fileobj=lines) if packed else lines)
        except (arpa.ArpaError, OSError, EOFError) as error:
            raise ConfigError(f"--import_model: {path}: {error}") from None
        print(f"{' + '.join(f'{size:,}' for size in model.sizes)} n-grams read")
        score = perplexities.ngram_score(model, Tokens(unit, model.vocabulary, pieces))
        return score, perplexities.to_arrays(model), {
            "order": model.order, "reader": "ngrams", "ngrams": list(model.sizes)}, {}
    if not data.startswith(b"mmap lm http://kheafield.com/code"):
        raise ConfigError(f"--import_model: {path} is neither an ARPA file nor a KenLM binary file")
    model = perplexities.open_kenlm(path, "--import_model")
    return (perplexities.kenlm_score(model, unit, pieces), {},
            {"order": model.order, "reader": "kenlm"}, {folder.KENLM: data})


def _held_out(score: perplexities.Score, texts: list[str]) -> dict[str, Any]:
    """Perplexities of the held-out documents: percentiles and total."""
    scored = [(total, count) for total, count in map(score, texts) if count]
    if len(scored) < _MIN_HELD_OUT:
        raise ConfigError(f"--held_out: only {len(scored)} documents are held out, percentiles "
                          f"need {_MIN_HELD_OUT}; give more documents or a larger --held_out")
    values = list(itertools.starmap(perplexities.perplexity, scored))
    total, tokens = (sum(column) for column in zip(*scored, strict=True))
    return {"percentiles": perplexities.percentile_cuts(values),
            "held_out": {"documents": len(scored), "tokens": tokens,
                         "perplexity": round(perplexities.perplexity(total, tokens), 4)}}


def train_perplexity(output: str, flags: dict[str, Any]) -> dict[str, Any]:
    """Trains or imports a model unless it exists already; returns its description. `flags` are the
    command's other flags, checked.

    Raises ConfigError for no documents or too few of them, a file that cannot be read, other files
    in `output`, another run writing it, and a full disk.
    """
    with output_folder.exclusive(output) as path:
        documents, fingerprint = _documents(flags)
        pieces = _tokenizer(flags["tokenizer"]) if flags["tokenizer"] else b""
        inputs = {"documents": fingerprint, "tokenizer": hashlib.sha256(pieces).hexdigest(), **{
            name: flags[name] for name in ("language", "unit", "order", "prune", "sample_bytes",
                                           "held_out", "arpa")}}
        imported = flags["import_model"]
        if imported:
            if not FileSystems.exists(imported):
                raise ConfigError(f"--import_model: {imported} does not exist")
            inputs["import_model"] = hashlib.sha256(files.read_bytes(imported)).hexdigest()
        description = folder.finished(path, perplexities.KIND, inputs)
        if description is not None:
            print(f"{path} is complete and was made from these inputs: nothing to do")
            return description
        print(f"sampling up to {flags['sample_bytes'] / 1e6:g} MB", flush=True)
        sample = samples.take(documents, flags["sample_bytes"], flags["held_out"])
        print(f"{len(sample.train):,} of {sample.documents:,} documents for training, "
              f"{len(sample.held_out):,} held out", flush=True)
        if len(sample.held_out) < _MIN_HELD_OUT:
            _held_out(lambda text: (0.0, 1), sample.held_out)  # raises before the training
        others = {folder.PIECES: pieces} if pieces else {}
        if imported:
            score, arrays, more, binary = _import(imported, flags["unit"], pieces)
            others |= binary
        else:
            if not sample.train:
                raise ConfigError("--held_out: no document is left for training")
            score, arrays, more, model = _train(sample.train, flags, pieces)
            if flags["arpa"]:
                others[folder.ARPA] = "".join(arpa.write(model)).encode("utf-8", "replace")
            more["trained_on"] = {
                "documents": len(sample.train),
                "bytes": sum(len(text.encode("utf-8", "replace")) for text in sample.train)}
        description = {"language": flags["language"], "unit": flags["unit"], **more,
                       **_held_out(score, sample.held_out)}
        with output_folder.naming_full_disk(path, "model"):
            return folder.write(path, perplexities.KIND, inputs, arrays, description, others)


def _parser() -> command_line.Parser:
    parser = command_line.Parser(prog="python -m data_beam.train_perplexity", description=__doc__)
    parser.add_argument("--corpus", default="", help="corpus of clean text, a folder that "
                        "data_beam.prepare wrote")
    parser.add_argument("--text", nargs="+", default=[], metavar="FILE", help="instead of a "
                        "corpus: UTF-8 files with documents between empty lines")
    parser.add_argument("--output", required=True, help="folder of the model")
    parser.add_argument("--language", required=True, help="language of the training documents, as "
                        "in the column language: zh, en")
    parser.add_argument("--unit", choices=UNITS, help="what n-grams are made of (character for "
                        f"{', '.join(_CHARACTER_LANGUAGES)}, else word)")
    parser.add_argument("--tokenizer", default="", help="SentencePiece model, for --unit=piece")
    parser.add_argument("--order", type=int, default=5, help="tokens of the longest n-grams (5)")
    parser.add_argument("--prune", default="0", help="drop n-grams with at most this count; one "
                        "number for each order, the last one for all longer n-grams: 0,0,1 (0)")
    parser.add_argument("--sample_bytes", type=command_line.size, default=20_000_000,
                        help="most bytes of training text; 20 MB need up to 1.3 GB of memory "
                        "(20e6)")
    parser.add_argument("--held_out", type=float, default=0.05,
                        help="share of the documents to hold out for percentiles (0.05)")
    parser.add_argument("--arpa", action="store_true", help="write model.arpa too")
    parser.add_argument("--import_model", default="", metavar="FILE", help="take this model (ARPA, "
                        "or a KenLM binary file if kenlm is installed) instead of training one")
    return parser


def _checked(arguments: Any) -> dict[str, Any]:
    flags = vars(arguments)
    if bool(flags["corpus"]) == bool(flags["text"]):
        raise ConfigError("--corpus: give either --corpus or --text")
    if not re.fullmatch(r"[a-z]{2,3}", flags["language"]):
        raise ConfigError(f"--language: {flags['language']!r} is not a code of two or three "
                          "letters such as zh or en")
    if flags["unit"] is None:
        flags["unit"] = "character" if flags["language"] in _CHARACTER_LANGUAGES else "word"
    if bool(flags["tokenizer"]) != (flags["unit"] == "piece"):
        raise ConfigError("--tokenizer: must be given for --unit=piece and for no other")
    if not 2 <= flags["order"] <= _MAX_ORDER:
        raise ConfigError(f"--order: must be from 2 to {_MAX_ORDER}, got {flags['order']}")
    try:
        flags["prune"] = [int(value) for value in flags["prune"].split(",")]
    except ValueError:
        raise ConfigError(f"--prune: expected numbers like 0,0,1, got {flags['prune']!r}") from None
    prune = flags["prune"]
    if prune[0] != 0 or sorted(prune) != prune or len(prune) > flags["order"]:
        raise ConfigError(f"--prune: must begin with 0, not decrease and have at most "
                          f"{flags['order']} numbers, got {','.join(map(str, prune))}")
    if not 0 < flags["held_out"] < 1:
        raise ConfigError(f"--held_out: must be above 0 and below 1, got {flags['held_out']:g}")
    if flags["arpa"] and flags["import_model"]:
        raise ConfigError("--arpa: an imported model is not written again; leave it out")
    return flags


def main(argv: Sequence[str]) -> int:
    """The command; see the module's docstring."""
    flags = _checked(_parser().parse_args(argv))
    output = flags.pop("output")
    made = train_perplexity(output, flags)
    held_out, cuts = made["held_out"], made["percentiles"]
    print(f"perplexity of {held_out['documents']:,} held-out documents: "
          f"{held_out['perplexity']:,.1f}")
    if held_out["documents"] < 100:
        print("warning: percentiles of fewer than 100 documents are rough; raise --held_out")
    shown = (5, 25, 50, 75, 90, 95, 99)
    print("percentile " + "".join(f"{p:>10}" for p in shown))
    print("perplexity " + "".join(f"{cuts[str(p)]:>10,.1f}" for p in shown))
    print(f"model: {output}")
    return 0


if __name__ == "__main__":
    command_line.run_command(main)
