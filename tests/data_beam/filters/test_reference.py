"""Every published rule against a plain implementation of its definition, on generated documents.

The implementations here read a text with `split` and loops. The documents keep words and marks
apart by spaces, so that any tokenizer agrees on the words.
"""

import re
import string
from collections import Counter
from functools import partial

import pytest

from data_beam import filters
from data_beam.base.records import Document, Dropped
from data_beam.filters.segmentation import SENTENCE_ENDS
from tests.data_beam.filters.cases import STOP, generated, later_copies, outcome

SEEDS = range(400)


def naive_gopher_quality(text):
    words, lines = text.split(), text.splitlines()
    marks = set(string.punctuation) | {"…"}
    real = [w for w in words if any(c not in marks for c in w)]
    mean = sum(map(len, real)) / max(len(real), 1)
    bullets = sum(1 for line in lines if line.lstrip()[:1] in ("•", "-"))
    ends = sum(1 for line in lines if line.rstrip()[-3:] == "..." or line.rstrip()[-1:] == "…")
    letters = sum(1 for w in words if re.search("[a-z]", w))
    return next((reason for reason, failed in (
        ("too few words", len(real) < 50), ("too many words", len(real) > 100_000),
        ("words too short", mean < 3), ("words too long", mean > 10),
        ("hashes", text.count("#") / len(words) > 0.1),
        ("ellipses", (text.count("...") + text.count("…")) / len(words) > 0.1),
        ("bullet lines", bullets / len(lines) > 0.9), ("ellipsis lines", ends / len(lines) > 0.3),
        ("words without letters", letters / len(words) < 0.8),
        ("few stop words", len(set(STOP) & set(words)) < 2)) if failed), None)


def copies(items):
    seen, count, characters = set(), 0, 0
    for item in items:
        if item in seen:
            count, characters = count + 1, characters + len(item)
        seen.add(item)
    return count, characters


def naive_gopher_repetition(text, every=False):
    """As datatrove counts (copies after the first), or every copy, as dolma does."""
    words = text.split()
    size = sum(map(len, words)) if every else len(text)
    for name, items in (("paragraph", re.split("\n\n+", text.strip())),
                        ("line", re.split("\n" if every else "\n+", text))):
        counts = {item: n if every else n - 1 for item, n in Counter(items).items() if n > 1}
        if sum(counts.values()) / len(items) > 0.30:
            return f"duplicate {name}s"
        if sum(len(item) * n for item, n in counts.items()) / size > 0.20:
            return f"duplicate {name} characters"
    for n, limit in enumerate((0.20, 0.18, 0.16, 0.15, 0.14, 0.13, 0.12, 0.11, 0.10), 2):
        joint = " " if n < 5 and not every else ""
        grams = Counter(tuple(words[i:i + n]) for i in range(len(words) - n + 1))
        counts = [(len(joint.join(gram)), count) for gram, count in grams.most_common()]
        if n < 5:
            share = counts[0][0] * counts[0][1] / size if counts else 0.0
        elif every:
            again = sum(length * count for length, count in counts if count > 1)
            share = again / max(sum(length * count for length, count in counts), 1)
        else:
            share = later_copies(words, n) / size
        if share > limit:
            return f"top {n}-gram" if n < 5 else f"duplicate {n}-grams"
    return None


def naive_sentences(words):
    """One at the start; one at each word that follows closing marks and is no punctuation."""
    count, ended = (1, False) if words else (0, False)
    for word in words:
        if word in (".", "!", "?"):
            ended = True
        elif ended and not set(word) <= set("#.-,…{•"):
            count, ended = count + 1, False
    return count


def naive_c4(text, preset):
    ends = (".", "?", "!", '"') + (("'",) if preset == "datatrove" else ())
    least_words, least_sentences = (3, 5) if preset == "datatrove" else (5, 3)
    kept, sentences = [], 0
    for line in text.splitlines():
        line = line.strip()
        if any(len(word) > 1000 for word in line.split()):
            continue
        before = line.split()
        line = re.sub(r"\[\d*\]|\[edit\]|\[citation needed\]", "", line)
        if not line.endswith(ends) or line.endswith("..."):
            continue
        if len(before if preset == "datatrove" else line.split()) < least_words:
            continue
        if "lorem ipsum" in line.lower():
            return "lorem ipsum"
        if "javascript" in line.lower():
            continue
        if "{" in line:
            return "curly bracket"
        if any(p in line.lower() for p in (
                "terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies",
                "use cookies")):
            continue
        sentences += naive_sentences(line.split())
        kept.append(line)
    if sentences < least_sentences:
        return "too few sentences"
    return ["\n".join(kept).strip()]


def naive_fineweb(text, paper=False):
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        return "empty"
    for name, value, limit, paper_limit in (
            ("few lines end with a mark",
             -sum(1 for line in lines if line[-1] in SENTENCE_ENDS) / len(lines), -0.12, -0.12),
            ("short lines", sum(1 for line in lines if len(line) <= 30 - paper) / len(lines),
             0.67, 0.67),
            ("duplicate line characters", copies(lines)[1] / len(text.replace("\n", "")),
             0.01, 0.1),
            ("newlines", text.count("\n") / len(text.split()), 0.3, 9)):
        if value >= paper_limit if paper else value > limit:
            return name
    return None


DOLMA = filters.GopherRepetitionConfig(counting="every")
FINEWEB_PAPER = filters.FineWebConfig(preset="paper")


@pytest.mark.parametrize("name, section, naive, different", [
    ("gopher_quality", None, naive_gopher_quality, 6),
    ("gopher_repetition", None, naive_gopher_repetition, 6),
    ("gopher_repetition", DOLMA, partial(naive_gopher_repetition, every=True), 5),
    ("fineweb", None, naive_fineweb, 4),
    ("fineweb", FINEWEB_PAPER, partial(naive_fineweb, paper=True), 4),
    *(("c4", filters.C4Config(preset, end_marks), partial(naive_c4, preset=preset), 20)
      for preset in ("tfds", "datatrove") for end_marks in ("paper", "extended")),
])
def test_generated_documents(name, section, naive, different):
    """`different` outcomes and more: reasons, kept as they are, texts that are left."""
    expected = [naive(generated(seed)) for seed in SEEDS]
    for seed, right in zip(SEEDS, expected, strict=True):
        result = outcome(name, generated(seed), **({name: section} if section else {}))
        if isinstance(right, list):
            assert isinstance(result, Document) and result.text == right[0], seed
        else:
            assert (result.reason if isinstance(result, Dropped) else None) == right, seed
    assert len(set(map(str, expected))) >= different, Counter(map(str, expected))


def test_the_two_definitions_of_a_filter_do_not_agree():
    """Which is why both are there."""
    for one, other in ((naive_gopher_repetition, partial(naive_gopher_repetition, every=True)),
                       (naive_fineweb, partial(naive_fineweb, paper=True))):
        assert [one(generated(seed)) for seed in SEEDS] != [
            other(generated(seed)) for seed in SEEDS]
