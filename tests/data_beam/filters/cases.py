"""Filters on one text, and generated texts, for tests."""

import numpy as np

from data_beam.base.records import Document, Dropped, Origin
from data_beam.config import FilterConfig
from data_beam.filters.text_filter import TextFilter

STOP = ["the", "be", "to", "of", "and", "that", "have", "with"]
ENGLISH = [*STOP, "house", "river", "stone", "because", "moderately", "extraordinarily", "sea", "a"]


def document(text, language="en"):
    return Document(Origin("s", "p"), text, "general", "MIT", "", language, 1.0, "", "", ())


def make(*names, **settings):
    """Filters by their names, with settings of `FilterConfig`."""
    config = FilterConfig(rules=names, **settings)
    return [TextFilter.by_name[name](config) for name in names]


def outcome(name, text, language="en", **settings):
    """What a filter makes of a text."""
    (made,) = make(name, **settings)
    return made(document(text, language))


def reason(name, text, language="en", **settings):
    """Why a filter drops a text, or None."""
    result = outcome(name, text, language, **settings)
    return result.reason if isinstance(result, Dropped) else None


def generated(seed):
    """A text of lines, of very different kinds by seed."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, len(ENGLISH) + 1))
    vocabulary = [ENGLISH[i] for i in rng.permutation(len(ENGLISH))[:size]]
    marks = [".", "#", "...", "-", "12", "!", ",", "•", "…", "{", "?"]
    lines = []
    for _ in range(int(rng.integers(1, 25))):
        words = [vocabulary[i] for i in rng.integers(0, size, int(rng.integers(1, 25)))]
        for at in rng.integers(0, len(words), int(rng.integers(0, 6))):
            words[at] = marks[int(rng.integers(0, len(marks)))]
        if rng.random() < 0.7:
            words.append(str(rng.choice([".", "!", "...", "."])))
        lines.append(" ".join(words))
        if rng.random() < 0.25:
            lines.append(lines[int(rng.integers(0, len(lines)))])
        if rng.random() < 0.2:
            lines.append("")
    return "\n".join(lines)


def later_copies(words, n):
    """Characters of n-grams seen before. As in datatrove, after a copy reading goes on behind it.
    """
    seen, characters, i = set(), 0, 0
    while i <= len(words) - n:
        ngram = "".join(words[i:i + n])
        if ngram in seen:
            characters += len(ngram)
            i += n
        else:
            seen.add(ngram)
            i += 1
    return characters
