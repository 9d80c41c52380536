"""Adds pieces to a tokenizer; old ids stay as they are.

    python -m data_beam.extend_tokenizer --tokenizer=TOK/tokenizer.model --add=terms.txt \\
        --output=TOK2

writes the tokenizer in its own form (tokenizer.model, or tokenizer.json and tokenizer_config.json)
and

    TOK2/report.json   the added pieces, with the old pieces that each replaces; those that had an
                       id before; old pieces that are split now, because they contain a new one

The file has one piece a line. Each of them, new or old, is one piece afterwards; of two that start
at the same position the longer wins. Texts without any of them keep their ids.
`python -m maxlm.extend_vocabulary` adds rows for the new pieces to a trained model. A second run
does nothing.
"""

import json
from collections.abc import Container, Mapping, Sequence
from typing import Any

import tokenizers
from apache_beam.io.filesystems import FileSystems

from data_beam.base import files
from data_beam.export_tokenizer import write_tokenizer
from data_beam.sinks import output_folder
from data_beam.tokenizer.training import joined, symbol_lines
from maxlm.cli import command_line
from maxlm.config.schema import ConfigError
from maxlm.data import sentencepiece_model
from maxlm.data.huggingface_tokenizer import HuggingFaceTokenizer
from maxlm.data.sentencepiece_model import Kind, Piece, parse
from maxlm.data.tokenizer import (
    HUGGING_FACE_CONFIG,
    HUGGING_FACE_FILE,
    SentencePieceTokenizer,
    Tokenizer,
)
from maxlm.data.tokenizer_export import to_huggingface

_LONGEST = 64
_SHOWN = 10


def extend(tokenizer: Tokenizer, pieces: Sequence[str], raised: Sequence[int] = ()) -> Tokenizer:
    """The tokenizer with more pieces, texts without an id; some old ones, like the new, are never
    split. These are `raised`: they keep their ids (see `own_ids`).

    In a BPE model they are user-defined symbols, and so they are in a unigram model that has such
    symbols already; other unigram models get ordinary pieces whose score beats every other spelling
    (see `maxlm.data.sentencepiece_model.symbol_score`). In a tokenizer.json they are added tokens.
    Of two that start at the same position the longer wins.

    Raises ConfigError for a SentencePiece model of words or characters, a tokenizer.json with holes
    between its ids, and a piece whose spelling is that of another id.
    """
    if isinstance(tokenizer, HuggingFaceTokenizer):
        return _extend_json(tokenizer, pieces, raised)
    assert isinstance(tokenizer, SentencePieceTokenizer)
    model = parse(tokenizer.model)
    if model.algorithm not in ("bpe", "unigram"):
        raise ConfigError(f"--tokenizer: a SentencePiece model of kind {model.algorithm!r} cannot "
                          "be extended; only bpe and unigram can")
    _refuse_taken(pieces, {piece.text for piece in model.pieces}, joined(pieces))
    symbols = model.algorithm == "bpe" or any(
        piece.kind is Kind.USER_DEFINED for piece in model.pieces)
    lowest = sentencepiece_model.lowest_score(model.pieces)

    def whole(text: str, score: float = 0.0) -> Piece:
        return (Piece(text, score, Kind.USER_DEFINED) if symbols else
                Piece(text, sentencepiece_model.symbol_score(text, lowest)))

    return SentencePieceTokenizer(sentencepiece_model.with_pieces(
        tokenizer.model, map(whole, joined(pieces)),
        {number: whole(model.pieces[number].text, model.pieces[number].score)
         for number in raised}))


def _extend_json(tokenizer: HuggingFaceTokenizer, pieces: Sequence[str], raised: Sequence[int]
                 ) -> HuggingFaceTokenizer:
    longer = tokenizers.Tokenizer.from_str(tokenizer.files[HUGGING_FACE_FILE].decode())
    _refuse_taken(pieces, longer.get_vocab(with_added_tokens=True), pieces)
    longer.add_tokens([tokenizers.AddedToken(text, normalized=True)
                       for text in [*tokenizer.pieces(raised), *pieces]])
    ids = [longer.token_to_id(piece) for piece in pieces]
    if ids != list(range(tokenizer.vocab_size, tokenizer.vocab_size + len(pieces))):
        raise ConfigError("--tokenizer: the ids of the tokenizer.json have holes, so that new "
                          "pieces would not come after the old ones")
    config = json.loads(tokenizer.files[HUGGING_FACE_CONFIG])
    return HuggingFaceTokenizer(longer.to_str(pretty=True).encode(), config)


def _refuse_taken(pieces: Sequence[str], taken: Container[str], spelled: Sequence[str]) -> None:
    for piece, spelling in zip(pieces, spelled, strict=True):
        if spelling in taken:
            raise ConfigError(f"--add: {piece!r} is how the tokenizer spells an id that stands for "
                              "something else (a special token, a byte); leave it out")


