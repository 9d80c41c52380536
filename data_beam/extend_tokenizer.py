"""New pieces after those of a tokenizer: no old id moves.

    python -m data_beam.extend_tokenizer --tokenizer=TOK/tokenizer.model --add=terms.txt \\
        --output=TOK2

writes the tokenizer in its own form (tokenizer.model, or tokenizer.json and tokenizer_config.json)
and

    TOK2/report.json   what was added, with the old pieces each replaces; what was one piece before

The file has one piece a line; a new piece is always taken whole, wherever it stands. Texts without
a new piece keep their ids. `python -m maxlm.extend_vocabulary` gives a trained model rows for them.
Run it again and it does nothing.
"""

import json
from collections.abc import Sequence
from typing import Any

import tokenizers
from apache_beam.io.filesystems import FileSystems

from data_beam.export_tokenizer import write_tokenizer
from data_beam.sinks import files, output_folder
from data_beam.text_sample import joined, symbol_lines
from maxlm.config import command_line
from maxlm.config.schema import ConfigError
from maxlm.data.huggingface_tokenizer import HuggingFaceTokenizer
from maxlm.data.sentencepiece_model import (
    Kind,
    Piece,
    lowest_score,
    parse,
    symbol_score,
    with_pieces,
)
from maxlm.data.tokenizer import (
    HUGGING_FACE_CONFIG,
    HUGGING_FACE_FILE,
    SentencePieceTokenizer,
    Tokenizer,
)

_LONGEST = 64
_SHOWN = 10


def extend(tokenizer: Tokenizer, pieces: Sequence[str]) -> Tokenizer:
    """The tokenizer with more pieces.

    In a BPE model they are user-defined symbols, and so they are in a unigram model that has such
    symbols already; other unigram models get ordinary pieces whose score beats every other
    spelling (see `maxlm.data.sentencepiece_model.symbol_score`).

    Args:
      tokenizer: of either kind.
      pieces: texts that are not one piece yet.

    Raises:
      ConfigError: a SentencePiece model of words or characters; a tokenizer.json with holes
        between its ids.
    """
    if isinstance(tokenizer, HuggingFaceTokenizer):
        return _extend_json(tokenizer, pieces)
    assert isinstance(tokenizer, SentencePieceTokenizer)
    model = parse(tokenizer.model)
    if model.algorithm not in ("bpe", "unigram"):
        raise ConfigError(f"--tokenizer: a SentencePiece model of kind {model.algorithm!r} cannot "
                          "be extended; only bpe and unigram can")
    symbols = model.algorithm == "bpe" or any(
        piece.kind is Kind.USER_DEFINED for piece in model.pieces)
    lowest = lowest_score(model.pieces)
    return SentencePieceTokenizer(with_pieces(tokenizer.model, [
        Piece(text, 0.0, Kind.USER_DEFINED) if symbols else Piece(text, symbol_score(text, lowest))
        for text in joined(pieces)]))


def _extend_json(tokenizer: HuggingFaceTokenizer, pieces: Sequence[str]) -> HuggingFaceTokenizer:
    longer = tokenizers.Tokenizer.from_str(tokenizer.files[HUGGING_FACE_FILE].decode())
    longer.add_tokens([tokenizers.AddedToken(piece, normalized=True) for piece in pieces])
    ids = [longer.token_to_id(piece) for piece in pieces]
    if ids != list(range(tokenizer.vocab_size, tokenizer.vocab_size + len(pieces))):
        raise ConfigError("--tokenizer: the ids of the tokenizer.json have holes, so that new "
                          "pieces would not come after the old ones")
    config = json.loads(tokenizer.files[HUGGING_FACE_CONFIG])
    return HuggingFaceTokenizer(longer.to_str(pretty=True).encode(), config)


def extend_tokenizer(tokenizer: Tokenizer, pieces: Sequence[str]
                     ) -> tuple[Tokenizer, dict[str, Any]]:
    """The longer tokenizer and the report of `extend_tokenizer`."""
    before = {piece: tokenizer.encode(piece) for piece in pieces}
    existed = [piece for piece in pieces if len(before[piece]) == 1
               and before[piece][0] != tokenizer.unk_id
               and tokenizer.decode(before[piece]) == piece]
    new = [piece for piece in pieces if piece not in existed]
    if not new:
        raise ConfigError("--add: all of its pieces are in the tokenizer already" if existed else
                          "--add: the file has no pieces")
    longer = extend(tokenizer, new)
    added = [{"piece": piece, "id": tokenizer.vocab_size + number,
              "before": tokenizer.pieces(before[piece])} for number, piece in enumerate(new)]
    for entry in added:
        if longer.encode(entry["piece"]) != [entry["id"]]:
            raise ConfigError(f"--add: {entry['piece']!r} would not be one piece: the tokenizer "
                              "takes another piece inside it first")
    return longer, {
        "sha256": longer.sha256, "extended_from": tokenizer.sha256,
        "vocab_size": longer.vocab_size, "vocab_size_before": tokenizer.vocab_size,
        "added": added, "existed": existed}


def main(argv: Sequence[str]) -> int:
    """The command; see the module's docstring."""
    parser = command_line.Parser(prog="python -m data_beam.extend_tokenizer", description=__doc__)
    parser.add_argument("--tokenizer", required=True,
                        help="tokenizer.model, tokenizer.json, or a folder with one of them")
    parser.add_argument("--add", required=True, metavar="FILE",
                        help=f"new pieces, one a line, UTF-8, at most {_LONGEST} characters each")
    parser.add_argument("--output", required=True, help="folder of the longer tokenizer")
    arguments = parser.parse_args(argv)
    tokenizer = Tokenizer.load(arguments.tokenizer, "--tokenizer", documents=False)
    pieces, left_out = symbol_lines(arguments.add, "--add", _LONGEST)
    longer, report = extend_tokenizer(tokenizer, pieces)
    report["left_out"] = left_out
    with output_folder.exclusive(arguments.output) as output:
        write_tokenizer(longer, output)
        text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
        files.write_atomically(FileSystems.join(output, "report.json"), output,
                               lambda handle: handle.write(text.encode()))
        print(f"{len(report['added']):,} pieces added, {len(report['existed']):,} were one piece "
              f"already; left out: {left_out['empty']:,} empty lines, {left_out['repeated']:,} "
              "repeated")
        for entry in report["added"][:_SHOWN]:
            print(f"  {entry['id']}: {entry['piece']} (before: {' '.join(entry['before'])})")
        if len(report["added"]) > _SHOWN:
            print(f"  and {len(report['added']) - _SHOWN:,} more, see report.json")
        print(f"{report['vocab_size_before']:,} -> {report['vocab_size']:,} ids; tokenizer: "
              + ", ".join(FileSystems.join(output, name) for name in longer.files))
    return 0


if __name__ == "__main__":
    command_line.run_command(main)
