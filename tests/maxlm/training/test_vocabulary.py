import numpy as np
import pytest

from maxlm.config import ConfigError
from maxlm.data.sentencepiece_model import Kind, Piece, with_pieces
from maxlm.data.tokenizer import SentencePieceTokenizer
from maxlm.training.vocabulary import old_pieces, padded_size, resize_rows
from tests.token_corpora import tiny_tokenizer

OLD = SentencePieceTokenizer(tiny_tokenizer())


def longer(*pieces: Piece) -> SentencePieceTokenizer:
    return SentencePieceTokenizer(with_pieces(OLD.model, pieces))


def test_rows_of_new_tokens_are_means_of_old_ones():
    rows = np.arange(12, dtype=np.float32).reshape(6, 2) ** 2  # five ids and one row of padding
    new = resize_rows(rows, 9, 5, [[1, 3], [2], []], padding=5)
    np.testing.assert_array_equal(new[:5], rows[:5])
    np.testing.assert_array_equal(new[5], [(4 + 36) / 2, (9 + 49) / 2])
    np.testing.assert_array_equal(new[6], rows[2])
    np.testing.assert_array_equal(new[7], rows[:5].mean(axis=0))  # no text: the mean of all ids
    np.testing.assert_array_equal(new[8], rows[5])
    assert new.dtype == np.float32
    np.testing.assert_array_equal(resize_rows(rows, 9, 5, [[1]], None)[8], rows[:5].mean(axis=0))
    # Room that was there already is used.
    np.testing.assert_array_equal(resize_rows(rows, 6, 5, [[1]], 5), [*rows[:5], rows[1]])


@pytest.mark.parametrize("rows, tokens, tensor, size", [
    (8192, 8100, 1, 8192),  # there is room
    (8192, 8192, 1, 8192),
    (8192, 8193, 1, 8320),  # multiples of 128
    (400, 403, 1, 416),  # of 16, as 400 is
    (401, 403, -1, 403),
    (401, 403, 4, 404),  # of the mesh axis
    (32000, 32003, 3, 32256),  # of 128 and 3
])
def test_padded_size(rows, tokens, tensor, size):
    assert padded_size(rows, tokens, tensor) == size


def test_old_pieces_spell_the_new_token():
    found = old_pieces(OLD, longer(
        Piece("急性", kind=Kind.USER_DEFINED, score=0),
        Piece("word1\u2581文字", kind=Kind.USER_DEFINED, score=0),
        Piece("<tool>", kind=Kind.CONTROL, score=0)))
    assert [OLD.decode(ids) for ids in found] == ["急性", "word1 文字", ""]
    assert found[0] == OLD.encode("急性") and len(found[0]) == 6  # bytes
    assert found[2] == []


@pytest.mark.parametrize("other, message", [
    (OLD, "adds no ids"),
    (SentencePieceTokenizer(tiny_tokenizer(390)), "does not extend .* it has fewer ids|is another"),
    (SentencePieceTokenizer(tiny_tokenizer(410)), "does not extend .* id [0-9]+ is another piece"),
])
def test_a_tokenizer_that_is_no_extension_is_refused(other, message):
    with pytest.raises(ConfigError, match=f"--tokenizer: .*({message})"):
        old_pieces(OLD, other)
