"""A backoff n-gram model, stored as sorted arrays, and the log-probabilities it assigns to
tokens."""

import dataclasses

import numpy as np

UNK, BOS, EOS = range(3)
SPECIAL = ("<unk>", "<s>", "</s>")


@dataclasses.dataclass(frozen=True)
class NgramModel:
    """A backoff model (Katz 1987): p(w | h) is the probability of the longest n-gram in the model
    that consists of the end of h and w, times the backoffs of the longer contexts.

    An n-gram is identified by its rank among the n-grams of its order, which are sorted by (rank of
    the first n - 1 tokens, id of the last token). A token is identified by its id. So the n-grams
    with context c are contiguous, from `begins[c]` to `begins[c + 1]`.
    """

    vocabulary: tuple[str, ...]  # names of V tokens by id; the first three are <unk>, <s>, </s>
    begins: tuple[np.ndarray, ...]  # for orders 2, 3, ...: [number of the order below + 1] integers
    words: tuple[np.ndarray, ...]  # for orders 2, 3, ...: [number] int32, the last tokens
    log_probabilities: tuple[np.ndarray, ...]  # for orders 1, 2, ...: [number] float32, base 10
    log_backoffs: tuple[np.ndarray, ...]  # of all orders but the last: [number] float32, base 10

    @property
    def order(self) -> int:
        return len(self.log_probabilities)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of n-grams by order."""
        return tuple(map(len, self.log_probabilities))

    def find(self, order: int, context: np.ndarray, word: np.ndarray) -> np.ndarray:
        """[n] ranks of n-grams of an order (2 or more), -1 for those that are not in the model,
        from [n] integers each: the rank of their first order - 1 tokens and the id of their last
        token."""
        words = self.words[order - 2]
        if not len(words):
            return np.full(len(context), -1)
        low = self.begins[order - 2][context].astype(np.int64)
        end = self.begins[order - 2][context + 1].astype(np.int64)
        # Binary search in all ranges at once. Most contexts have few continuations, so this takes
        # half the time of `searchsorted` over combined keys.
        high = end
        size = int((high - low).max(initial=0))
        last = len(words) - 1
        while size > 0:
            middle = (low + high) >> 1
            less = (words[np.minimum(middle, last)] < word) & (low < high)
            low, high = np.where(less, middle + 1, low), np.where(less, high, middle)
            size >>= 1
        return np.where((low < end) & (words[np.minimum(low, last)] == word), low, -1)

    def log10(self, tokens: np.ndarray) -> np.ndarray:
        """Base-10 log-probability of each token given the tokens before it in its sentence: [T]
        float64, 0 for <s>, from [T] int64 ids; each sentence is <s>, its tokens, </s>."""
        scores = self.log_probabilities[0][tokens].astype(np.float64)
        starts = tokens == BOS
        ranks = tokens  # of the (n - 1)-gram that ends at each position; -1 if not in the model
        for n in range(2, self.order + 1):
            # No n-gram of order 2 or more ends with <s>, so none crosses into the previous
            # sentence.
            positions = np.flatnonzero((ranks[:-1] >= 0) & ~starts[1:]) + 1
            context = ranks[positions - 1]
            found = self.find(n, context, tokens[positions])
            scores[positions] += self.log_backoffs[n - 2][context]
            hits = positions[found >= 0]
            scores[hits] = self.log_probabilities[n - 1][found[found >= 0]]
            ranks = np.full(len(tokens), -1)
            ranks[positions] = found
        scores[starts] = 0.0
        return scores


def begins_of(contexts: np.ndarray, number: int) -> np.ndarray:
    """Start of the n-grams of each context, and the end of the last: [number + 1] int32, or int64
    if int32 is too small, from [n] integers, sorted, each below `number`."""
    begins = np.zeros(number + 1, np.int64)
    np.cumsum(np.bincount(contexts, minlength=number), out=begins[1:])
    return begins.astype(np.int32) if len(contexts) < 2**31 else begins
