"""Small token corpora, written through the real sink."""

import functools
import hashlib
import io
from pathlib import Path

import numpy as np
import sentencepiece

from data_beam.sinks.array_record import write_shard
from maxlm.data.corpus import Manifest, SourceEntry, TokenRecord, token_dtype

BOS, EOS, PAD = 1, 2, 0
FIRST = 4  # smallest id of a piece


@functools.cache
def tiny_tokenizer(vocab_size: int = 400) -> bytes:
    """A SentencePiece model with byte pieces, in the manner of data_beam.train_tokenizer."""
    model = io.BytesIO()
    words = [f"word{i} 文字{chr(0x4E00 + i)}" for i in range(40)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(words * 5), model_writer=model, model_type="bpe",
        vocab_size=vocab_size,
        pad_id=PAD, bos_id=BOS, eos_id=EOS, unk_id=3, byte_fallback=True,
        normalization_rule_name="identity", add_dummy_prefix=False,
        remove_extra_whitespaces=False, hard_vocab_limit=True, minloglevel=2)
    return model.getvalue()


def document_tokens(rng: np.random.Generator, length: int, vocab_size: int) -> np.ndarray:
    """BOS, random pieces, EOS: `length` tokens in all."""
    tokens = rng.integers(FIRST, vocab_size, length)
    tokens[0], tokens[-1] = BOS, EOS
    return tokens.astype(token_dtype(vocab_size))


def document_id(split: str, source: str, shard: int, record: int) -> bytes:
    """Id of a document that `write_split` writes."""
    return hashlib.md5(f"{split} {source} {shard} {record}".encode()).digest()


def write_split(
    directory: Path, split: str, sources: dict[str, list[list[np.ndarray]]],
    vocab_size: int = 400, domains: dict[str, str] | None = None, tokenizer: bytes | None = None,
    marks: dict[tuple[str, int, int], dict] | None = None,
) -> None:
    """Writes a split from the token arrays of each shard of each source.

    Args:
      marks: `mask` and `group` of the records that have them, by source, shard and record.
    """
    marks = marks or {}
    target = directory / split
    target.mkdir(parents=True)
    model = tokenizer or tiny_tokenizer()
    (directory / "tokenizer.model").write_bytes(model)
    entries = []
    for name, shards in sources.items():
        written = []
        for number, documents in enumerate(shards):
            rows = [(TokenRecord(document_id(split, name, number, i), tokens,
                                 **marks.get((name, number, i), {})), 4 * len(tokens))
                    for i, tokens in enumerate(documents)]
            written.append(write_shard(str(target), str(target), name, number, len(shards), rows))
        entries.append(SourceEntry(
            name=name, domain=(domains or {}).get(name, "general"), licence="CC0-1.0",
            documents=sum(s.documents for s in written), tokens=sum(s.tokens for s in written),
            bytes=sum(s.bytes for s in written), shards=tuple(written)))
    manifest = Manifest(
        format=2 if marks else 1, split=split, vocab_size=vocab_size, bos_id=BOS, eos_id=EOS,
        pad_id=PAD, tokenizer_sha256=hashlib.sha256(model).hexdigest(), recipe="test",
        documents=sum(e.documents for e in entries), tokens=sum(e.tokens for e in entries),
        bytes=sum(e.bytes for e in entries), sources=tuple(entries))
    (target / "manifest.json").write_text(manifest.to_json(), encoding="utf-8")


def random_split(directory: Path, split: str, lengths: dict[str, list[list[int]]],
                 vocab_size: int = 400, seed: int = 0) -> dict[str, list[list[np.ndarray]]]:
    """Writes a split of random documents with these lengths per shard, and returns the tokens."""
    rng = np.random.default_rng(seed)
    sources = {name: [[document_tokens(rng, length, vocab_size) for length in shard]
                      for shard in shards] for name, shards in lengths.items()}
    write_split(directory, split, sources, vocab_size)
    return sources
