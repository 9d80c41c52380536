import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from maxlm.config import ConfigError, DataConfig
from maxlm.data.corpus import (
    CorpusError,
    TokenCorpus,
    TokenRecord,
    decode_record,
    encode_record,
    token_dtype,
)
from maxlm.data.evaluation_plan import EvaluationPlan
from maxlm.data.plan import Plan
from maxlm.data.readers import ReaderPool
from tests import token_corpora


@pytest.mark.parametrize("vocab_size, width", [(8192, 2), (65536, 2), (65537, 4)])
def test_record_is_id_then_little_endian_ids(vocab_size, width):
    dtype = token_dtype(vocab_size)
    assert dtype.itemsize == width
    doc_id = bytes(range(16))
    tokens = np.array([1, 258, vocab_size - 1, 2], dtype)
    content = encode_record(TokenRecord(doc_id, tokens))
    assert content[:16] == doc_id and len(content) == 16 + 4 * width
    assert content[16 + width:16 + 2 * width] == (258).to_bytes(width, "little")
    record = decode_record(content, dtype, 4)
    assert (record.id, record.mask, record.group) == (doc_id, None, "")
    np.testing.assert_array_equal(record.tokens, tokens)


_MASK = [False, True, True, False, False, False, False, True, True]


@pytest.mark.parametrize("mask, group, extra", [
    (None, "", b""),
    (_MASK, "", b"\x01\x86\x01"),  # 10000110 and 1, the first token in the lowest bit
    (None, "chat/7", b"\x02chat/7"),
    (_MASK, "对", b"\x03\x86\x01\xe5\xaf\xb9"),
])
def test_mask_and_group_follow_the_tokens(mask, group, extra):
    """Against records made by hand, in both directions."""
    tokens = np.arange(1, 10, dtype=np.uint16)
    by_hand = bytes([*range(16), 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0, 9, 0, *extra])
    record = TokenRecord(bytes(range(16)), tokens, None if mask is None else np.array(mask), group)
    assert encode_record(record) == by_hand
    found = decode_record(by_hand, np.dtype("<u2"), 9)
    assert found.id == record.id and found.group == group
    assert found.tokens.tolist() == tokens.tolist()
    assert (found.mask if mask is None else found.mask.tolist()) == mask
    # Each byte less or more is noticed; only a group may be longer.
    for wrong in (by_hand[:-1], by_hand[:33], by_hand[:35] if extra else by_hand + b"\0"):
        if not (group and wrong == by_hand[:-1]):
            with pytest.raises(ValueError, match="bytes, but the index says 9 tokens"):
                decode_record(wrong, np.dtype("<u2"), 9)
    if extra:
        with pytest.raises(ValueError, match="but the index says 9 tokens"):
            decode_record(by_hand, np.dtype("<u2"), 9, version=1)


def test_record_refuses_what_would_not_come_back():
    with pytest.raises(ValueError, match="16 bytes"):
        encode_record(TokenRecord(b"short", np.zeros(1, np.uint16)))
    with pytest.raises(ValueError, match="int64"):
        encode_record(TokenRecord(bytes(16), np.zeros(1, np.int64)))
    with pytest.raises(ValueError, match="mask must be bool"):
        encode_record(TokenRecord(bytes(16), np.zeros(3, np.uint16), np.ones(2, bool)))


@pytest.mark.parametrize("packing", ["concat", "best_fit"])
def test_shards_of_format_1_give_the_rows_they_gave(tmp_path, packing):
    """Shards and rows recorded with the release that had only format 1."""
    golden = Path(__file__).parents[2] / "golden" / "token_records_1"
    shutil.copytree(golden / "train", tmp_path / "t" / "train")
    (tmp_path / "t" / "tokenizer.model").write_bytes(token_corpora.tiny_tokenizer())
    path = tmp_path / "t" / "train" / "manifest.json"
    manifest = json.loads(path.read_text())
    assert manifest["format"] == 1
    manifest["tokenizer_sha256"] = hashlib.sha256(token_corpora.tiny_tokenizer()).hexdigest()
    path.write_text(json.dumps(manifest))
    plan = Plan.build(DataConfig(tokens=str(tmp_path / "t"), sequence_length=8, batch_size=2,
                                 packing=packing), seed=3)
    expected = json.loads((golden / "rows.json").read_text())[packing]
    assert [{name: array.tolist() for name, array in plan.rows(step).items()}
            for step in range(3)] == expected


def test_records_without_mask_and_group_are_those_of_format_1(tmp_path):
    """The same documents, written now: the same records and the same index."""
    golden = Path(__file__).parents[2] / "golden" / "token_records_1" / "train"
    token_corpora.random_split(tmp_path, "train", {"web": [[5, 9, 21], [7, 3]], "code": [[4]]},
                               seed=7)
    for shard, documents in (("web-00000-of-00002", 3), ("web-00001-of-00002", 2),
                             ("code-00000-of-00001", 1)):
        old, new = (ReaderPool().read(str(folder / f"{shard}.array_record"), range(documents))
                    for folder in (golden, tmp_path / "train"))
        assert old == new
        assert pq.read_table(golden / f"{shard}.index.parquet").equals(
            pq.read_table(tmp_path / "train" / f"{shard}.index.parquet"))
    assert json.loads((tmp_path / "train" / "manifest.json").read_text())["format"] == 1


@pytest.fixture
def tokens(tmp_path):
    token_corpora.random_split(tmp_path / "tokens", "train", {"web": [[5, 9], [7]], "code": [[3]]})
    return tmp_path / "tokens"


