"""Reads the contents of a SentencePiece model file, and adds pieces to it.

The file is a protocol buffer (`sentencepiece_model.proto` of SentencePiece, version 2 syntax). The
Python classes that SentencePiece ships for it need a newer protobuf than Apache Beam allows, so
the few fields needed here are read from the wire format itself: a sequence of (number of the field
and kind, value), where a value is a varint, 32 or 64 bits, or a length and bytes.
"""

import dataclasses
import enum
import itertools
import math
import struct
from collections.abc import Iterable, Iterator, Mapping

SCORES_PER_NAT = 16
"""Scores of `exact_unigram` are multiples of its inverse."""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class Kind(enum.IntEnum):
    """ModelProto.SentencePiece.Type."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclasses.dataclass(frozen=True)
class Piece:
    """One id."""

    text: str
    score: float
    kind: Kind = Kind.NORMAL


@dataclasses.dataclass(frozen=True)
class Model:
    """What this package needs to know of a model.

    Attributes:
      pieces: by id.
      algorithm: "unigram", "bpe", "word" or "char".
      byte_fallback: characters without a piece are spelled by bytes.
      changes_text: the model's normalisation is more than writing spaces as U+2581.
    """

    pieces: tuple[Piece, ...]
    algorithm: str
    byte_fallback: bool
    changes_text: bool


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value) of each field in order; floats and doubles as their bytes.

    Raises:
      ValueError: the bytes are no message.
    """
    at = 0
    try:
        while at < len(message):
            key, at = _varint(message, at)
            number, kind = key >> 3, key & 7
            if kind == _VARINT:
                value, at = _varint(message, at)
            elif kind in (_FIXED32, _FIXED64, _BYTES):
                length = {_FIXED32: 4, _FIXED64: 8}.get(kind)
                if length is None:
                    length, at = _varint(message, at)
                value, at = message[at:at + length], at + length
                if at > len(message):
                    raise ValueError("a field is cut off")
            else:
                raise ValueError(f"a field of kind {kind}")
            yield number, value
    except IndexError:
        raise ValueError("a field is cut off") from None


def _piece(message: bytes) -> Piece:
    fields = dict(_fields(message))
    text, score = fields.get(1, b""), fields.get(2, struct.pack("<f", 0))
    assert isinstance(text, bytes) and isinstance(score, bytes)
    return Piece(text.decode(), struct.unpack("<f", score)[0], Kind(fields.get(3, Kind.NORMAL)))


def parse(model: bytes) -> Model:
    """Reads a model.

    Raises:
      ValueError: the bytes are no SentencePiece model.
    """
    pieces: list[Piece] = []
    trainer: dict[int, int | bytes] = {}
    normalizer: dict[int, int | bytes] = {}
    for number, value in _fields(model):
        if number in (1, 2, 3):
            if not isinstance(value, bytes):
                raise ValueError(f"field {number} is no message")
            if number == 1:
                pieces.append(_piece(value))
            else:  # a later message is merged into an earlier one
                (trainer if number == 2 else normalizer).update(_fields(value))
    algorithms = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
    # add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces are true unless said otherwise.
    plain = (not normalizer.get(2) and not normalizer.get(3, 1) and not normalizer.get(4, 1)
             and normalizer.get(5, 1))
    return Model(tuple(pieces), algorithms[int(trainer.get(3, 1))], bool(trainer.get(35, 0)),
                 not plain)


def _write_varint(value: int) -> bytes:
    result = bytearray()
    while value >= 0x80:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*result, value])


def _write_bytes(number: int, value: bytes) -> bytes:
    return _write_varint(number << 3 | _BYTES) + _write_varint(len(value)) + value


def _encode(piece: Piece) -> bytes:
    """One entry of ModelProto.pieces."""
    return _write_bytes(1, _write_bytes(1, piece.text.encode())
                        + _write_varint(2 << 3 | _FIXED32) + struct.pack("<f", piece.score)
                        + _write_varint(3 << 3) + _write_varint(piece.kind))


def lowest_score(pieces: Iterable[Piece]) -> float:
    """Score of the least likely ordinary piece."""
    return min(piece.score for piece in pieces if piece.kind is Kind.NORMAL)


def symbol_score(text: str, lowest: float) -> float:
    """Score for a piece of a unigram model that must be preferred to any other segmentation of its
    text.

    Pieces that overlap both ends of it can save at most the cost of two characters without a piece;
    the score gains more than that for each character. Of two such pieces, one inside the other, the
    longer one is preferred.

    Args:
      text: of the piece.
      lowest: score among the ordinary pieces.
    """
    return 2.0 * math.ceil(10 - lowest) * len(text) - 2 / SCORES_PER_NAT


def exact_unigram(model: bytes) -> bytes:
    """A unigram model whose best segmentation does not depend on rounding.

    SentencePiece adds up scores over the whole text in float32, so the position in the document
    decides ties and near ties, and other implementations, in float64, decide differently.
    Scores that are multiples of 1/16 add up exactly to 2^20, some 100,000 tokens. User-defined
    pieces, which SentencePiece counts as -0.1, become ordinary pieces: runs of white space at -1/8,
    the others at `symbol_score`.

    Args:
      model: a trained unigram model.
    """
    pieces = [dataclasses.replace(piece, score=round(piece.score * SCORES_PER_NAT) / SCORES_PER_NAT)
              if piece.kind is Kind.NORMAL else piece for piece in parse(model).pieces]
    lowest = lowest_score(pieces)
    for number, piece in enumerate(pieces):
        if piece.kind is Kind.USER_DEFINED:
            score = symbol_score(piece.text, lowest) if piece.text.strip() else -2 / SCORES_PER_NAT
            pieces[number] = Piece(piece.text, score)
    rest = b"".join(_write_bytes(number, value) for number, value in _fields(model)
                    if number != 1 and isinstance(value, bytes))
    return b"".join(map(_encode, pieces)) + rest


def with_pieces(model: bytes, added: Iterable[Piece], changed: Mapping[int, Piece] | None = None
                ) -> bytes:
    """The model with pieces added at the end, so that no id changes.

    Appending to the bytes of a protocol buffer extends its lists and merges a second trainer_spec
    into the first.

    Args:
      model: of any kind.
      added: the new pieces.
      changed: id -> replacement of an old piece.
    """
    if changed:
        ids = itertools.count()
        model = b"".join(
            _encode(changed[number]) if field == 1 and (number := next(ids)) in changed
            else _write_bytes(field, value)
            for field, value in _fields(model) if isinstance(value, bytes))
    model += b"".join(map(_encode, added))
    count = len(parse(model).pieces)
    return model + _write_bytes(2, _write_varint(4 << 3) + _write_varint(count))
