"""Hugging Face `tokenizer.json` files, read by the `tokenizers` package.

Such a file does not say which tokens begin and end a document. They are taken, in this order, from

1. the caller (--bos_token, --eos_token, --pad_token of data_beam.tokenize),
2. `tokenizer_config.json` beside the file, then `special_tokens_map.json`.

BOS and EOS are required and may be the same token. Padding is EOS unless named; that is harmless,
because padding has weight 0. A folder of tokens stores the three names in its own
`tokenizer_config.json`.

Special tokens are added around documents and never recognised inside them: `<s>` or
`<|endoftext|>` in a text stays text. The file's post-processor, padding and truncation are not
used.
"""

import functools
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers

from maxlm.config import ConfigError
from maxlm.config.schema import suggestion
from maxlm.data.tokenizer import (
    HUGGING_FACE_CONFIG,
    HUGGING_FACE_FILE,
    SPACE_MARK,
    Tokenizer,
)

SPECIAL = ("bos_token", "eos_token", "pad_token")
_BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")


def load(path: Path, field: str, special: Mapping[str, str], documents: bool
         ) -> "HuggingFaceTokenizer":
    """See `Tokenizer.load`."""
    content = path.read_bytes()
    try:
        model = _parse(content)
    except Exception as error:  # the package raises a plain Exception
        raise ConfigError(f"{field}: {str(path)!r} is not a Hugging Face tokenizer "
                          f"({' '.join(str(error).split())[:200]})") from None
    named = {name: special.get(name) or _named_beside(path, name) for name in SPECIAL}
    known = [token.content for token in model.get_added_tokens_decoder().values() if token.special]
    for name, token in named.items():
        if token is not None and model.token_to_id(token) is None:
            raise ConfigError(f"{field}: {str(path)!r} has no token {token!r} ({name}); "
                              f"{suggestion(token, known)}")
    missing = [name for name in SPECIAL[:2] if named[name] is None]
    if documents and missing:
        raise ConfigError(
            f"{field}: {str(path)!r} does not say which token is its {missing[0]}, and no "
            f"{HUGGING_FACE_CONFIG} beside it does; pass "
            + " and ".join(f"--{name}=TOKEN" for name in missing)
            + f" (its special tokens: {', '.join(known[:8]) or 'none'})")
    return HuggingFaceTokenizer(content, named)


def from_files(files: Mapping[str, bytes]) -> "HuggingFaceTokenizer":
    """See `Tokenizer.from_files`."""
    config = json.loads(files[HUGGING_FACE_CONFIG])
    return HuggingFaceTokenizer(files[HUGGING_FACE_FILE], {
        name: config.get(name) for name in SPECIAL})


def config_file(special: Mapping[str, str | None]) -> bytes:
    """A `tokenizer_config.json` that names the special tokens, as transformers reads it.

    Args:
      special: bos_token, eos_token, pad_token, unk_token; None for those that do not exist.
    """
    return (json.dumps({
        **{name: token for name, token in special.items() if token is not None},
        "tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False,
    }, indent=1, ensure_ascii=False) + "\n").encode()


def _parse(content: bytes) -> tokenizers.Tokenizer:
    model = tokenizers.Tokenizer.from_str(content.decode())
    model.no_padding()
    model.no_truncation()
    model.encode_special_tokens = True  # as text
    return model


def _named_beside(path: Path, name: str) -> str | None:
    for file in (HUGGING_FACE_CONFIG, "special_tokens_map.json"):
        try:
            token = json.loads((path.parent / file).read_text(encoding="utf-8")).get(name)
        except FileNotFoundError:
            continue
        except (ValueError, AttributeError) as error:
            raise ConfigError(f"{path.parent / file}: no JSON object ({error})") from None
        if isinstance(token, dict):  # an AddedToken written out
            token = token.get("content")
        if token is not None:
            return token
    return None


def byte_characters() -> dict[str, int]:
    """The characters by which byte-level BPE (GPT-2) spells bytes, and their bytes.

    Bytes that are printable in Latin-1 spell themselves; the others, in order, are the characters
    from U+0100 on.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(0x100 + number): byte for number, byte in enumerate(others)}


class HuggingFaceTokenizer(Tokenizer):
    """A tokenizer.json with the names of its special tokens. The id of an unnamed one is -1."""

    def __init__(self, model: bytes, special: Mapping[str, str | None]):
        self._tokenizer = _parse(model)
        self._json: dict[str, Any] = json.loads(model)
        ids = self._tokenizer.get_vocab(with_added_tokens=True)
        self.vocab_size = max(ids.values()) + 1
        self.bos_id, self.eos_id, pad_id = (
            -1 if (token := special.get(name)) is None else ids[token] for name in SPECIAL)
        self.pad_id = pad_id if pad_id >= 0 else max(0, self.eos_id)
        unknown = self._json["model"].get("unk_token")
        unknown_id = self._json["model"].get("unk_id")  # of a unigram model
        self.unk_id = ids.get(unknown, -1) if unknown_id is None else unknown_id
        named = {name: special.get(name) for name in SPECIAL}
        config = config_file({**named, "unk_token": unknown})
        self.files = {HUGGING_FACE_FILE: model, HUGGING_FACE_CONFIG: config}
        self.sha256 = hashlib.sha256(
            model + json.dumps(named, sort_keys=True).encode()).hexdigest()
        self._spell_mark(ids)

    def _spell_mark(self, ids: Mapping[str, int]) -> None:
        """Encodes SPACE_MARK by its bytes if it would otherwise be decoded as a space."""
        mark = [ids.get(f"<0x{byte:02X}>", -1) for byte in SPACE_MARK.encode()]
        text = f"a{SPACE_MARK}b"
        spelled = [*self._encode("a"), *mark, *self._encode("b")]
        if min(mark) >= 0 and self.decode(self._encode(text)) != text == self.decode(spelled):
            self._mark = mark

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Iterable[int]) -> str:
        return self._tokenizer.decode([int(i) for i in ids], skip_special_tokens=True)

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [self._tokenizer.id_to_token(int(i)) or "" for i in ids]

    @functools.cached_property
    def _bytes(self) -> dict[int, bytes]:
        """The bytes that each id stands for; none for special ids."""
        byte_level = '"ByteLevel"' in json.dumps(self._json.get("decoder"))
        alphabet = byte_characters()
        added = self._tokenizer.get_added_tokens_decoder()
        unknown = {self.unk_id} if self.unk_id >= 0 else set()
        named = {self.bos_id, self.eos_id, self.pad_id}
        table: dict[int, bytes] = {}
        for piece, token in self._tokenizer.get_vocab(with_added_tokens=True).items():
            byte = _BYTE_PIECE.fullmatch(piece)
            if token in unknown or token in named or (token in added and added[token].special):
                table[token] = b""
            elif byte_level and token not in added:
                table[token] = bytes(alphabet[character] for character in piece)
            elif byte and not byte_level:
                table[token] = bytes([int(byte[1], 16)])
            else:
                table[token] = piece.replace(SPACE_MARK, " ").encode()
        return table

    def is_byte(self, token: int) -> bool:
        piece = self._bytes.get(token, b"")
        if _BYTE_PIECE.fullmatch(self._tokenizer.id_to_token(token) or ""):
            return True
        try:
            piece.decode()
        except UnicodeDecodeError:
            return True
        return False

    def piece_bytes(self) -> np.ndarray:
        lengths = np.zeros(self.vocab_size, np.int32)
        for token, piece in self._bytes.items():
            lengths[token] = len(piece)
        return lengths