def test_open_reads_counts(tokens):
    corpus = TokenCorpus.open(tokens, "train")
    assert [(s.name, s.documents, s.tokens) for s in corpus.sources] == [
        ("web", 3, 21), ("code", 1, 3)]
    np.testing.assert_array_equal(corpus.lengths(corpus.source("web")), [5, 9, 7])
    corpus.verify()


def test_missing_directory_and_split_are_named(tokens, tmp_path):
    with pytest.raises(ConfigError, match=r"no directory .*nowhere.*data_beam\.tokenize"):
        TokenCorpus.open(tmp_path / "nowhere", "train")
    with pytest.raises(ConfigError, match="no finished split 'trian'; did you mean 'train'"):
        TokenCorpus.open(tokens, "trian")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="holds no finished split"):
        TokenCorpus.open(tmp_path / "empty", "train")


def test_unknown_source_names_the_nearest(tokens):
    with pytest.raises(ConfigError, match="did you mean 'web'"):
        TokenCorpus.open(tokens, "train").source("wen")


@pytest.mark.parametrize("name", ["web-00001-of-00002.array_record",
                                  "web-00000-of-00002.index.parquet"])
def test_missing_file_is_named(tokens, name):
    (tokens / "train" / name).unlink()
    with pytest.raises(CorpusError, match=f"{name}.*missing"):
        TokenCorpus.open(tokens, "train")


def test_truncated_shard_is_named(tokens):
    path = tokens / "train" / "web-00001-of-00002.array_record"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorpusError, match=r"web-00001-of-00002\.array_record.*damaged"):
        TokenCorpus.open(tokens, "train")


@pytest.mark.parametrize("name", ["web-00001-of-00002.array_record",
                                  "code-00000-of-00001.index.parquet"])
def test_verify_names_a_file_with_one_flipped_bit(tokens, name):
    path = tokens / "train" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    corpus = TokenCorpus.open(tokens, "train")
    with pytest.raises(CorpusError, match=f"{name}.*damaged"):
        corpus.verify()


def test_manifest_of_another_format_is_refused(tokens):
    path = tokens / "train" / "manifest.json"
    plain = json.loads(path.read_text())
    path.write_text(json.dumps({**plain, "format": 99}))
    with pytest.raises(CorpusError, match="format 99, but this version of maxlm reads formats 1 "
                                          "to 2; read it with the version that wrote it"):
        TokenCorpus.open(tokens, "train")
    path.write_text("{")
    with pytest.raises(CorpusError, match="not a manifest"):
        TokenCorpus.open(tokens, "train")


def test_index_that_disagrees_with_the_manifest_is_refused(tokens):
    path = tokens / "train" / "manifest.json"
    plain = json.loads(path.read_text())
    plain["sources"][1]["shards"][0]["tokens"] += 1
    path.write_text(json.dumps(plain))
    corpus = TokenCorpus.open(tokens, "train")
    with pytest.raises(CorpusError, match=r"code-00000-of-00001\.index\.parquet"):
        corpus.lengths(corpus.source("code"))


def test_fingerprint_follows_content(tokens, tmp_path):
    same = TokenCorpus.open(tokens, "train").fingerprint
    token_corpora.random_split(tmp_path / "again", "train",
                               {"web": [[5, 9], [7]], "code": [[3]]})
    token_corpora.random_split(tmp_path / "other", "train",
                               {"web": [[5, 9], [7]], "code": [[4]]})
    assert TokenCorpus.open(tmp_path / "again", "train").fingerprint == same
    assert TokenCorpus.open(tmp_path / "other", "train").fingerprint != same


def test_reader_pool_keeps_few_files_open(tokens, tmp_path):
    lengths = {f"s{i}": [[4, 4]] for i in range(12)}
    written = token_corpora.random_split(tmp_path / "many", "train", lengths)
    pool = ReaderPool(limit=3)
    for _ in range(2):
        for name, shards in written.items():
            path = str(tmp_path / "many" / "train" / f"{name}-00000-of-00001.array_record")
            for record, expected in zip(pool.read(path, [0, 1]), shards[0], strict=True):
                np.testing.assert_array_equal(
                    decode_record(record, expected.dtype, len(expected)).tokens, expected)
            assert len(pool) <= 3
    assert len(pool) == 3


def test_reader_pool_names_a_shard_that_is_none(tmp_path):
    path = tmp_path / "x.array_record"
    path.write_bytes(hashlib.sha256(b"").digest() * 10)
    with pytest.raises(CorpusError, match=r"x\.array_record"):
        ReaderPool().read(str(path), [0])


@pytest.mark.parametrize("build", [
    lambda data: Plan.build(data, 0), lambda data: EvaluationPlan(data, "train", 1)])
def test_plans_refuse_a_damaged_shard_and_another_tokenizer(tmp_path, build):
    """What the trainer and the evaluation do with files that are not those of the manifest."""
    token_corpora.random_split(tmp_path / "t", "train", {"a": [[9, 9]]})
    data = DataConfig(tokens=str(tmp_path / "t"), sequence_length=4, batch_size=1)
    build(data)
    shard = tmp_path / "t" / "train" / "a-00000-of-00001.array_record"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(CorpusError, match="array_record: its checksum is not that of the manifest"):
        build(data)
    shard.write_bytes(whole)
    (tmp_path / "t" / "tokenizer.model").write_bytes(token_corpora.tiny_tokenizer(390))
    with pytest.raises(CorpusError, match="not the tokenizer the corpus was made with"):
        build(data)
    (tmp_path / "t" / "tokenizer.model").unlink()
    with pytest.raises(ConfigError, match=r"no file .*tokenizer\.model"):
        build(data)
