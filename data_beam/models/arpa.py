"""ARPA files: the text form of n-gram models that KenLM, SRILM and others exchange.

    \\data\\
    ngram 1=3
    ngram 2=2

    \\1-grams:
    -1.2\\tword\\t-0.3

A line is the base-10 logarithm of the probability, the tokens, and the logarithm of the backoff,
which may be left out where it is 0.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from data_beam.models.backoff_model import SPECIAL, NgramModel, begins_of

_HEADER = b"\\data\\"
_NO_PROBABILITY = -100.0
"""Of <unk> in a model that does not have it, as in KenLM."""


class ArpaError(ValueError):
    """The file is no ARPA file, or one that cannot be used; the message says where."""


def is_arpa(first: bytes) -> bool:
    """Whether a file that begins so is an ARPA file."""
    return _HEADER in first[:4096]


def read(lines: Iterable[bytes]) -> NgramModel:
    """A model from the lines of an ARPA file.

    Raises:
      ArpaError: not an ARPA file, cut short, a line that is no n-gram, an n-gram without its
        context or with an unknown token.
    """
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
                    raise ArpaError(f"the {order}-gram {text!r} is there without the {n}-gram it "
                                    "begins with")
            by_key = np.lexsort((ids[:, -1], context))
            context, ids, values = context[by_key], ids[by_key], values[by_key]
            if ((np.diff(context) == 0) & (np.diff(ids[:, -1]) == 0)).any():
                raise ArpaError(f"a {order}-gram is there twice")
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
    raise ArpaError("no \\end\\ after the last n-gram: the file was cut short")


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
                raise ArpaError(f"line {number} is no 'ngram {len(sizes) + 1}=COUNT'")
            sizes.append(int(match[2]))
    if not sizes:
        raise ArpaError("no \\data\\ with the numbers of n-grams")
    return sizes


def _section(lines: Iterator[tuple[int, bytes]], order: int, size: int,
             vocabulary: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Ids (for order 1: tokens) of the n-grams of an order, [n, order]; [n, 2] logarithms."""
    for number, line in lines:
        if line.strip():
            if line.strip() != f"\\{order}-grams:".encode():
                raise ArpaError(f"line {number}: \\{order}-grams: was expected")
            break
    by_name = {name.encode(): id for id, name in enumerate(vocabulary)}
    ids: list[Any] = []
    values = np.zeros((size, 2))
    for row in range(size):
        number, line = next(lines, (0, b""))
        parts = line.split()
        if len(parts) not in (order + 1, order + 2):
            raise ArpaError(f"line {number}: a {order}-gram with its logarithms was expected"
                            if line else "the file was cut short")
        try:
            values[row, 0] = float(parts[0])
            if len(parts) == order + 2:
                values[row, 1] = float(parts[-1])
            names = parts[1:order + 1]
            ids.append(names if order == 1 else [by_name[name] for name in names])
        except ValueError:
            raise ArpaError(f"line {number}: {parts[0][:40]!r} or {parts[-1][:40]!r} is no number"
                            ) from None
        except KeyError as error:
            raise ArpaError(f"line {number}: the token {error} is not among the 1-grams") from None
    dtype = object if order == 1 else np.int32
    return np.array(ids, dtype).reshape(size, order), values


def _with_special(tokens: np.ndarray, values: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    """The vocabulary with <unk>, <s> and </s> first, and the logarithms in its order."""
    names = [name.decode("utf-8", "replace") for name in tokens[:, 0]]
    if len(set(names)) < len(names):
        raise ArpaError("a 1-gram is there twice, or two are no different UTF-8")
    by_name = dict(zip(names, values, strict=True))
    for name in SPECIAL[1:]:
        if name not in by_name:
            raise ArpaError(f"there is no 1-gram {name}")
    if "<unk>" not in by_name:
        by_name["<unk>"] = by_name.pop("<UNK>", np.array([_NO_PROBABILITY, 0.0]))
    vocabulary = SPECIAL + tuple(sorted(by_name.keys() - set(SPECIAL)))
    return vocabulary, np.array([by_name[name] for name in vocabulary])


def write(model: NgramModel) -> Iterator[str]:
    """The lines of the ARPA file of a model, line ends included."""
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
