"""Text to token ids and back, exactly: decode(encode(text)) == text.

    Tokenizer.load("TOK/tokenizer.model")   SentencePiece, as data_beam.train_tokenizer makes it
    Tokenizer.load("DIR/tokenizer.json")    Hugging Face, see maxlm/data/huggingface_tokenizer.py
    Tokenizer.load("TOKENS")                whichever of the two lies in a folder

A SentencePiece model that `data_beam.train_tokenizer` made has identity normalisation, no dummy
prefix and pieces for all bytes. One character needs care on top: SentencePiece writes a space as
U+2581, so a U+2581 in the text would come back as a space. It is encoded by its bytes instead.
Words like `<s>` in a text stay text: control symbols never match.
"""

import abc
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import sentencepiece

from maxlm.config import ConfigError

SPACE_MARK = "\u2581"
SENTENCEPIECE_FILE = "tokenizer.model"
HUGGING_FACE_FILE = "tokenizer.json"
HUGGING_FACE_CONFIG = "tokenizer_config.json"
TOKENIZER_FILES = (SENTENCEPIECE_FILE, HUGGING_FACE_FILE, HUGGING_FACE_CONFIG)
"""All names that a tokenizer's files may have in a folder of tokens or of a run."""


class Tokenizer(abc.ABC):
    """A tokenizer of either kind.

    Attributes:
      vocab_size: number of ids.
      pad_id, bos_id, eos_id: special ids.
      unk_id: id of unknown characters, -1 when there is none.
      files: name -> content of the files that make it up, to be kept beside tokens and weights.
      sha256: of what the ids mean; two tokenizers of one checksum give the same ids.
    """

    vocab_size: int
    pad_id: int
    bos_id: int
    eos_id: int
    unk_id: int
    files: dict[str, bytes]
    sha256: str
    _mark: Sequence[int] = ()
    """Ids of the bytes of SPACE_MARK, where that character has to be spelled by them."""

    @staticmethod
    def load(path: str | Path, field: str = "tokenizer", *,
             special: Mapping[str, str] | None = None, documents: bool = True) -> "Tokenizer":
        """Reads a tokenizer of this machine.

        Args:
          path: a SentencePiece model, a Hugging Face tokenizer.json, or a folder with one of them.
          field: what the user set, for messages.
          special: bos_token, eos_token, pad_token of a tokenizer.json; the others are taken from
            its tokenizer_config.json or special_tokens_map.json.
          documents: whether it will wrap documents in BOS and EOS, which must then both exist.

        Raises:
          ConfigError: the file is missing, no tokenizer, or has no BOS or EOS.
        """
        path = Path(path)
        if path.is_dir():
            path = find_tokenizer(path)
        if not path.is_file():
            raise ConfigError(f"{field}: no file {str(path)!r}; make it with "
                              "python -m data_beam.train_tokenizer")
        if path.suffix == ".json":
            from maxlm.data import huggingface_tokenizer

            return huggingface_tokenizer.load(path, field, special or {}, documents)
        if special:
            raise ConfigError(f"{field}: {str(path)!r} is a SentencePiece model, which names its "
                              f"own special tokens; leave --{min(special)} out")
        try:
            tokenizer = SentencePieceTokenizer(path.read_bytes())
        except RuntimeError:  # its text is about the library's own source code
            raise ConfigError(f"{field}: {str(path)!r} is not a SentencePiece model, nor a "
                              "tokenizer.json of Hugging Face") from None
        if documents and (tokenizer.bos_id < 0 or tokenizer.eos_id < 0):
            raise ConfigError(f"{field}: {str(path)!r} defines no BOS or no EOS; documents need "
                              "both")
        return tokenizer

    @staticmethod
    def from_files(files: Mapping[str, bytes]) -> "Tokenizer":
        """The tokenizer that has these `files`."""
        if SENTENCEPIECE_FILE in files:
            return SentencePieceTokenizer(files[SENTENCEPIECE_FILE])
        from maxlm.data import huggingface_tokenizer

        return huggingface_tokenizer.from_files(files)

    def encode(self, text: str) -> list[int]:
        """Ids of a text, without BOS and EOS."""
        if not self._mark or SPACE_MARK not in text:
            return self._encode(text)
        ids: list[int] = []
        for number, part in enumerate(text.split(SPACE_MARK)):
            if number:
                ids += self._mark
            ids += self._encode(part)
        return ids

    @abc.abstractmethod
    def _encode(self, text: str) -> list[int]: ...

    @abc.abstractmethod
    def decode(self, ids: Iterable[int]) -> str:
        """Text of ids; special ids have no text, invalid UTF-8 becomes U+FFFD."""

    @abc.abstractmethod
    def pieces(self, ids: Iterable[int]) -> list[str]:
        """How the tokenizer itself spells each id."""

    @abc.abstractmethod
    def is_byte(self, token: int) -> bool:
        """Whether the id stands for bytes that are not whole characters."""

    @abc.abstractmethod
    def piece_bytes(self) -> np.ndarray:
        """UTF-8 bytes of text that each id stands for. [vocab_size] int32; 0 for special ids.

        Over the ids of a text that decodes to itself, they sum to its bytes plus `prefix_bytes`.
        """

    @property
    def prefix_bytes(self) -> int:
        """Bytes that encoding adds before a text and decoding removes: 1 for tokenizers that begin
        every text with a space, else 0."""
        return int(self.piece_bytes()[self.encode("a")].sum()) - 1


class SentencePieceTokenizer(Tokenizer):
    """A SentencePiece model. pad_id is 0 when the model has none.

    Attributes:
      model: the model's bytes; sha256 is their checksum.
    """

    def __init__(self, model: bytes):
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.model = model
        self.files = {SENTENCEPIECE_FILE: model}
        self.sha256 = hashlib.sha256(model).hexdigest()
        self.vocab_size = self._processor.vocab_size()
        self.bos_id = self._processor.bos_id()
        self.eos_id = self._processor.eos_id()
        self.unk_id = self._processor.unk_id()
        self.pad_id = max(0, self._processor.pad_id())
        mark = [self._processor.piece_to_id(f"<0x{byte:02X}>") for byte in SPACE_MARK.encode()]
        if all(self._processor.is_byte(piece) for piece in mark):
            self._mark = mark

    def _encode(self, text: str) -> list[int]:
        return self._processor.encode(text)

    def decode(self, ids: Iterable[int]) -> str:
        return self._processor.decode([int(i) for i in ids])

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [self._processor.id_to_piece(int(i)) for i in ids]

    def is_byte(self, token: int) -> bool:
        return self._processor.is_byte(token)

    def piece_bytes(self) -> np.ndarray:
        processor = self._processor
        lengths = np.zeros(self.vocab_size, np.int32)
        for token in range(self.vocab_size):
            if processor.is_byte(token):
                lengths[token] = 1
            elif not (processor.is_control(token) or processor.is_unknown(token)):
                piece = processor.id_to_piece(token).replace(SPACE_MARK, " ")
                lengths[token] = len(piece.encode())
        return lengths


def find_tokenizer(folder: Path) -> Path:
    """The file of the tokenizer in a folder: SentencePiece's where there are both forms.

    The path is that of a SentencePiece model when there is neither.
    """
    other = folder / HUGGING_FACE_FILE
    model = folder / SENTENCEPIECE_FILE
    return other if other.is_file() and not model.is_file() else model
