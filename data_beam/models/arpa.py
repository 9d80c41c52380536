"""ARPA files: the text form of n-gram models that KenLM, SRILM and others exchange.

    \\data\\
    ngram 1=3
    ngram 2=2

    \\1-grams:
    -1.2\\tword\\t-0.3

A line has the base-10 logarithm of the probability, the tokens, and the logarithm of the backoff,
which may be omitted if it is 0.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from data_beam.models.backoff_model import SPECIAL, NgramModel, begins_of

_HEADER = b"\\data\\"
_NO_PROBABILITY = -100.0  # log-probability of <unk> in a model without <unk>, as in KenLM


class ArpaError(ValueError):
    """The file is not a valid ARPA file; the message names the line."""


def is_arpa(first: bytes) -> bool:
    """Whether the first bytes of a file are those of an ARPA file."""
    return _HEADER in first[:4096]


def read(lines: Iterable[bytes]) -> NgramModel:
    """A model from the lines of an ARPA file. Raises ArpaError for another or a truncated file, a
    line that is not an n-gram, and an n-gram without its context or with an unknown token."""
    numbered = enumerate(lines, 1)
    sizes = _sizes(numbered)
    vocabulary = tuple[str, ...]()
    begins, words, probabilities, backoffs = [], [], [], []
    for order, size in enumerate(sizes, 1):
        ids, values = _section(numbered, order, size, vocabulary)
        if order == 1:
            vocabulary, values = _with_special(ids, values)
        else:
            context = ids[:, 0].astype(np.int64)
            model = NgramModel(vocabulary, tuple(begins), tuple(words), tuple(probabilities),
                               tuple(backoffs))
            for n in range(2, order):
                context = model.find(n, context, ids[:, n - 1])
                if (context < 0).any():
                    row = int(np.flatnonzero(context < 0)[0])
                    text = " ".join(vocabulary[id] for id in ids[row])
                    raise ArpaError(f"the {order}-gram {text!r} has no entry for its first {n} "
                                    "tokens")
            by_key = np.lexsort((ids[:, -1], context))
            context, ids, values = context[by_key], ids[by_key], values[by_key]
            if ((np.diff(context) == 0) & (np.diff(ids[:, -1]) == 0)).any():
                raise ArpaError(f"a {order}-gram is listed twice")
            begins.append(begins_of(context, len(probabilities[-1])))
            words.append(ids[:, -1].astype(np.int32))
        probabilities.append(values[:, 0].astype(np.float32))
        if order < len(sizes):
            backoffs.append(values[:, 1].astype(np.float32))
    for _, line in numbered:
        if line.strip() == b"\\end\\":
            return NgramModel(vocabulary, tuple(begins), tuple(words), tuple(probabilities),
                              tuple(backoffs))
        if line.strip():
            break
    raise ArpaError("no \\end\\ after the last n-gram: the file is truncated")


def _sizes(lines: Iterator[tuple[int, bytes]]) -> list[int]:
    sizes: list[int] = []
    inside = False
    for number, line in lines:
        line = line.strip()
        if line == _HEADER:
            inside = True
        elif inside and not line:
            break
        elif inside:
            match = re.fullmatch(rb"ngram (\d+)\s*=\s*(\d+)", line)
            if not match or int(match[1]) != len(sizes) + 1:
                raise ArpaError(f"line {number} is not 'ngram {len(sizes) + 1}=COUNT'")
            sizes.append(int(match[2]))
    if not sizes:
        raise ArpaError("no \\data\\ section with the numbers of n-grams")
    return sizes


def _section(lines: Iterator[tuple[int, bytes]], order: int, size: int,
             vocabulary: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """N-grams of an order, [n, order] ids (order 1: tokens), and their logarithms, [n, 2]."""
    for number, line in lines:
        if line.strip():
            if line.strip() != f"\\{order}-grams:".encode():
                raise ArpaError(f"line {number}: expected \\{order}-grams:")
            break
    by_name = {name.encode(): id for id, name in enumerate(vocabulary)}
    ids: list[Any] = []
    values = np.zeros((size, 2))
    for row in range(size):
        number, line = next(lines, (0, b""))
        parts = line.split()
        if len(parts) not in (order + 1, order + 2):
            raise ArpaError(f"line {number}: expected a {order}-gram with its logarithms"
                            if line else "the file is truncated")
        try:
            values[row, 0] = float(parts[0])
            if len(parts) == order + 2:
                values[row, 1] = float(parts[-1])
            names = parts[1:order + 1]
            ids.append(names if order == 1 else [by_name[name] for name in names])
        except ValueError:
            raise ArpaError(f"line {number}: {parts[0][:40]!r} or {parts[-1][:40]!r} is not a "
                            "number") from None
        except KeyError as error:
            raise ArpaError(f"line {number}: the token {error} is not among the 1-grams") from None
    dtype = object if order == 1 else np.int32
    return np.array(ids, dtype).reshape(size, order), values


def _with_special(tokens: np.ndarray, values: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    """The vocabulary, which starts with <unk>, <s>, </s>, and the logarithms in the same order."""
    names = [name.decode("utf-8", "replace") for name in tokens[:, 0]]
    if len(set(names)) < len(names):
        raise ArpaError("a 1-gram is listed twice, or two differ only in invalid UTF-8")
    by_name = dict(zip(names, values, strict=True))
    for name in SPECIAL[1:]:
        if name not in by_name:
            raise ArpaError(f"the 1-gram {name} is missing")
    if "<unk>" not in by_name:
        by_name["<unk>"] = by_name.pop("<UNK>", np.array([_NO_PROBABILITY, 0.0]))
    vocabulary = SPECIAL + tuple(sorted(by_name.keys() - set(SPECIAL)))
    return vocabulary, np.array([by_name[name] for name in vocabulary])


def write(model: NgramModel) -> Iterator[str]:
    """The lines of the ARPA file of a model, including line ends."""
    yield "\\data\\\n"
    for order, size in enumerate(model.sizes, 1):
        yield f"ngram {order}={size}\n"
    names = list(model.vocabulary)
    for order in range(1, model.order + 1):
        if order > 1:
            below = names
            contexts = np.repeat(np.arange(len(below)), np.diff(model.begins[order - 2]))
            names = [f"{below[context]} {model.vocabulary[word]}" for context, word in zip(
                contexts.tolist(), model.words[order - 2].tolist(), strict=True)]
        yield f"\n\\{order}-grams:\n"
        probabilities = model.log_probabilities[order - 1].tolist()
        if order == model.order:
            for probability, name in zip(probabilities, names, strict=True):
                yield f"{probability:.7g}\t{name}\n"
        else:
            for probability, name, backoff in zip(
                    probabilities, names, model.log_backoffs[order - 1].tolist(), strict=True):
                yield f"{probability:.7g}\t{name}\t{backoff:.7g}\n"
    yield "\n\\end\\\n"
