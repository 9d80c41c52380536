"""N-gram models, compared with KenLM's output, a naive implementation and probability sums of 1."""

import gzip
import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_beam.models import arpa
from data_beam.models.backoff_model import BOS, EOS, SPECIAL, NgramModel
from data_beam.models.kneser_ney import FALLBACK_DISCOUNTS, Estimate, discounts_of, estimate
from data_beam.models.units import Tokens, token_names, vocabulary_of

GOLDEN = Path(__file__).parents[2] / "golden" / "perplexity"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text(encoding="utf-8"))


def golden_text(name: str) -> str:
    return (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def padded(prune: list[int], order: int) -> list[int]:
    return prune + prune[-1:] * (order - len(prune))


def train(text: str, unit: str, order: int, prune: list[int]) -> tuple[Estimate, Tokens]:
    vocabulary = vocabulary_of(unit, [text])
    tokens = Tokens(unit, vocabulary)
    return estimate(tokens(text), vocabulary, order, padded(prune, order)), tokens


@pytest.mark.parametrize("case", EXPECTED)
def test_models_and_scores_match_kenlm(case):
    expected = EXPECTED[case]
    made, tokens = train(golden_text(expected["text"]), expected["unit"], expected["order"],
                         expected["prune"])
    assert list(made.model.sizes) == expected["ngrams"]
    assert made.fallback_orders == ()
    np.testing.assert_allclose(made.discounts, expected["discounts"], rtol=1e-5)
    ids = tokens(golden_text(f"{expected['text']}_held_out"))
    # KenLM computes and prints in single precision.
    np.testing.assert_allclose(made.model.log10(ids)[ids != BOS], expected["log10"], atol=5e-6)


def test_an_arpa_file_of_lmplz_gives_the_same_model():
    expected = EXPECTED["zh, pruned"]
    with gzip.open(GOLDEN / "zh_lmplz.arpa.gz") as file:
        model = arpa.read(file)
    ids = Tokens("character", model.vocabulary)(golden_text("zh_held_out"))
    np.testing.assert_allclose(model.log10(ids)[ids != BOS], expected["log10"], atol=5e-6)
    made, _ = train(golden_text("zh"), "character", 5, expected["prune"])
    same_model(model, made.model)


def same_model(one: NgramModel, other: NgramModel) -> None:
    assert one.vocabulary == other.vocabulary
    for name in ("begins", "words"):
        for a, b in zip(getattr(one, name), getattr(other, name), strict=True):
            np.testing.assert_array_equal(a, b)
    for name in ("log_probabilities", "log_backoffs"):
        for a, b in zip(getattr(one, name), getattr(other, name), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)


def random_sentences(seed: int, size: int, number: int) -> list[list[int]]:
    letters = random.Random(seed)
    return [[BOS, *(min(size - 1, 3 + int(letters.expovariate(0.4)))
                    for _ in range(letters.randint(1, 9))), EOS] for _ in range(number)]


@pytest.mark.parametrize("prune", [[0, 0, 0], [0, 1, 1], [0, 0, 2]])
def test_probabilities_after_every_history_sum_to_one(prune):
    size = 9
    names = (*SPECIAL, *"abcdef")
    model = estimate(np.concatenate(random_sentences(5, size, 80)), names, 3, prune).model
    words = [word for word in range(size) if word != BOS]
    for history in [(BOS,), (BOS, 3), (3, 4), (4, 3), (0, 5), (8, 0), (8, 8)]:
        rows = [[*history, word] for word in words]
        total = sum(10 ** model.log10(np.array(row))[-1] for row in rows)
        assert total == pytest.approx(1, abs=1e-6)


def test_discounts_by_hand():
    # n1 = 4, n2 = 2, n3 = 1, n4 = 1: y = 4/8; D1 = 1 - 2*.5*2/4, D2 = 2 - 3*.5*1/2, D3 = 3 - 4*.5
    assert discounts_of(np.array([1, 1, 1, 1, 2, 2, 3, 4, 9])) == (0.5, 1.25, 1.0)
    assert discounts_of(np.array([1, 1, 2])) is None  # no count of 3
    assert discounts_of(np.array([1, 2, 3] + [4] * 9)) is None  # D3 would be negative
    assert discounts_of(np.zeros(0, int)) is None


def test_small_texts_use_fallback_discounts():
    made, tokens = train("ab\nab\n", "character", 3, [0])
    assert made.fallback_orders == (1, 2, 3)
    assert made.discounts == (FALLBACK_DISCOUNTS,) * 3
    assert np.isfinite(made.model.log10(tokens("abc\n\nzz"))).all()


def test_arpa_round_trip():
    made, _ = train(golden_text("en"), "word", 4, [0, 0, 1])
    text = "".join(arpa.write(made.model))
    same_model(arpa.read(text.encode().splitlines(True)), made.model)


ARPA = b"""\\data\\
ngram 1=4
ngram 2=2

\\1-grams:
-1\t<s>\t-0.5
-1\t</s>
-0.5\ta\t-0.25
-0.75\tb

\\2-grams:
-0.125\t<s> a
-0.25\ta a

\\end\\
"""


def test_a_small_arpa_file_scores_by_hand():
    model = arpa.read(ARPA.splitlines(True))
    tokens = Tokens("word", model.vocabulary)
    # <s> a; a a; a b backs off; b </s> backs off with an omitted backoff, 0.
    assert model.log10(tokens("a a b")).tolist() == [0, -0.125, -0.25, -0.25 - 0.75, -1]
    assert model.log10(tokens("c")).tolist() == [0, -100 - 0.5, -1]  # no <unk>, as in KenLM


@pytest.mark.parametrize("old, new, message", [
    (b"\\data\\", b"data", "no .data. section with the numbers"),
    (b"ngram 1=4", b"ngram 2=4", "line 2 is not 'ngram 1=COUNT'"),
    (b"ngram 1=4", b"ngram 1=5", "line 10: expected a 1-gram with its logarithms"),
    (b"ngram 2=2", b"ngram 2=1", "the file is truncated"),
    (b"\\2-grams:", b"\\3-grams:", "line 11: expected .2-grams:"),
    (b"<s> a\n", b"<s> z\n", "line 12: the token b'z' is not among the 1-grams"),
    (b"-0.125\t", b"x\t", "line 12: .* is not a number"),
    (b"<s> a\n", b"a a\n", "a 2-gram is listed twice"),
    (b"\tb\n", b"\ta\n", "a 1-gram is listed twice"),
    (b"\t<s>\t", b"\ts\t", "the 1-gram <s> is missing"),
    (b"\n\\end\\\n", b"", "no .end. after the last n-gram"),
])
def test_damaged_arpa_files_raise(old, new, message):
    assert old in ARPA
    with pytest.raises(arpa.ArpaError, match=message):
        arpa.read(ARPA.replace(old, new, 1).splitlines(True))


def test_an_ngram_without_its_context_raises():
    text = ARPA.replace(b"ngram 2=2\n", b"ngram 2=2\nngram 3=1\n").replace(
        b"\n\\end", b"\n\\3-grams:\n-1\tb a a\n\n\\end")
    with pytest.raises(arpa.ArpaError, match="'b a a' has no entry for its first 2 tokens"):
        arpa.read(text.splitlines(True))


def test_units():
    text = "天下大势，\t分久必合 A1\n\n  \nEnd。"
    assert token_names("character")(text) == [list("天下大势，分久必合A1"), list("End。")]
    assert token_names("word")("Don't stop!\n3.5 m²") == [
        ["don", "'", "t", "stop", "!"], ["3", ".", "5", "m²"]]
    vocabulary = vocabulary_of("character", [text])
    assert vocabulary[:3] == SPECIAL and set(vocabulary[3:]) == set("天下大势，分久必合A1End。")
    assert list(vocabulary[3:]) == sorted(vocabulary[3:])
    ids = Tokens("character", vocabulary)(text + "\n未\n")
    names = [vocabulary[id] for id in ids]
    assert "".join(names) == ("<s>天下大势，分久必合A1</s><s>End。</s><s><unk></s>")


LETTERS = st.characters(codec=None)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(LETTERS | st.sampled_from("ab \n天地\t\r\u3000")), max_size=4),
       st.text(LETTERS | st.sampled_from("ab \n天地\t")), st.sampled_from(["character", "word"]))
def test_every_text_has_a_score(texts, text, unit):
    vocabulary = vocabulary_of(unit, texts)
    tokens = Tokens(unit, vocabulary)
    ids = np.concatenate([tokens(each) for each in [*texts, ""]]).astype(np.int64)
    model = estimate(ids, vocabulary, 3, [0, 0, 0]).model
    of_text = tokens(text)
    scores = model.log10(of_text)
    assert np.isfinite(scores).all() and (scores <= 0).all()
    lines = token_names(unit)(text.replace("\ud800", ""))
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert [len(line) for line in lines] == [
            len(list(group)) for end, group in itertools.groupby(
                of_text, lambda id: id in (BOS, EOS)) if not end]
