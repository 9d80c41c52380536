"""tokenizer.json files, made here by the `tokenizers` package in the forms that are in use."""

import json

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from maxlm.config import ConfigError
from maxlm.data.huggingface_tokenizer import byte_characters
from maxlm.data.tokenizer import Tokenizer, find_tokenizer
from tests import token_corpora

SPECIAL = {"bos_token": "<|begin|>", "eos_token": "<|end|>"}
TEXTS = ["word1 文字一 x", "", "  two  spaces ", "\tdef f():\n\n\treturn 'é'\r\n", "🙂👩‍👩‍👧",
         "𠮷野家",
         "<|begin|> <|end|> <0x41>", "，。！１２３　", "\u2581 \0 \ufeff", "2026年11月30日"]


def byte_level() -> tokenizers.Tokenizer:
    """As GPT-2 and Llama 3."""
    model = tokenizers.Tokenizer(models.BPE())
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = decoders.ByteLevel()
    model.train_from_iterator(
        [f"word{i} 文字{chr(0x4E00 + i % 9)}" for i in range(200)],
        trainers.BpeTrainer(vocab_size=340, special_tokens=list(SPECIAL.values()),
                            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                            show_progress=False))
    model.enable_truncation(4)
    model.enable_padding(length=9)
    model.add_tokens(["[MED]"])
    return model


def byte_fallback(prefix: bool) -> tokenizers.Tokenizer:
    """As Llama 2, which begins each text with a space."""
    pieces = ["<unk>", "<|begin|>", "<|end|>", *(f"<0x{byte:02X}>" for byte in range(256)),
              *"\u2581wordxe文字", "\u2581w", "or"]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    model = tokenizers.Tokenizer(models.BPE(
        vocabulary, [("\u2581", "w"), ("o", "r")], byte_fallback=True, unk_token="<unk>",
        fuse_unk=True))
    replace = normalizers.Replace(" ", "\u2581")
    parts = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    if prefix:
        model.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), replace])
        parts.append(decoders.Strip(" ", 1, 0))
    else:
        model.normalizer = replace
    model.decoder = decoders.Sequence(parts)
    model.add_special_tokens(["<unk>", *SPECIAL.values()])
    return model


KINDS = {"byte_level": byte_level, "byte_fallback": lambda: byte_fallback(False),
         "prefix": lambda: byte_fallback(True)}


@pytest.fixture(scope="module", params=KINDS)
def made(request, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param) / "tokenizer.json"
    KINDS[request.param]().save(str(path))
    return path


@pytest.fixture(scope="module")
def tokenizer(made):
    return Tokenizer.load(made, special=SPECIAL)


@pytest.mark.parametrize("text", TEXTS)
def test_texts_come_back_and_their_bytes_add_up(made, tokenizer, text):
    if made.parent.name.startswith("prefix") and text[:1] in ("", " ", "\u2581"):
        return  # the space that was put first is not told from one that was there
    ids = tokenizer.encode(text)
    if not (made.parent.name.startswith("prefix") and "\u2581" in text):
        assert tokenizer.decode(ids) == text
    assert not {tokenizer.bos_id, tokenizer.eos_id} & set(ids)
    assert tokenizer.piece_bytes()[np.array(ids, int)].sum() == (
        len(text.encode()) + tokenizer.prefix_bytes)


LOSSLESS = [Tokenizer.from_files({
    "tokenizer.json": make().to_str().encode(),
    "tokenizer_config.json": json.dumps(SPECIAL).encode()}) for make in (
        KINDS["byte_level"], KINDS["byte_fallback"])]


@given(st.text() | st.text(alphabet=" \u2581\n\t<>s/word文字|begin"))
def test_any_text_comes_back(text):
    for tokenizer in LOSSLESS:
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert tokenizer.piece_bytes()[np.array(ids, int)].sum() == len(text.encode())


