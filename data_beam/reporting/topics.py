"""Topics of a sample of documents, and how coherent they are.

Topics come from non-negative matrix factorisation (Lee and Seung 2001, multiplicative updates for
the squared error) of the tf-idf matrix of documents and words, begun from its singular vectors
(Boutsidis and Gallopoulos 2008, NNDSVDa): nothing is random.

Coherence is C_NPMI of Röder, Both and Hinneburg 2015 ("Exploring the Space of Topic Coherence
Measures", WSDM): the mean over all pairs of a topic's 10 top words of

    NPMI(a, b) = log((P(a, b) + e) / (P(a) P(b))) / -log(P(a, b) + e),   e = 1e-12

(Bouma 2009), where P is the share of sliding windows of 10 words that hold a word, or both. From -1
(never together) over 0 (independent) to 1 (always together). The windows are those of the sample;
a document shorter than a window is one window.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import threadpoolctl

from data_beam.reporting.words import may_name_a_topic, words

TOPICS = 8
TOP_WORDS = 10
WINDOW = 10
EPSILON = 1e-12
MIN_DOCUMENTS = 40
"""With fewer there is nothing to say of topics."""
_DOCUMENTS_A_TOPIC = 10
_MOST_COMMON = 0.9
"""Words of a larger share of documents tell nothing; idf makes others that are frequent light."""
_LEAST_DOCUMENTS = 3
_VOCABULARY = 3000
_ITERATIONS = 60


@dataclasses.dataclass(frozen=True)
class Topic:
    """One topic.

    Attributes:
      words: its top words, the weightiest first.
      share: of the documents, those in which it weighs most.
      coherence: C_NPMI.
    """

    words: tuple[str, ...]
    share: float
    coherence: float


# With one thread sums do not depend on the number of cores; more of them wait more than they work.
@threadpoolctl.threadpool_limits.wrap(limits=1)
def find_topics(texts: Sequence[str], language: str) -> list[Topic]:
    """Topics of texts of one language, the most frequent first; none of fewer than MIN_DOCUMENTS.

    Args:
      texts: in an order that is always the same.
      language: of them.
    """
    if len(texts) < MIN_DOCUMENTS:
        return []
    cut = [words(text, language) for text in texts]
    frequencies = Counter(word for document in cut for word in set(document))
    vocabulary = sorted(
        (word for word, count in frequencies.items() if may_name_a_topic(word, language)
         and _LEAST_DOCUMENTS <= count <= _MOST_COMMON * len(cut)),
        key=lambda word: (-frequencies[word], word))[:_VOCABULARY]
    if len(vocabulary) < 2 * TOP_WORDS:
        return []
    matrix = tf_idf(cut, vocabulary, frequencies)
    weights, loadings = factorise(matrix, max(2, min(TOPICS, len(cut) // _DOCUMENTS_A_TOPIC)))
    first = np.where(weights.max(1) > 0, weights.argmax(1), -1)
    # Rounded, so that words of equal weight keep their order whatever the last digits.
    tops = [[vocabulary[i] for i in np.lexsort((np.arange(len(vocabulary)), -np.round(row, 6)))
             if row[i] > 1e-6][:TOP_WORDS] for row in loadings]
    shares = [float((first == number).mean()) for number in range(len(tops))]
    scores = c_npmi([top for top in tops if len(top) > 1], cut)
    found = [Topic(tuple(top), share, score) for (top, share), score in zip(
        ((top, share) for top, share in zip(tops, shares, strict=True) if len(top) > 1),
        scores, strict=True)]
    return sorted(found, key=lambda topic: (-topic.share, topic.words))


def tf_idf(documents: Sequence[Sequence[str]], vocabulary: Sequence[str],
           frequencies: Counter[str]) -> Any:
    """(1 + log of the count in the document) x log(documents / documents with the word), each row
    of length 1. A scipy.sparse.csr_matrix, [documents, vocabulary] float64."""
    import scipy.sparse  # takes a third of a second, and only the report needs it

    index = {word: i for i, word in enumerate(vocabulary)}
    idf = np.array([math.log(len(documents) / frequencies[word]) for word in vocabulary])
    rows, columns, values = [], [], []
    for row, document in enumerate(documents):
        for word, count in Counter(word for word in document if word in index).items():
            rows.append(row)
            columns.append(index[word])
            values.append((1 + math.log(count)) * idf[index[word]])
    matrix = scipy.sparse.csr_matrix(
        (values, (rows, columns)), shape=(len(documents), len(vocabulary)), dtype=np.float64)
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(1))).ravel()
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return scipy.sparse.csr_matrix(scipy.sparse.diags(scale) @ matrix)


def factorise(matrix: Any, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Non-negative W [documents, rank] and H [rank, vocabulary], rows of H of length 1, with W H
    near the matrix, a scipy.sparse.csr_matrix."""
    documents, vocabulary = matrix.get_shape()
    gram = (matrix @ matrix.T).toarray()
    values, vectors = np.linalg.eigh(gram)
    left = np.zeros((documents, rank))
    right = np.zeros((rank, vocabulary))
    for number in range(rank):
        size = math.sqrt(max(values[-1 - number], 0.0))
        if size < 1e-9:
            break
        u = vectors[:, -1 - number]
        v = (matrix.T @ u) / size
        # A singular vector has both signs; the heavier side is kept.
        sides = [(np.maximum(s * u, 0), np.maximum(s * v, 0)) for s in (1.0, -1.0)]
        norms = [np.linalg.norm(a) * np.linalg.norm(b) for a, b in sides]
        side = int(norms[1] > norms[0])
        a, b = sides[side]
        left[:, number] = math.sqrt(size * norms[side]) * a / np.linalg.norm(a)
        right[number] = math.sqrt(size * norms[side]) * b / np.linalg.norm(b)
    mean = float(matrix.mean()) / 100
    left[left == 0] = mean
    right[right == 0] = mean
    for _ in range(_ITERATIONS):
        right *= (matrix.T @ left).T / np.maximum(left.T @ left @ right, EPSILON)
        left *= (matrix @ right.T) / np.maximum(left @ (right @ right.T), EPSILON)
    lengths = np.linalg.norm(right, axis=1)
    return left * lengths, right / np.maximum(lengths, EPSILON)[:, None]


