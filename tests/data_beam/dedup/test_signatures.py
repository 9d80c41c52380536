"""Shingles, signatures, bands and SimHash against definitions, closed forms and datasketch."""

import itertools
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_beam.base.hashing import mix64
from data_beam.config import MinHashConfig, SimHashConfig
from data_beam.dedup import buckets, signatures
from data_beam.dedup.signatures import compare, jaccard, shingles, token_hashes
from maxlm.config.schema import ConfigError, build

ENGLISH = ("The committee met on Tuesday. It decided, after two hours of talk, to build a bridge "
           "over the river and to name it after nobody in particular.")
CHINESE = ("茶的历史可以追溯到很久以前。茶起源于中国，后来沿着商路传到整个亚洲，成为人们的饮料。"
           "唐代陆羽所著的茶经是世界上第一部关于茶叶的专著，对后世影响深远。")


def shingle_set(text: str, **sizes: int) -> np.ndarray:
    return np.unique(shingles(text, **sizes))


def estimate(first: np.ndarray, second: np.ndarray) -> float:
    """Jaccard similarity from two signatures: unbiased, standard deviation sqrt(s (1 - s) / n)."""
    return float(np.mean(first == second))


def exact_words(text: str, size: int) -> set[tuple[str, ...]]:
    """Word shingles by the standard library, of ASCII texts."""
    words = "".join(c if c.isalnum() else " " for c in text.lower()).split()
    return {tuple(words[i:i + size]) for i in range(len(words) - size + 1)}


def exact_characters(text: str, size: int) -> set[str]:
    letters = "".join(c for c in text if c.isalnum())
    return {letters[i:i + size] for i in range(len(letters) - size + 1)}


def changed(text: str, generator: random.Random, words: int) -> str:
    parts = text.split()
    for _ in range(words):
        parts[generator.randrange(len(parts))] = f"w{generator.randrange(10**6)}"
    return " ".join(parts)


@pytest.mark.parametrize(("unit", "exact"), [
    ("word_ngram", exact_words), ("character_ngram", exact_characters)])
def test_shingles_are_those_of_the_definition(unit, exact):
    generator = random.Random(1)
    words = ["alpha", "beta", "gamma", "delta", "eps", "zeta", "eta", "x1", "y-2", "don't"]
    one = " ".join(generator.choice(words) for _ in range(300))
    other = changed(one, generator, 20)
    if exact is exact_characters:
        one, other = CHINESE, CHINESE.replace("世界上第一部", "现存最早的一部").replace("，", " ")
    for size in (1, 3, 5, 8):
        ours = [shingle_set(text, **{unit: size}) for text in (one, other)]
        theirs = [exact(text, size) for text in (one, other)]
        assert [len(s) for s in ours] == [len(s) for s in theirs]
        assert jaccard(*ours) == pytest.approx(
            len(theirs[0] & theirs[1]) / len(theirs[0] | theirs[1]), abs=1e-12)


def test_two_scripts_in_one_text_each_go_by_their_own_rule():
    # Tokens: 我 们 用 python 3 写 程 序; shingles by hand: one begins at each of 我 们 用 (3
    # characters) and python 3 (2 words), then 写; none is left for 程 and 序.
    assert len(token_hashes("我们用Python 3写程序。")[0]) == 8
    assert len(shingle_set("我们用Python 3写程序。", word_ngram=2, character_ngram=3)) == 6
    english = shingle_set("one two three four")
    assert len(english) == 0  # four words hold no shingle of five
    assert len(token_hashes("한국어 문장은 띄어쓰기를 한다")[0]) == 4  # Korean puts spaces
    assert len(token_hashes("ภาษาไทย")[0]) == 7  # Thai does not
    assert len(token_hashes("हिन्दी भाषा")[0]) == 2  # vowel signs belong to the word
    assert len(token_hashes("㐀𠀀ｱ")[0]) == 3


def test_case_punctuation_and_spaces_do_not_count():
    assert np.array_equal(shingle_set(ENGLISH), shingle_set(
        ENGLISH.upper().replace(" ", " \n\t").replace(".", "!?")))
    assert np.array_equal(shingle_set(CHINESE), shingle_set("\n".join(CHINESE)))
    # ... but what parts words does: "ab c" is not "a bc"; nor is the order of letters free.
    assert not np.array_equal(token_hashes("ab c")[0], token_hashes("a bc")[0])
    assert token_hashes("ab")[0] != token_hashes("ba")[0]