def test_special_ids_and_kinds_of_pieces(made, tokenizer):
    reference = tokenizers.Tokenizer.from_file(str(made))
    assert tokenizer.bos_id == reference.token_to_id("<|begin|>")
    assert tokenizer.eos_id == tokenizer.pad_id == reference.token_to_id("<|end|>")
    assert tokenizer.vocab_size == reference.get_vocab_size()
    assert tokenizer.piece_bytes()[[tokenizer.bos_id, tokenizer.eos_id]].tolist() == [0, 0]
    last = tokenizer.encode("é")[-2:]
    assert [tokenizer.is_byte(token) for token in last] == [True, True]
    assert not any(map(tokenizer.is_byte, tokenizer.encode("or")))
    assert tokenizer.prefix_bytes == made.parent.name.startswith("prefix")
    if made.parent.name.startswith("byte_level"):
        assert tokenizer.pieces(tokenizer.encode("[MED]")) == ["[MED]"]
        assert tokenizer.unk_id == -1
        assert len(tokenizer.encode("word1 " * 9)) > 9  # the file's truncation is left out


def test_the_alphabet_of_byte_level_pieces():
    assert set(byte_characters()) == set(pre_tokenizers.ByteLevel.alphabet())
    one = tokenizers.Tokenizer(models.BPE({c: i for i, c in enumerate(byte_characters())}, []))
    one.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    text = "\n é文\x7f\xad\xff"
    spelled = one.encode(text).tokens
    assert bytes(byte_characters()[character] for character in spelled) == text.encode()


def test_sources_of_the_special_tokens(made, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(made.read_bytes())
    with pytest.raises(ConfigError, match=r"does not say which token is its bos_token, and no "
                                          r"tokenizer_config\.json beside it does; pass "
                                          r"--bos_token=TOKEN and --eos_token=TOKEN .*<\|begin\|>"):
        Tokenizer.load(path)
    with pytest.raises(ConfigError, match=r"its eos_token, .*pass --eos_token=TOKEN"):
        Tokenizer.load(path, special={"bos_token": "<|end|>"})
    with pytest.raises(ConfigError, match=r"no token '<\|ends\|>' \(eos_token\); did you mean "
                                          r"'<\|end\|>'"):
        Tokenizer.load(path, special={"bos_token": "<|end|>", "eos_token": "<|ends|>"})
    assert Tokenizer.load(path, documents=False).bos_id == -1
    flags = Tokenizer.load(path, special=SPECIAL)
    (tmp_path / "special_tokens_map.json").write_text(json.dumps(
        {"bos_token": {"content": "<|begin|>"}, "eos_token": "<|end|>"}))
    assert Tokenizer.load(tmp_path).sha256 == flags.sha256
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(
        {"bos_token": "<|end|>", "pad_token": "<|begin|>"}))
    both = Tokenizer.load(path)
    assert (both.bos_id, both.pad_id) == (flags.eos_id, flags.bos_id)
    assert both.sha256 != flags.sha256
    # What is kept beside tokens is read as the same tokenizer.
    for name, content in both.files.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "special_tokens_map.json").unlink()
    assert Tokenizer.load(tmp_path).sha256 == both.sha256
    assert Tokenizer.from_files(both.files).sha256 == both.sha256


def test_files_that_are_no_tokenizer_are_named(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"--x: .*tokenizer\.json' is not a Hugging Face token"):
        Tokenizer.load(tmp_path / "tokenizer.json", "--x")
    (tmp_path / "tokenizer.json").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="is not a Hugging Face tokenizer"):
        Tokenizer.load(tmp_path)
    assert find_tokenizer(tmp_path).name == "tokenizer.json"
    (tmp_path / "tokenizer.model").write_bytes(token_corpora.tiny_tokenizer())
    assert Tokenizer.load(tmp_path).vocab_size == 400
    with pytest.raises(ConfigError, match="names its own special tokens; leave --bos_token out"):
        Tokenizer.load(tmp_path, special=SPECIAL)
