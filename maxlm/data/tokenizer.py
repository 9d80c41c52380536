"""Text to token ids and back, exactly: decode(encode(text)) == text for any text.

A SentencePiece model that `data_beam.train_tokenizer` made has identity normalisation, no dummy
prefix and pieces for all bytes. One character needs care on top: SentencePiece writes a space as
U+2581, so a U+2581 in the text would come back as a space. It is encoded by its bytes instead.
Words like `<s>` in a text stay text: control symbols never match.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import sentencepiece

from maxlm.config import ConfigError

SPACE_MARK = "\u2581"


class Tokenizer:
    """A SentencePiece model.

    Attributes:
      vocab_size: number of ids.
      pad_id, bos_id, eos_id, unk_id: special ids; pad_id is 0 when the model has none.
      model: the model's bytes; sha256 is their checksum.
    """

    def __init__(self, model: bytes):
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.model = model
        self.sha256 = hashlib.sha256(model).hexdigest()
        self.vocab_size = self._processor.vocab_size()
        self.bos_id = self._processor.bos_id()
        self.eos_id = self._processor.eos_id()
        self.unk_id = self._processor.unk_id()
        self.pad_id = max(0, self._processor.pad_id())
        self._mark = [self._processor.piece_to_id(f"<0x{byte:02X}>")
                      for byte in SPACE_MARK.encode()]
        self._mark_is_bytes = all(self._processor.is_byte(piece) for piece in self._mark)

    @classmethod
    def load(cls, path: str | Path, field: str = "tokenizer") -> "Tokenizer":
        """Raises ConfigError when the file is missing, no model, or has no BOS or EOS."""
        path = Path(path)
        if not path.is_file():
            raise ConfigError(f"{field}: no file {str(path)!r}; make it with "
                              "python -m data_beam.train_tokenizer")
        try:
            tokenizer = cls(path.read_bytes())
        except RuntimeError as error:
            raise ConfigError(f"{field}: {str(path)!r} is not a SentencePiece model "
                              f"({str(error).splitlines()[0]})") from None
        if tokenizer.bos_id < 0 or tokenizer.eos_id < 0:
            raise ConfigError(f"{field}: {str(path)!r} defines no BOS or no EOS; documents need "
                              "both")
        return tokenizer

    def encode(self, text: str) -> list[int]:
        """Ids of a text, without BOS and EOS."""
        if SPACE_MARK not in text or not self._mark_is_bytes:
            return self._processor.encode(text)
        ids: list[int] = []
        for number, part in enumerate(text.split(SPACE_MARK)):
            if number:
                ids += self._mark
            ids += self._processor.encode(part)
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """Text of ids; special ids give nothing, bytes that are no UTF-8 give U+FFFD."""
        return self._processor.decode([int(i) for i in ids])

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """How SentencePiece spells each id."""
        return [self._processor.id_to_piece(int(i)) for i in ids]

    def is_byte(self, token: int) -> bool:
        """The id stands for one byte of a character that has no piece."""
        return self._processor.is_byte(token)

    def piece_bytes(self) -> np.ndarray:
        """UTF-8 bytes of text that each id stands for. [vocab_size] int32; 0 for special ids.

        Over the ids of a text that decodes to itself they sum to its bytes.
        """
        processor = self._processor
        lengths = np.zeros(self.vocab_size, np.int32)
        for token in range(self.vocab_size):
            if processor.is_byte(token):
                lengths[token] = 1
            elif not (processor.is_control(token) or processor.is_unknown(token)):
                piece = processor.id_to_piece(token).replace(SPACE_MARK, " ")
                lengths[token] = len(piece.encode())
        return lengths