def own_ids(tokenizer: Tokenizer, pieces: Sequence[str]) -> dict[str, int]:
    """Ids of texts that are in the vocabulary and that `extend` can make one piece.

    A piece of the vocabulary has one even where the tokenizer never takes it. In a tokenizer.json
    an added token has to be spelled as the text it matches, which pieces of byte-level BPE are for
    ASCII alone.
    """
    whole = {piece: ids[0] for piece in pieces if (ids := _one_piece(tokenizer, piece))}
    if isinstance(tokenizer, HuggingFaceTokenizer):
        model = tokenizers.Tokenizer.from_str(tokenizer.files[HUGGING_FACE_FILE].decode())
        spelled = {piece: model.token_to_id(model.normalizer.normalize_str(piece)
                                            if model.normalizer else piece) for piece in pieces}
        return {piece: number for piece, number in spelled.items() if number is not None
                and tokenizer.decode([number]) == piece and whole.get(piece, number) == number}
    assert isinstance(tokenizer, SentencePieceTokenizer)
    ids = {piece.text: number for number, piece in enumerate(parse(tokenizer.model).pieces)
           if piece.kind in (Kind.NORMAL, Kind.USER_DEFINED, Kind.UNUSED)}
    return {piece: ids[text] for piece, text in zip(pieces, joined(pieces), strict=True)
            if text in ids} | whole


def _one_piece(tokenizer: Tokenizer, text: str) -> list[int] | None:
    """The id of a text that is one piece, else None."""
    ids = tokenizer.encode(text)
    return ids if (len(ids) == 1 and ids[0] != tokenizer.unk_id
                   and tokenizer.decode(ids) == text) else None


def extend_tokenizer(tokenizer: Tokenizer, pieces: Sequence[str]
                     ) -> tuple[Tokenizer, dict[str, Any]]:
    """The longer tokenizer and the report of `extend_tokenizer`.

    Every piece is one id of the longer tokenizer, and of its tokenizer.json where
    `data_beam.export_tokenizer` can make one. An old piece that a new one would break is raised
    with it; where that cannot be (see `own_ids`) it gets a new id. Raises ConfigError if there is
    nothing to add, or a piece cannot be one id.
    """
    if not pieces:
        raise ConfigError("--add: the file has no pieces")
    whole = {piece for piece in pieces if _one_piece(tokenizer, piece)}
    own = own_ids(tokenizer, pieces)
    raised = {piece for piece in pieces if piece in own and piece not in whole}
    renewed: set[str] = set()
    while True:
        new = [piece for piece in pieces
               if piece in renewed or (piece not in whole and piece not in own)]
        if not new and not raised:
            raise ConfigError("--add: all of its pieces are in the tokenizer already")
        longer = extend(tokenizer, new, [own[piece] for piece in pieces if piece in raised])
        broken = {piece for piece in whole - raised - renewed if not _one_piece(longer, piece)}
        if not broken:
            break
        raised |= broken & own.keys()
        renewed |= broken - own.keys()
    ids = own | {piece: tokenizer.vocab_size + number for number, piece in enumerate(new)}
    _check_whole(longer, pieces, ids)
    if isinstance(longer, SentencePieceTokenizer) and (exported := _exported(longer)):
        _check_whole(exported, pieces, ids, " in the tokenizer.json of data_beam.export_tokenizer")
    return longer, {
        "sha256": longer.sha256, "extended_from": tokenizer.sha256,
        "vocab_size": longer.vocab_size, "vocab_size_before": tokenizer.vocab_size,
        "added": [{"piece": piece, "id": ids[piece],
                   "before": tokenizer.pieces(tokenizer.encode(piece))} for piece in new],
        "existed": [piece for piece in pieces if piece not in new],
        "raised": [piece for piece in pieces if piece in raised],
        "cut": _cut(tokenizer, longer, renewed)}


def _exported(tokenizer: SentencePieceTokenizer) -> Tokenizer | None:
    """Its tokenizer.json; None where there cannot be one, which only export_tokenizer reports."""
    try:
        return to_huggingface(tokenizer)
    except ConfigError:
        return None


def _check_whole(tokenizer: Tokenizer, pieces: Sequence[str], ids: Mapping[str, int],
                 where: str = "") -> None:
    for piece in pieces:
        found = tokenizer.encode(piece)
        if _one_piece(tokenizer, piece) is None or found[0] != ids.get(piece, found[0]):
            raise ConfigError(
                f"--add: {piece!r} would not be one piece{where}, but "
                f"{' | '.join(tokenizer.pieces(found))}: the tokenizer takes another piece inside "
                "it first; leave it out, or those of its parts that --add names")


def _cut(old: Tokenizer, new: Tokenizer, renewed: Container[str]) -> list[str]:
    """Old pieces of several characters that were one piece and are split now."""
    texts = ((number, old.decode([number])) for number in range(old.vocab_size))
    return [text for number, text in texts
            if len(text) > 1 and text not in renewed
            and old.encode(text) == [number] != new.encode(text)]


def _some(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _SHOWN:,} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more


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
        files.write_atomically(FileSystems.join(output, "report.json"), output, text.encode())
        print(f"{len(report['added']):,} pieces added, {len(report['existed']):,} were pieces "
              f"already; left out: {left_out['empty']:,} empty lines, {left_out['repeated']:,} "
              "repeated")
        if report["raised"]:
            print(f"{len(report['raised']):,} of the old ones now win over the pieces they "
                  f"contain: {_some(report['raised'])}")
        if report["cut"]:
            print(f"{len(report['cut']):,} old pieces are split now, as they contain a new one: "
                  f"{_some(report['cut'])}; list those in --add that are to stay whole")
        for entry in report["added"][:_SHOWN]:
            print(f"  {entry['id']}: {entry['piece']} (before: {' '.join(entry['before'])})")
        if len(report["added"]) > _SHOWN:
            print(f"  and {len(report['added']) - _SHOWN:,} more, see report.json")
        print(f"{report['vocab_size_before']:,} -> {report['vocab_size']:,} ids; tokenizer: "
              + ", ".join(FileSystems.join(output, name) for name in longer.files))
    return 0


if __name__ == "__main__":
    command_line.run_command(main)
