"""An n-gram model with backoff as sorted arrays, and the log-probabilities of tokens under it."""

import dataclasses

import numpy as np

UNK, BOS, EOS = range(3)
SPECIAL = ("<unk>", "<s>", "</s>")


@dataclasses.dataclass(frozen=True)
class NgramModel:
    """A backoff model (Katz 1987): p(w | h) is that of the longest n-gram that ends a context and
    w, times the backoffs of the longer contexts.

    An n-gram is known by its rank among those of its order, sorted by (rank of its first n - 1
    tokens, id of its last token); a token is known by its id. What follows one context lies
    together: the n-grams of context c are those from `begins[c]` to `begins[c + 1]`.

    Attributes:
      vocabulary: names of V tokens by id; the first three are <unk>, <s>, </s>.
      begins: for orders 2, 3, ...: [number of the order below + 1] integers.
      words: for orders 2, 3, ...: [number] int32, the last tokens.
      log_probabilities: for orders 1, 2, ...: [number] float32, base 10.
      log_backoffs: for orders 1, 2, ... but the last: [number] float32, base 10.
    """

    vocabulary: tuple[str, ...]
    begins: tuple[np.ndarray, ...]
    words: tuple[np.ndarray, ...]
    log_probabilities: tuple[np.ndarray, ...]
    log_backoffs: tuple[np.ndarray, ...]

    @property
    def order(self) -> int:
        return len(self.log_probabilities)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of n-grams by order."""
        return tuple(map(len, self.log_probabilities))

    def find(self, order: int, context: np.ndarray, word: np.ndarray) -> np.ndarray:
        """Ranks of n-grams of an order (2 or more), -1 for those that are not in the model.

        Args:
          context: [n] integers, ranks of their first order - 1 tokens.
          word: [n] integers, ids of their last tokens.
        """
        words = self.words[order - 2]
        if not len(words):
            return np.full(len(context), -1)
        low = self.begins[order - 2][context].astype(np.int64)
        end = self.begins[order - 2][context + 1].astype(np.int64)
        # Binary search in all the ranges at once. Most contexts are followed by a few tokens only,
        # so this takes half the time of one search for whole keys (`searchsorted`).
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
        """Base-10 log-probability of each token after those before it in its sentence.

        Args:
          tokens: [T] int64 ids; each sentence is <s>, its tokens, </s>.

        Returns:
          [T] float64; 0 for <s>.
        """
        scores = self.log_probabilities[0][tokens].astype(np.float64)
        starts = tokens == BOS
        ranks = tokens  # of the (n - 1)-gram that ends at each place, -1 where there is none
        for n in range(2, self.order + 1):
            # No n-gram of order 2 and more ends with <s>, so none reaches into the sentence before.
            places = np.flatnonzero((ranks[:-1] >= 0) & ~starts[1:]) + 1
            context = ranks[places - 1]
            found = self.find(n, context, tokens[places])
            scores[places] += self.log_backoffs[n - 2][context]
            hits = places[found >= 0]
            scores[hits] = self.log_probabilities[n - 1][found[found >= 0]]
            ranks = np.full(len(tokens), -1)
            ranks[places] = found
        scores[starts] = 0.0
        return scores


def begins_of(contexts: np.ndarray, number: int) -> np.ndarray:
    """Where each context begins.

    Args:
      contexts: [n] integers, sorted, each below `number`.

    Returns:
      [number + 1] int32, or int64 where int32 is too small.
    """
    begins = np.zeros(number + 1, np.int64)
    np.cumsum(np.bincount(contexts, minlength=number), out=begins[1:])
    return begins.astype(np.int32) if len(contexts) < 2**31 else begins
