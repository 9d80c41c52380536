"""Topic coherence against its published definition, counted window by window; planted topics."""

import itertools
import math
import random

import pytest

from data_beam.reporting.topics import c_npmi, find_topics, segment
from tests.data_beam.reporting.report_corpus import SUBJECTS


def by_hand(top: list[str], documents: list[list[str]]) -> float:
    """C_NPMI of Röder et al. 2015 as it is written: sliding windows of 10 words, all pairs."""
    windows = [set(document[start:start + 10]) for document in documents
               for start in range(max(1, len(document) - 9)) if document]
    share = lambda *wanted: sum(window >= set(wanted) for window in windows) / len(windows)  # noqa: E731
    values = []
    for a, b in itertools.combinations(top, 2):
        joint = share(a, b) + 1e-12
        values.append(math.log(joint / (share(a) * share(b))) / -math.log(joint))
    return sum(values) / len(values)


def test_a_tiny_case_in_closed_form():
    # Ten documents of one window each: a and b together in 2, a alone in 2, b alone in 1.
    documents = [["a", "b"]] * 2 + [["a", "x"]] * 2 + [["b"]] + [["x", "y"]] * 5
    expected = math.log(0.2 / (0.4 * 0.3)) / -math.log(0.2)
    assert math.isclose(c_npmi([["a", "b"]], documents)[0], expected, rel_tol=1e-9)
    # Never together: -1 in the limit; e = 1e-12 leaves it a little above.
    assert -1 < c_npmi([["b", "y"]], documents)[0] < -0.9
    # Always together.
    assert math.isclose(c_npmi([["x", "y"]], [["x", "y"], ["z"]])[0], 1.0, rel_tol=1e-9)


def test_windows_are_counted_as_the_definition_says():
    rng = random.Random(3)
    documents = [[rng.choice("abcdefghij") if rng.random() < 0.3 else "-" for _ in range(size)]
                 for size in (0, 1, 5, 9, 10, 11, 12, 60, 200)]
    topics = [list("abc"), list("defghij"), list("aj")]
    for topic, found in zip(topics, c_npmi(topics, documents), strict=True):
        assert math.isclose(found, by_hand(topic, documents), rel_tol=1e-9)


def documents_of(language: str) -> list[str]:
    """Texts about one of two subjects each, with words that stand in all."""
    rng = random.Random(0)
    common = ("the and with often" if language == "en" else "我们 今天 因为 可以").split()
    texts = []
    for i in range(80):
        picked = [rng.choice(SUBJECTS[language][i % 2] if rng.random() < 0.6 else common)
                  for _ in range(60)]
        texts.append((" " if language == "en" else "，").join(picked))
    return texts


@pytest.mark.parametrize("language", SUBJECTS)
def test_planted_subjects_are_told_apart(language):
    texts = documents_of(language)
    found = find_topics(texts, language)
    assert len(found) == 8 and abs(sum(topic.share for topic in found) - 1) < 1e-9
    assert found == sorted(found, key=lambda topic: (-topic.share, topic.words))
    for topic in found:
        assert 5 <= len(topic.words) <= 10
        # Words in all documents name no topic.
        assert set(topic.words) <= {word for subject in SUBJECTS[language] for word in subject}
    # The two topics that most documents belong to are the two subjects.
    names = [{s for s in (0, 1) if len(set(topic.words) & set(SUBJECTS[language][s])) >= 8}
             for topic in found]
    assert {0} in names and {1} in names
    assert find_topics(texts, language) == found


@pytest.mark.parametrize("language", SUBJECTS)
def test_coherence_of_topics_is_that_of_their_segment(language):
    texts = documents_of(language)
    cut = [segment(text, language) for text in texts]
    found = find_topics(texts, language)
    assert found
    for topic in found:
        assert math.isclose(topic.coherence, by_hand(list(topic.words), cut), rel_tol=1e-9)


def test_slow_convergence_is_not_the_users_problem(recwarn):
    rng = random.Random(0)
    words = ["".join(rng.choices("bcdfghjklmnp", k=5)) for _ in range(150)]
    find_topics([" ".join(rng.choices(words, k=200)) for _ in range(500)], "en")
    assert not recwarn.list


def test_little_text_has_no_topics():
    assert find_topics(["river boat " * 20] * 39, "en") == []
    assert find_topics([""] * 60, "en") == []
    assert find_topics(["one and the same words in every document"] * 60, "en") == []


def test_words_by_language():
    assert segment("Don't count 3 naïve co-operations, étés!", "en") == [
        "don't", "count", "naïve", "co", "operations", "étés"]
    assert segment("患者每天早晨测量3次血压。", "zh") == [
        "患者", "每天", "早晨", "测量", "次", "血压"]
    assert segment("Gemüse und Äpfel", "de") == ["gemüse", "und", "äpfel"]
    assert segment("हिन्दी में लिखा", "hi") == ["हिन्दी", "में", "लिखा"]  # vowel signs are no letters
