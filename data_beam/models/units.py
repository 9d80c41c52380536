"""The token units of perplexity models: characters, words or SentencePiece pieces.

Each line of a text is a sentence. All units omit whitespace, so the layout of a text has no effect.
Only `word` changes letters: it converts them to lower case.
"""

import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import sentencepiece

from data_beam.models.backoff_model import BOS, EOS, SPECIAL, UNK

UNITS = ("character", "word", "piece")
_WORDS = re.compile(r"\w+|[^\w\s]|\n")
_SPACE = re.compile(r"\s")
_CODE_POINTS = 0x110000
_SKIPPED = -1


class Tokens:
    """Converts a text to token ids: [T] int64, each sentence as <s>, its tokens, </s>.

    Lines without tokens are skipped; a text without tokens gives an empty array. Every string is
    accepted, including lone surrogates. `vocabulary` has names by id, starting with
    `backoff_model.SPECIAL`; for unit `piece`, `pieces` are the bytes of a SentencePiece model.
    """

    def __init__(self, unit: str, vocabulary: Sequence[str], pieces: bytes = b""):
        self._ids: Callable[[str], np.ndarray]
        if unit == "character":
            self._table = _character_table(vocabulary)
            self._ids = self._characters
        elif unit == "word":
            self._by_word = {word: id for id, word in enumerate(vocabulary)}
            self._by_word["\n"] = EOS
            self._ids = self._words
        else:
            self._encode = sentencepiece.SentencePieceProcessor(model_proto=pieces)
            ids = {name: id for id, name in enumerate(vocabulary)}
            self._by_piece = np.array([
                _SKIPPED if _SPACE.search(name) else ids.get(name, UNK)
                for name in _piece_names(self._encode)], np.int64)
            self._ids = self._pieces

    def __call__(self, text: str) -> np.ndarray:
        return with_sentence_marks(self._ids(text))

    def _characters(self, text: str) -> np.ndarray:
        ids = self._table[_code_points(text)]
        return ids[ids != _SKIPPED]

    def _words(self, text: str) -> np.ndarray:
        get = self._by_word.get
        return np.array([get(word, UNK) for word in _WORDS.findall(text.lower())], np.int64)

    def _pieces(self, text: str) -> np.ndarray:
        ids: list[int] = []
        ends: list[int] = []
        for line in self._encode.encode(_lines(text)):
            ids += line
            ends.append(len(ids))
        tokens = np.insert(self._by_piece[np.array(ids, np.int64)], ends, EOS)
        return tokens[tokens != _SKIPPED]


def with_sentence_marks(ids: np.ndarray) -> np.ndarray:
    """Adds <s> and missing </s> to ids in which </s> separates lines, and removes empty lines."""
    ids = np.concatenate([ids, [EOS]])
    after = np.concatenate([[EOS], ids[:-1]])
    keep = (ids != EOS) | (after != EOS)  # skip the ends of empty lines
    ids, after = ids[keep], after[keep]
    # A sentence begins after each end.
    return np.insert(ids, np.flatnonzero(after == EOS), BOS) if len(ids) else ids


def vocabulary_of(unit: str, texts: Iterable[str], pieces: bytes = b"") -> tuple[str, ...]:
    """The special tokens, then the tokens of the texts sorted by code points."""
    if unit == "character":
        seen = np.zeros(_CODE_POINTS, bool)
        for text in texts:
            seen[_code_points(text)] = True
        found = {chr(point) for point in np.flatnonzero(seen)}
    elif unit == "word":
        found = set()
        for text in texts:
            found.update(_WORDS.findall(text.lower()))
    else:
        encoder = sentencepiece.SentencePieceProcessor(model_proto=pieces)
        names = np.array(_piece_names(encoder), object)
        used = np.zeros(len(names), bool)
        for text in texts:
            for line in encoder.encode(_lines(text)):
                used[line] = True
        found = set(names[used]) - {encoder.id_to_piece(encoder.unk_id())}
    return SPECIAL + tuple(sorted(token for token in found - set(SPECIAL)
                                  if not _SPACE.search(token)))


def _code_points(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


def _lines(text: str) -> list[str]:
    # SentencePiece does not accept lone surrogates.
    return text.encode("utf-8", "replace").decode("utf-8").split("\n")


def _character_table(vocabulary: Sequence[str]) -> np.ndarray:
    """[code points] int64: id of each character, -1 for whitespace, </s> for a line feed."""
    table = np.full(_CODE_POINTS, UNK, np.int64)
    whitespace = [point for point in range(0x3001) if _SPACE.match(chr(point))]
    table[whitespace] = _SKIPPED
    table[ord("\n")] = EOS
    for id, name in enumerate(vocabulary):
        if len(name) == 1:
            table[ord(name)] = id
    return table


def _piece_names(encoder: sentencepiece.SentencePieceProcessor) -> list[str]:
    return [encoder.id_to_piece(id) for id in range(encoder.get_piece_size())]


def token_names(unit: str, pieces: bytes = b"") -> Callable[[str], list[list[str]]]:
    """A function from a text to the names of the tokens of each non-empty line."""
    if unit == "piece":
        encoder = sentencepiece.SentencePieceProcessor(model_proto=pieces)

        def split(line: str) -> list[str]:
            return [name for name in encoder.encode(line, out_type=str) if not _SPACE.search(name)]
    elif unit == "word":

        def split(line: str) -> list[str]:
            return _WORDS.findall(line.lower())
    else:

        def split(line: str) -> list[str]:
            return [character for character in line if not _SPACE.match(character)]

    return lambda text: [tokens for line in _lines(text) if (tokens := split(line))]