@pytest.mark.parametrize("text", ["", " ", "\n", "word", "字", "。。。", "\ud800", "\x00", "😀😀"])
def test_texts_without_shingles(text):
    found = shingle_set(text)
    assert found.dtype == np.uint64 and len(found) == 0
    assert jaccard(found, found) == 0.0  # like nothing, not even each other
    assert set(signatures.signature(found, 16).tolist()) == {signatures.EMPTY}
    assert signatures.simhash(found) == 0


@settings(max_examples=200, deadline=None)
@given(st.text(), st.text())
def test_any_text_has_shingles_and_a_similarity(first, second):
    a, b = shingle_set(first, word_ngram=1, character_ngram=1), shingle_set(second)
    assert (a[1:] > a[:-1]).all()
    assert 0 <= jaccard(a, b) == jaccard(b, a) <= 1
    common = len(set(a.tolist()) & set(b.tolist()))
    union = len(set(a.tolist()) | set(b.tolist()))
    assert compare(a, b) == (common / max(1, union), common / max(1, len(b)))


def test_one_enormous_word_and_line():
    assert len(token_hashes("x" * 10**6)[0]) == 1
    # Words longer than the table of powers differ when their letters do.
    assert token_hashes("a" * 300 + "b")[0] != token_hashes("b" + "a" * 300)[0]


def test_hashes_do_not_depend_on_the_process():
    code = ("from data_beam.dedup.signatures import band_keys, shingles, signature;"
            "s = shingles('a b c d e f 茶的历史可以'); g = signature(s, 8);"
            "print(s.tolist(), g.tolist(), band_keys(g, 4, 2))")
    printed = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              check=True, env={"PYTHONHASHSEED": seed, "PATH": ""}).stdout
               for seed in ("1", "2")}
    assert len(printed) == 1
    # Worked out once: another version or machine must agree.
    assert signatures.band_keys(signatures.signature(shingles("a b c d e f"), 8), 2, 4) == GOLDEN


GOLDEN = [9126129256714593876, 12248205730925495513]


def test_signature_equals_its_definition():
    values = mix64(np.arange(1, 3000, dtype=np.uint64))
    factors, terms = signatures._coefficients(20)
    naive = [min((int(a) * int(x) + int(b)) % 2**64 for x in values)
             for a, b in zip(factors[:, 0], terms[:, 0], strict=True)]
    assert signatures.signature(values, 20).tolist() == naive
    assert all(int(a) % 2 for a in factors[:, 0])
    assert signatures.signature(values[::-1], 7).tolist() == naive[:7]


def pairs_of_sets(similarity: float, size: int, count: int, generator: np.random.Generator):
    """Pairs of random sets with exactly that Jaccard similarity: `similarity * size` elements in
    common of `size` in the union."""
    common = round(similarity * size)
    for _ in range(count):
        union = np.unique(generator.integers(0, 2**63, size, dtype=np.uint64) * np.uint64(2))
        generator.shuffle(union)
        half = (len(union) - common) // 2
        yield (np.concatenate([union[:common], union[common:common + half]]),
               np.concatenate([union[:common], union[common + half:]]))


@pytest.mark.parametrize("similarity", [0.2, 0.5, 0.8])
def test_the_estimate_is_unbiased(similarity):
    generator = np.random.default_rng(3)
    estimates = [estimate(signatures.signature(a, 112), signatures.signature(b, 112))
                 for a, b in pairs_of_sets(similarity, 100, 400, generator)]
    sigma = (similarity * (1 - similarity) / 112) ** 0.5
    # The mean of 400, within three of its standard errors; and the spread of a single one.
    assert abs(np.mean(estimates) - similarity) < 3 * sigma / 400**0.5
    assert np.std(estimates) == pytest.approx(sigma, rel=0.15)


@pytest.mark.parametrize(("bands", "rows"), [(14, 8), (20, 13), (22, 5), (37, 3)])
def test_candidate_rates_follow_the_closed_form(bands, rows):
    generator = np.random.default_rng(bands)
    for similarity in (0.5, 0.7, 0.8, 0.9):
        count, met = 500, 0
        for a, b in pairs_of_sets(similarity, 100, count, generator):
            keys = [signatures.band_keys(signatures.signature(s, bands * rows), bands, rows)
                    for s in (a, b)]
            met += any(x == y for x, y in zip(*keys, strict=True))
        expected = signatures.candidate_probability(similarity, bands, rows)
        sigma = (expected * (1 - expected) / count) ** 0.5
        assert abs(met / count - expected) <= 3 * sigma + 1e-12 + 0.5 / count


