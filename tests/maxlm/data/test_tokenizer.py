import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxlm.config import ConfigError
from maxlm.data.tokenizer import SentencePieceTokenizer, Tokenizer
from tests import token_corpora

TOKENIZER = SentencePieceTokenizer(token_corpora.tiny_tokenizer())
PIECE_BYTES = TOKENIZER.piece_bytes()


@given(st.text() | st.text(alphabet=" \u2581\n\t<>s/word文字"))
def test_any_text_comes_back_and_its_bytes_add_up(text):
    ids = TOKENIZER.encode(text)
    assert TOKENIZER.decode(ids) == text
    assert PIECE_BYTES[np.array(ids, int)].sum() == len(text.encode())
    assert not {TOKENIZER.bos_id, TOKENIZER.eos_id, TOKENIZER.pad_id, TOKENIZER.unk_id} & set(ids)


def test_special_ids():
    assert (TOKENIZER.pad_id, TOKENIZER.bos_id, TOKENIZER.eos_id, TOKENIZER.unk_id) == (0, 1, 2, 3)
    assert TOKENIZER.decode([1, *TOKENIZER.encode("word1"), 2]) == "word1"
    assert PIECE_BYTES[:4].tolist() == [0, 0, 0, 0]
    assert TOKENIZER.is_byte(TOKENIZER.encode("\x00")[0])


def test_files_that_are_no_tokenizer_are_named(tmp_path):
    with pytest.raises(ConfigError, match=r"--tokenizer: no file .*none\.model"):
        Tokenizer.load(tmp_path / "none.model", "--tokenizer")
    for name in ("x.model", "x.py"):
        (tmp_path / name).write_bytes(b"not a model")
        with pytest.raises(ConfigError) as caught:
            Tokenizer.load(tmp_path / name, "--tokenizer")
        assert str(caught.value) == (
            f"--tokenizer: '{tmp_path / name}' is not a SentencePiece model, nor a tokenizer.json "
            "of Hugging Face")
