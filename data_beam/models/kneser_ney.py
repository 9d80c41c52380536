"""Interpolated modified Kneser-Ney estimates of an n-gram model, in NumPy.

The definitions are those of Chen and Goodman 1998 (TR-10-98, section 3 and equation 26) in the form
of Heafield, Pouzyrevsky, Clark and Koehn 2013 ("Scalable Modified Kneser-Ney Language Model
Estimation"), as implemented by KenLM's `lmplz`. The tests compare with the output of `lmplz`.

Token ids: 0 is <unk>, 1 is <s>, 2 is </s>. An n-gram is identified by its rank among the n-grams of
its order, which are sorted by (rank of the first n - 1 tokens, last token). So each order is one
sorted array of keys, and a sum over the extensions of a context, or over the left extensions of an
n-gram, is one `bincount`.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from data_beam.models.backoff_model import BOS, EOS, UNK, NgramModel, begins_of

FALLBACK_DISCOUNTS = (0.5, 1.0, 1.5)  # of `lmplz --discount_fallback`, without a valid closed form


@dataclasses.dataclass(frozen=True)
class Estimate:
    """An n-gram model and its discounts."""

    model: NgramModel
    discounts: tuple[tuple[float, float, float], ...]
    fallback_orders: tuple[int, ...]


@dataclasses.dataclass
class _Order:
    """The n-grams of one order, sorted by (prefix, word)."""

    prefix: np.ndarray  # [n] int64, rank of the first n - 1 tokens in the order below
    suffix: np.ndarray  # [n] int64, rank of the last n - 1 tokens in the order below
    word: np.ndarray  # [n] int64, the last token
    count: np.ndarray  # [n] int64, occurrences in the text


def _count(tokens: np.ndarray, vocabulary: int, order: int,
           progress: Callable[[str], None]) -> list[_Order]:
    """The distinct n-grams within sentences, of orders 1 to `order`."""
    everything = np.arange(vocabulary, dtype=np.int64)
    empty = np.zeros(vocabulary, np.int64)
    orders = [_Order(empty, empty, everything, np.bincount(tokens, minlength=vocabulary))]
    ends = np.flatnonzero(tokens == EOS)
    lengths = np.diff(ends, prepend=-1)
    room = np.repeat(ends, lengths) - np.arange(len(tokens))  # following tokens of the sentence
    positions = np.arange(len(tokens))
    ranks = tokens.astype(np.int64)  # of the n-gram that begins at each position
    for n in range(2, order + 1):
        positions = positions[room[positions] >= n - 1]
        if not len(positions):
            none = np.zeros(0, np.int64)
            orders.append(_Order(none, none, none, none))
            continue
        keys = ranks[positions] * vocabulary + tokens[positions + n - 1]
        by_key = np.argsort(keys)
        keys = keys[by_key]
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        distinct = keys[first]
        suffix = ranks[positions[by_key[first]] + 1]
        orders.append(_Order(distinct // vocabulary, suffix, distinct % vocabulary,
                             np.diff(first, append=len(keys))))
        steps = np.zeros(len(keys), np.int64)
        steps[first] = 1
        ranks = np.full(len(tokens), -1, np.int64)
        ranks[positions[by_key]] = np.cumsum(steps) - 1
        progress(f"{len(distinct):,} {n}-grams")
    return orders


def _adjusted(orders: Sequence[_Order]) -> list[np.ndarray]:
    """Adjusted counts: occurrences for the highest order and for n-grams that begin with <s>,
    otherwise the number of left extensions."""
    adjusted = []
    begins = orders[0].word == BOS
    for n, grams in enumerate(orders):
        if n:
            begins = begins[grams.prefix]
        if n + 1 < len(orders):
            left = np.bincount(orders[n + 1].suffix, minlength=len(grams.word))
            adjusted.append(np.where(begins, grams.count, left))
        else:
            adjusted.append(grams.count.copy())
    adjusted[0][[UNK, BOS]] = 0  # <s> is never predicted; <unk> gets only leftover mass
    return adjusted


def discounts_of(counts: np.ndarray) -> tuple[float, float, float] | None:
    """Discounts of adjusted counts 1, 2 and 3+ (Chen and Goodman, equation 26). None if the closed
    form gives no valid ones: there is no n-gram with a count of 1, 2 or 3, or a discount is outside
    [0, count]."""
    n = np.bincount(np.minimum(counts, 5), minlength=6)[:5].astype(float)
    if not n[1:4].all():
        return None
    y = n[1] / (n[1] + 2 * n[2])
    found = tuple(float(j - (j + 1) * y * n[j + 1] / n[j]) for j in (1, 2, 3))
    if not all(0 <= discount <= j for j, discount in enumerate(found, 1)):
        return None
    return found[0], found[1], found[2]


def estimate(tokens: np.ndarray, vocabulary: Sequence[str], order: int, prune: Sequence[int],
             progress: Callable[[str], None] = lambda line: None) -> Estimate:
    """Estimates a model from sentences: [T] integers, each sentence is <s>, its tokens, </s>. The
    estimation needs about 180 bytes of memory per token.

    `vocabulary` has names by id, the three special ones first; `order` is the length of the longest
    n-grams, 1 or more. By order, n-grams that occur at most as often as `prune` says are left out
    of the model, as with `lmplz --prune`: not decreasing; 0 for order 1. `progress` is called with
    a line after each order.
    """
    assert len(prune) == order and prune[0] == 0 and sorted(prune) == list(prune)
    size = len(vocabulary)
    orders = _count(tokens, size, order, progress)
    adjusted = _adjusted(orders)
    discounts, fallback_orders = [], []
    probabilities, backoffs, kept = [], [], []
    below = np.full(1, 1 / (size - 1))  # uniform over all tokens except <s>
    for n, (grams, counts, limit) in enumerate(zip(orders, adjusted, prune, strict=True), 1):
        found = discounts_of(counts)
        if found is None:
            fallback_orders.append(n)
            found = FALLBACK_DISCOUNTS
        discounts.append(found)
        discount = np.array([0.0, *found])[np.minimum(counts, 3)]
        keep = np.ones(len(counts), bool) if n == 1 else grams.count > limit
        kept.append(keep)
        contexts = 1 if n == 1 else len(orders[n - 2].word)
        total = np.bincount(grams.prefix, counts, contexts)
        # Mass that a context leaves to the lower order: the discounts of its n-grams in the model
        # and the whole counts of its pruned n-grams.
        left = np.bincount(grams.prefix, np.where(keep, discount, counts), contexts)
        with np.errstate(invalid="ignore"):
            gamma = np.where(total > 0, left / total, 1.0)
        # Without any counts (an empty text) the distribution is uniform.
        share = np.divide(counts - discount, total[grams.prefix], out=np.zeros(len(counts)),
                          where=total[grams.prefix] > 0)
        below = share + gamma[grams.prefix] * below[grams.suffix]
        if n == 1:
            below[BOS] = 1.0  # <s> is given, never predicted
        probabilities.append(below)
        if n > 1:
            backoffs.append(gamma)
    return Estimate(_model(vocabulary, orders, probabilities, backoffs, kept),
                    tuple(discounts), tuple(fallback_orders))


def _model(vocabulary: Sequence[str], orders: Sequence[_Order],
           probabilities: Sequence[np.ndarray], backoffs: Sequence[np.ndarray],
           kept: Sequence[np.ndarray]) -> NgramModel:
    begins, words, log_probabilities, log_backoffs = [], [], [], []
    rank = np.zeros(1, np.int64)
    for n, grams in enumerate(orders):
        keep = kept[n]
        if n:
            begins.append(begins_of(rank[grams.prefix[keep]], len(log_probabilities[-1])))
            words.append(grams.word[keep].astype(np.int32))
        rank = np.cumsum(keep) - 1
        log = np.log10(np.minimum(probabilities[n][keep], 1.0))
        log_probabilities.append(log.astype(np.float32))
        if n < len(backoffs):
            log_backoffs.append(np.log10(backoffs[n][keep]).astype(np.float32))
    return NgramModel(tuple(vocabulary), tuple(begins), tuple(words), tuple(log_probabilities),
                      tuple(log_backoffs))
