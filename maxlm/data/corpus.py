"""The corpus on disk: the one description of the formats that data_beam writes and maxlm reads.

Clean documents (written by `data_beam.prepare`):

    CORPUS/documents/*.parquet     one row a document, columns of DOCUMENT_COLUMNS
    CORPUS/dropped/*.parquet       one row a document left out, columns of DROPPED_COLUMNS
    CORPUS/dead_letters/*.jsonl    one object a record that could not be read
    CORPUS/manifest.json           counts by source; its presence means the corpus is whole

A document id is 32 lower-case hexadecimal digits (128 bits), unique in the corpus.

Tokens (written by `data_beam.tokenize`):

    TOKENS/tokenizer.model                              what they were made with: SentencePiece, or
                                                        tokenizer.json, tokenizer_config.json
    TOKENS/SPLIT/SOURCE-00000-of-00004.array_record     one record a document (see encode_record)
    TOKENS/SPLIT/SOURCE-00000-of-00004.index.parquet    one row a record: id, tokens, bytes, group
    TOKENS/SPLIT/manifest.json                          format, counts, checksums, tokenizer hash

A shard holds documents of one source, those whose stable hash of the id falls to it, sorted by
that hash: a global shuffle that is the same whatever the number of workers. Documents of a group
take the hash of the group, so they lie side by side in one shard, in the order of their ids.

Tokens of a document are BOS, the pieces of its text, EOS; both ends come from lengths, never from a
search for EOS. `tokens` in the index counts BOS and EOS, `bytes` is the length of the text in
UTF-8. The index of a shard in which no document has a group has no column `group`.

A record is little endian and has no padding:

    16 bytes                  document id
    2 or 4 bytes a token      token ids (see `token_dtype`); their number is in the index
    and, only where the document has a mask or a group:
    1 byte                    1: a mask follows; 2: a group follows; 3: both
    1 bit a token, whole      mask: whether the token is trained, that is, a target of the loss;
    bytes                     the first token is the lowest bit
    the rest                  group, UTF-8

Without a mask every token is trained. The mask of BOS is 0, as BOS is never a target. `format` of
the manifest is 2 if a record of the split has a mask or a group, else 1: format 1 is format 2
without them.
"""

import dataclasses
import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq

from maxlm.config import ConfigError
from maxlm.config.schema import suggestion

DOCUMENT_COLUMNS = ("id", "text", "source", "domain", "licence", "path", "language", "split",
                    "sha256", "record", "language_score", "bytes_sha256", "transforms", "scores",
                    "cluster", "url", "offset", "trained_spans", "group")
"""id: 32 hex digits, a hash of source, path and record. path: of the file, relative to the input's
root. sha256: of the text. record: number of the line, item, row or WARC record, from 1, null for a
file that is one document. language_score: null for source code, whose language is the programming
language. bytes_sha256: of the raw bytes. transforms: steps that changed the text since its bytes,
in order. scores: measurements of the filters, by name. cluster: id of the representative of a group
of near copies, null without any. url: address of the page or the record's own, null without one.
offset: byte of a web archive at which the record begins, or the compressed member that holds it;
null for other formats. trained_spans: [start, end) of the trained parts of the text, in characters
(code points), ascending and disjoint; null where all of it is trained. group: shared by documents
of a source that belong together, null without one."""
DROPPED_COLUMNS = ("id", "source", "path", "stage", "reason", "record", "detail")
DEAD_LETTER_FIELDS = ("source", "path", "record", "stage", "reason", "detail")
SPLITS = ("train", "validation", "test")

TOKENS_FORMAT = 2
"""The newest version of the format; all versions from 1 on are read."""
MANIFEST = "manifest.json"
ID_BYTES = 16


class CorpusError(ConfigError):
    """Files of a corpus do not agree with its manifest; the message names the file."""


def token_dtype(vocab_size: int) -> np.dtype:
    """The little-endian unsigned type of token ids in a record."""
    return np.dtype("<u2") if vocab_size <= 2**16 else np.dtype("<u4")


class TokenRecord(NamedTuple):
    """A document in a shard.

    Attributes:
      id: the 32 hexadecimal digits of the document id, as 16 bytes.
      tokens: [length] uint16 for vocabularies up to 65536, uint32 above (see `token_dtype`).
      mask: [length] bool, whether each token is trained as a target; None where all are.
      group: what the document belongs to, "" without a group.
    """

    id: bytes
    tokens: np.ndarray
    mask: np.ndarray | None = None
    group: str = ""


_MASK, _GROUP = 1, 2