def c_npmi(topics: Sequence[Sequence[str]], documents: Sequence[Sequence[str]]) -> list[float]:
    """Coherence of each topic.

    Args:
      topics: at least two words each.
      documents: the words of each, in order.
    """
    index = {word: i for i, word in enumerate(sorted({word for top in topics for word in top}))}
    together, windows = _window_counts(documents, index)
    single = np.diag(together) / max(1, windows)
    result = []
    for top in topics:
        total = 0.0
        places = [index[word] for word in top]
        pairs = [(a, b) for i, a in enumerate(places) for b in places[:i]]
        for a, b in pairs:
            joint = together[a, b] / max(1, windows) + EPSILON
            total += math.log(joint / (single[a] * single[b])) / -math.log(joint)
        result.append(total / len(pairs))
    return result


def _window_counts(documents: Sequence[Sequence[str]], index: dict[str, int]
                   ) -> tuple[np.ndarray, int]:
    """Windows that hold two words, by their numbers (the diagonal: one), and all windows."""
    together = np.zeros((len(index), len(index)))
    windows = 0
    for document in documents:
        if not document:
            continue
        count = max(1, len(document) - WINDOW + 1)
        windows += count
        places = [(place, index[word]) for place, word in enumerate(document) if word in index]
        here = sorted({word for _, word in places})
        column = {word: i for i, word in enumerate(here)}
        seen = np.zeros((count, len(here)), np.float32)
        for place, word in places:
            seen[max(0, place - WINDOW + 1):place + 1, column[word]] = 1
        together[np.ix_(here, here)] += seen.T @ seen
    return together, windows
