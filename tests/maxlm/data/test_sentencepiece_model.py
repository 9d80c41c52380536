import dataclasses
import io
import random

import pytest
import sentencepiece

from maxlm.data.sentencepiece_model import Kind, Piece, exact_unigram, parse, with_pieces
from tests import token_corpora


def trained(kind: str, **arguments) -> bytes:
    letters = random.Random(0)
    model = io.BytesIO()
    texts = ["".join(letters.choices("的人们心肌梗死者急性 abc", k=30)) for _ in range(300)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, model_type=kind, minloglevel=2,
        **{"vocab_size": 340, "byte_fallback": True, "normalization_rule_name": "identity",
           "add_dummy_prefix": False, "remove_extra_whitespaces": False,
           "user_defined_symbols": ["[MED]", "的人", "\n", "\n\n"], **arguments})
    return model.getvalue()


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_pieces_are_those_that_sentencepiece_reads(kind):
    model = trained(kind)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    found = parse(model)
    assert len(found.pieces) == processor.vocab_size() == 340
    for token, piece in enumerate(found.pieces):
        assert piece.text == processor.id_to_piece(token)
        assert piece.score == processor.get_score(token)
        assert (piece.kind is Kind.BYTE) == processor.is_byte(token)
        assert (piece.kind is Kind.CONTROL) == processor.is_control(token)
        assert (piece.kind is Kind.UNKNOWN) == processor.is_unknown(token)
    assert sum(piece.kind is Kind.USER_DEFINED for piece in found.pieces) == 4
    assert (found.algorithm, found.byte_fallback, found.changes_text) == (kind, True, False)


@pytest.mark.parametrize("arguments", [
    {"add_dummy_prefix": True}, {"remove_extra_whitespaces": True},
    {"normalization_rule_name": "nmt_nfkc"}])
def test_models_that_change_texts_are_told(arguments):
    assert parse(trained("bpe", **arguments)).changes_text
    assert not parse(trained("word", byte_fallback=False, hard_vocab_limit=False)).byte_fallback


@pytest.mark.parametrize("content", [b"not a model", b"\x0a\x05ab", b"\x0a", b"\x0f\x01"])
def test_bytes_that_are_no_model(content):
    with pytest.raises(ValueError):
        parse(content)


def test_added_pieces_come_after_the_others():
    model = token_corpora.tiny_tokenizer()
    added = [Piece("急性心肌梗死", 0.0, Kind.USER_DEFINED), Piece("heart\u2581attack", -0.5)]
    longer = with_pieces(model, added)
    assert parse(longer).pieces == (*parse(model).pieces, *added)
    processor = sentencepiece.SentencePieceProcessor(model_proto=longer)
    assert processor.vocab_size() == 402
    assert processor.encode("x急性心肌梗死", out_type=str)[-1] == "急性心肌梗死"
    text = "word1 文字一 y"
    assert processor.encode(text) == sentencepiece.SentencePieceProcessor(
        model_proto=model).encode(text)


def best(pieces: dict[str, float], text: str) -> float:
    """Score of the best segmentation by all of them, in float64."""
    scores = [0.0] + [float("-inf")] * len(text)
    for end in range(1, len(text) + 1):
        for start in range(max(0, end - 16), end):
            if text[start:end] in pieces:
                scores[end] = max(scores[end], scores[start] + pieces[text[start:end]])
    return scores[-1]


def test_exact_unigram_models_keep_their_pieces_and_do_not_round():
    model = trained("unigram", vocab_size=420)
    exact = exact_unigram(model)
    before, after = parse(model), parse(exact)
    assert [piece.text for piece in before.pieces] == [piece.text for piece in after.pieces]
    assert dataclasses.replace(before, pieces=()) == dataclasses.replace(after, pieces=())
    for old, new in zip(before.pieces, after.pieces, strict=True):
        assert new.score * 16 == int(new.score * 16)
        if old.kind is Kind.NORMAL:
            assert abs(new.score - old.score) <= 1 / 32
        else:
            assert new.kind is (Kind.NORMAL if old.kind is Kind.USER_DEFINED else old.kind)
    scores = {piece.text: piece.score for piece in after.pieces if piece.kind is Kind.NORMAL}
    lowest = min(score for score in scores.values())
    processor = sentencepiece.SentencePieceProcessor(model_proto=exact)
    letters = random.Random(1)
    word = "梗死者急性abc心肌"
    alone = processor.encode(word)
    for length in (5, 50, 20_000):
        head = "".join(letters.choices("的人们心肌梗死者急性\u2581abc\n", k=length)) + "\n"
        found = processor.encode(head + word, out_type=str)
        # SentencePiece sums in float32 and finds what is best in float64, wherever it stands.
        if length < 100:
            assert sum(scores[piece] for piece in found) == best(scores, head + word)
        assert [processor.piece_to_id(piece) for piece in found[-len(alone):]] == alone
        # User-defined pieces win over 们的 + 人心 and the like.
        assert found.count("的人") == head.count("的人")
    assert scores["[MED]"] > 5 * -lowest and scores["\n"] == scores["\n\n"] == -1 / 8


def test_symbols_win_over_cheap_pieces_that_reach_over_both_their_ends():
    model = with_pieces(trained("unigram"), [
        Piece("好的", -0.25), Piece("人家", -0.25), Piece("好", -9.0), Piece("家", -9.0)])
    text = "好的人家"  # 的人 is a symbol
    before = sentencepiece.SentencePieceProcessor(model_proto=model)
    assert before.encode(text, out_type=str) == ["好的", "人家"]  # SentencePiece's own -0.1
    after = sentencepiece.SentencePieceProcessor(model_proto=exact_unigram(model))
    assert after.encode(text, out_type=str) == ["好", "的人", "家"]
    assert after.encode("\n\n", out_type=str) == ["\n\n"]