def encode_record(record: TokenRecord) -> bytes:
    """The bytes of a record; see the module's docstring."""
    doc_id, tokens, mask, group = record
    if len(doc_id) != ID_BYTES:
        raise ValueError(f"a document id has {ID_BYTES} bytes, got {len(doc_id)}")
    if tokens.dtype not in (np.uint16, np.uint32):
        raise ValueError(f"tokens must be uint16 or uint32, got {tokens.dtype}")
    parts = [doc_id, tokens.astype(tokens.dtype.newbyteorder("<"), copy=False).tobytes()]
    if mask is not None or group:
        parts.append(bytes([(mask is not None) * _MASK + bool(group) * _GROUP]))
    if mask is not None:
        if mask.dtype != np.bool_ or mask.shape != tokens.shape:
            raise ValueError(f"a mask must be bool {tokens.shape}, got {mask.dtype} {mask.shape}")
        parts.append(np.packbits(mask, bitorder="little").tobytes())
    return b"".join([*parts, group.encode()])


def decode_record(content: bytes, dtype: np.dtype, length: int, version: int = TOKENS_FORMAT
                  ) -> TokenRecord:
    """The record of these bytes; its tokens are a read-only view of them.

    Args:
      content: of the record.
      dtype: see `token_dtype`.
      length: number of tokens, from the index.
      version: `format` of the manifest.

    Raises:
      ValueError: the bytes are not a record of so many tokens.
    """
    end = ID_BYTES + length * dtype.itemsize
    if len(content) == end:
        return TokenRecord(content[:ID_BYTES], np.frombuffer(content, dtype, length, ID_BYTES))
    wrong = ValueError(f"{len(content)} bytes, but the index says {length} tokens")
    flags = content[end] if version > 1 and len(content) > end else 0
    if flags not in (_MASK, _GROUP, _MASK | _GROUP):
        raise wrong
    mask_end = end + 1 + (-(-length // 8) if flags & _MASK else 0)
    if len(content) < mask_end or (len(content) > mask_end) != bool(flags & _GROUP):
        raise wrong
    mask = np.unpackbits(np.frombuffer(content[end + 1:mask_end], np.uint8), count=length,
                         bitorder="little").astype(bool) if flags & _MASK else None
    return TokenRecord(content[:ID_BYTES], np.frombuffer(content, dtype, length, ID_BYTES), mask,
                       content[mask_end:].decode())


def file_sha256(path: Path) -> str:
    """Checksum of a file's bytes, hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shard:
    """One ArrayRecord file and its index; names are relative to the split's directory."""

    file: str
    index: str
    documents: int
    tokens: int
    bytes: int
    """UTF-8 length of the texts."""
    size: int
    """Length of `file`."""
    sha256: str
    index_sha256: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class SourceEntry:
    """One source in one split."""

    name: str
    domain: str
    """Several, when documents differ, are joined by a comma; so are licences."""
    licence: str
    documents: int
    tokens: int
    bytes: int
    shards: tuple[Shard, ...]

    @property
    def fingerprint(self) -> str:
        """Hash of the content of the shards."""
        lines = [f"{shard.sha256} {shard.index_sha256}" for shard in self.shards]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Manifest:
    """`TOKENS/SPLIT/manifest.json`. Its presence means the split is whole."""

    format: int
    """1, or 2 if a record of the split has a mask or a group."""
    split: str
    vocab_size: int
    bos_id: int
    eos_id: int
    pad_id: int
    tokenizer_sha256: str
    recipe: str
    """Hash of the inputs the split was made from."""
    documents: int
    tokens: int
    bytes: int
    sources: tuple[SourceEntry, ...]

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Manifest":
        """Raises ValueError, KeyError or TypeError when the text is no manifest."""
        plain = json.loads(text)
        if plain["format"] not in range(1, TOKENS_FORMAT + 1):
            raise ValueError(f"format {plain['format']}, but this version of maxlm reads formats 1 "
                             f"to {TOKENS_FORMAT}; read it with the version that wrote it, or run "
                             "data_beam.tokenize again")
        sources = tuple(
            SourceEntry(**{**source, "shards": tuple(Shard(**s) for s in source["shards"])})
            for source in plain.pop("sources"))
        return cls(sources=sources, **plain)


class TokenCorpus:
    """One split of a directory that `data_beam.tokenize` wrote."""

    def __init__(self, directory: Path, manifest: Manifest):
        self.directory = directory
        self.manifest = manifest
        self.sources = manifest.sources
        self.vocab_size = manifest.vocab_size
        self.bos_id = manifest.bos_id
        self.eos_id = manifest.eos_id
        self.pad_id = manifest.pad_id
        self.tokenizer_sha256 = manifest.tokenizer_sha256
        self.dtype = token_dtype(manifest.vocab_size)

    @classmethod
    def open(cls, path: str | Path, split: str, field: str = "config.data.tokens",
             split_field: str = "config.data.split") -> "TokenCorpus":
        """Reads the manifest of a split and checks that its files are there in full length.

        Args:
          path: directory of `data_beam.tokenize`.
          split: one of SPLITS.
          field, split_field: where the user set the two, for messages.

        Raises:
          ConfigError: no such directory or split, or an incomplete one.
          CorpusError: a shard is missing or has another length than the manifest says.
        """
        path = Path(path)
        make = "make it with python -m data_beam.tokenize"
        if not path.is_dir():
            raise ConfigError(f"{field}: no directory {str(path)!r}; {make}")
        file = path / split / MANIFEST
        if not file.is_file():
            whole = sorted(p.parent.name for p in path.glob(f"*/{MANIFEST}"))
            if not whole:
                raise ConfigError(f"{field}: {str(path)!r} holds no finished split; {make}")
            raise ConfigError(f"{split_field}: {str(path)!r} has no finished split {split!r}; "
                              f"{suggestion(split, whole)}")
        try:
            manifest = Manifest.from_json(file.read_text(encoding="utf-8"))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorpusError(f"{file}: not a manifest of tokens ({error})") from None
        corpus = cls(path / split, manifest)
        for source in corpus.sources:
            for shard in source.shards:
                for name, size in ((shard.file, shard.size), (shard.index, None)):
                    part = corpus.directory / name
                    if not part.is_file():
                        raise CorpusError(f"{part}: the manifest lists it, but it is missing")
                    if size is not None and part.stat().st_size != size:
                        raise CorpusError(f"{part}: {part.stat().st_size} bytes, "
                                          f"but the manifest says {size}; the file is damaged")
        return corpus

    @property
    def fingerprint(self) -> str:
        """Hash of what the split holds: shard checksums and tokenizer."""
        lines = [self.tokenizer_sha256] + [f"{s.name} {s.fingerprint}" for s in self.sources]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def source(self, name: str) -> SourceEntry:
        """Raises ConfigError with the nearest name when there is no such source."""
        for source in self.sources:
            if source.name == name:
                return source
        raise ConfigError(f"config.data.tokens: {str(self.directory)!r} has no source {name!r}; "
                          f"{suggestion(name, [s.name for s in self.sources])}")

    def lengths(self, source: SourceEntry) -> np.ndarray:
        """Tokens of each document of a source, shards in order. [documents] int32.

        Raises:
          CorpusError: an index does not agree with the manifest.
        """
        parts = []
        for shard in source.shards:
            path = self.directory / shard.index
            try:
                column = pq.read_table(path, columns=["tokens"])["tokens"].to_numpy()
            except Exception as error:  # pyarrow raises many kinds of errors
                raise CorpusError(f"{path}: the index cannot be read ({error})") from None
            if len(column) != shard.documents or int(column.sum(dtype=np.int64)) != shard.tokens:
                raise CorpusError(f"{path}: {len(column)} documents of {column.sum()} tokens, but "
                                  f"the manifest says {shard.documents} of {shard.tokens}")
            parts.append(column.astype(np.int32))
        return np.concatenate(parts) if parts else np.zeros(0, np.int32)

    def verify(self, sources: tuple[str, ...] | None = None, part: int = 0, parts: int = 1
               ) -> None:
        """Compares each shard and index with its checksum; reads all of them.

        Args:
          sources: names of the sources to look at; None for all.
          part, parts: look at every `parts`-th shard from the `part`-th on, a process' share.

        Raises:
          CorpusError: names the first damaged file.
        """
        shards = [shard for source in self.sources if sources is None or source.name in sources
                  for shard in source.shards][part::parts]
        files = [file for shard in shards for file in (
            (shard.file, shard.sha256), (shard.index, shard.index_sha256))]

        def check(file: tuple[str, str]) -> str | None:
            return None if file_sha256(self.directory / file[0]) == file[1] else file[0]

        # Hashing and reading both release the GIL.
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as threads:
            for name in filter(None, threads.map(check, files)):
                raise CorpusError(
                    f"{self.directory / name}: its checksum is not that of the manifest; "
                    "the file is damaged: copy it again, or run data_beam.tokenize again")