def test_chosen_bands_meet_the_probability_with_as_many_rows_as_can_be():
    for similarity, permutations in itertools.product((0.3, 0.5, 0.7, 0.9, 1.0), (16, 112, 256)):
        bands, rows = signatures.choose_bands(similarity, permutations)
        assert bands * rows <= permutations
        assert signatures.candidate_probability(similarity, bands, rows) >= 0.95
        if rows < permutations:
            assert signatures.candidate_probability(
                similarity, permutations // (rows + 1), rows + 1) < 0.95
    assert signatures.choose_bands(0.7, 112) == (22, 5)
    assert signatures.choose_bands(0.01, 4) == (4, 1)  # nothing reaches it


def test_simhash_is_the_majority_of_bits():
    values = mix64(np.arange(11, dtype=np.uint64))
    naive = sum(1 << bit for bit in range(64)
                if 2 * sum(int(v) >> bit & 1 for v in values) > len(values))
    assert signatures.simhash(values) == naive
    assert signatures.simhash(values[:2]) == int(values[0]) & int(values[1])  # a tie is 0
    chosen = signatures.masks(2, 3)  # one block of three at a time: each bit once
    assert len(chosen) == 3 and sum(map(int, chosen)) == 2**64 - 1
    assert len(signatures.masks(3, 6)) == 20


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**64 - 1), st.integers(0, 8), st.integers(1, 6), st.randoms())
def test_simhash_lookup_misses_nothing_within_the_distance(fingerprint, distance, more, generator):
    blocks = distance + more
    flips = generator.sample(range(64), distance)
    near = fingerprint
    for bit in flips:
        near ^= 1 << bit
    keys = signatures.lookup_keys(np.array([fingerprint, near], np.uint64), distance, blocks)
    assert (keys[0] == keys[1]).any()


def test_simhash_buckets_are_all_pairs_within_the_distance():
    generator = np.random.default_rng(2)
    centres = generator.integers(0, 2**64, 5, dtype=np.uint64)
    prints = np.concatenate([centres, *(
        centres ^ (np.uint64(1) << generator.integers(0, 64, 5, dtype=np.uint64))
        for _ in range(6))])
    # Two at the very distance, with nothing between them that would bring them together.
    prints = np.concatenate([prints, np.array([0, 0x8000_0000_0000_0001], np.uint64)])
    distance, blocks = 2, 4
    keys = signatures.lookup_keys(prints, distance, blocks)
    entries = np.zeros(keys.size, buckets.FINGERPRINTED)
    entries["key"], entries["node"] = keys.ravel(), np.repeat(np.arange(len(prints)), keys.shape[1])
    entries["fingerprint"] = np.repeat(prints, keys.shape[1])
    found = {pair for bucket in buckets.simhash_buckets(entries, distance)
             for pair in itertools.combinations(bucket.tolist(), 2)}
    truth = {(a, b) for a, b in itertools.combinations(range(len(prints)), 2)
             if bin(int(prints[a]) ^ int(prints[b])).count("1") <= distance}
    assert truth <= found and len(truth) > 30


def test_buckets_by_key_and_packing():
    entries = np.array([(7, 1), (9, 2), (7, 3), (7, 1), (8, 4), (8, 4)], buckets.KEYED)
    found = [b.tolist() for b in buckets.key_buckets(entries)]
    assert found == [[1, 3]]  # 8 has one document, twice
    some = [np.array([1, 3]), np.array([2, 5, 9]), np.array([1, 3])]
    blobs = [buckets.pack_buckets(some), buckets.pack_buckets([])]
    assert [b.tolist() for b in buckets.unpack_buckets(blobs[0])] == [[1, 3], [2, 5, 9], [1, 3]]
    assert [b.tolist() for b in buckets.distinct_buckets(blobs)] == [[1, 3], [2, 5, 9]]
    parts = {n: v.tolist() for n, v in buckets.by_part(np.array([2, 0, 2]), np.array([5, 6, 7]))}
    assert parts == {0: [6], 2: [5, 7]}
    assert list(buckets.by_part(np.empty(0, int), np.empty(0, int))) == []


def test_settings_that_cannot_work_are_refused():
    for kind, values, text in (
            (MinHashConfig, {"bands": 20}, "set bands and rows"),
            (MinHashConfig, {"bands": 20, "rows": 13}, "need 260, not 112"),
            (MinHashConfig, {"threshold": 0.4}, "split_similarity: 0.5 is above"),
            (SimHashConfig, {"distance": 6}, "take 7 or more")):
        with pytest.raises(ConfigError, match=text):
            build(kind, values)
