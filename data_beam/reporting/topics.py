"""Topics of a sample of documents, and how coherent they are.

Topics come from scikit-learn's non-negative matrix factorisation (Lee and Seung 2001) of the tf-idf
matrix of documents and words, started from its singular vectors (Boutsidis and Gallopoulos 2008,
NNDSVDa): the same texts give the same topics.

Coherence is C_NPMI of Röder, Both and Hinneburg 2015 ("Exploring the Space of Topic Coherence
Measures", WSDM): the mean over all pairs of a topic's 10 top words of

    NPMI(a, b) = log((P(a, b) + e) / (P(a) P(b))) / -log(P(a, b) + e),   e = 1e-12

(Bouma 2009), from -1 (never together) over 0 (independent) to 1 (always together). P is the share
of the sample's sliding windows of 10 words that contain a word, or both; a document shorter than a
window is one window.
"""

import dataclasses
import math
import re
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import threadpoolctl

from data_beam.base.characters import HAN
from data_beam.filters.segmentation import chinese_words
from data_beam.reporting.summary import Summary

TOPICS = 8
TOP_WORDS = 10
WINDOW = 10
EPSILON = 1e-12
MIN_DOCUMENTS = 40  # languages with fewer documents get no topics
UNSPACED = frozenset({"ja", "th", "lo", "km", "my", "bo", "dz"})  # no library here segments them
_CHINESE = frozenset({"zh", "wuu", "yue"})
_SAMPLE = 500
_LANGUAGES = 3
_SAMPLED_LANGUAGES = 8  # some may be programming languages, which have no topics
_DOCUMENTS_PER_TOPIC = 10
_MAX_SHARE = 0.9  # of documents, for a word; idf makes other frequent words light
_MIN_DOCUMENT_FREQUENCY = 3
_VOCABULARY = 3000
_ITERATIONS = 400
# Vowel signs and accents that are characters of their own, which \w does not match.
_COMBINING = "".join(chr(code) for code in range(0x300, 0x10000)
                     if unicodedata.category(chr(code)) in ("Mn", "Mc"))
_WORD = re.compile(rf"[^\W\d_](?:[^\W\d_]|[{_COMBINING}]|['’](?=[^\W\d_]))*")
_HAN_WORD = re.compile(f"[{HAN}]+")


@dataclasses.dataclass(frozen=True)
class Topic:
    """One topic."""

    words: tuple[str, ...]  # its top words, the one with the largest weight first
    share: float  # of the documents, those in which it has the largest weight
    coherence: float  # C_NPMI


def sampled_shares(manifest: Mapping[str, Any]) -> dict[str, float]:
    """Share of the documents of each language that topics are made from: about 500 documents of
    each of the most frequent languages."""
    counts: dict[str, int] = {}
    for entry in manifest["sources"].values():
        for language, count in entry["languages"].items():
            if language not in UNSPACED and language != "und":
                counts[language] = counts.get(language, 0) + count
    frequent = sorted((item for item in counts.items() if item[1] >= MIN_DOCUMENTS),
                      key=lambda item: (-item[1], item[0]))[:_SAMPLED_LANGUAGES]
    return {language: min(1.0, _SAMPLE / count) for language, count in frequent}


def topics_of(summary: Summary) -> dict[str, list[Topic]]:
    """Topics of the languages with the largest samples."""
    found = sorted(summary.topic_texts.items(), key=lambda item: (-len(item[1]), item[0]))
    return {language: find_topics([text for _, text in texts], language)
            for language, texts in found[:_LANGUAGES]}


def segment(text: str, language: str) -> list[str]:
    """The words of a text in lower case, without numbers and punctuation. Chinese is segmented by
    rjieba; other languages where their letters end, so not those of `UNSPACED`."""
    if language in _CHINESE:
        return [word for word in chinese_words(text) if _HAN_WORD.fullmatch(word)]
    return _WORD.findall(text.lower())


# With one thread sums do not depend on the number of cores, and small matrices are faster.
@threadpoolctl.threadpool_limits.wrap(limits=1)
def find_topics(texts: Sequence[str], language: str) -> list[Topic]:
    """Topics of texts of one language, the most frequent first; none of fewer than MIN_DOCUMENTS.
    The order of the texts must always be the same."""
    if len(texts) < MIN_DOCUMENTS:
        return []
    # Importing scikit-learn takes more than a second, and only the report needs it.
    from sklearn.decomposition import NMF
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.feature_extraction.text import TfidfVectorizer

    documents = [segment(text, language) for text in texts]
    shortest = 2 if language in _CHINESE else 3  # shorter words mean little alone
    vectorizer = TfidfVectorizer(
        analyzer=lambda document: [  # pyright: ignore
            word for word in document if len(word) >= shortest],
        min_df=_MIN_DOCUMENT_FREQUENCY, max_df=_MAX_SHARE, max_features=_VOCABULARY,
        sublinear_tf=True, smooth_idf=False)
    try:
        vectorizer.fit(documents)
    except ValueError:  # no word is left
        return []
    names = vectorizer.get_feature_names_out()
    if len(names) < 2 * TOP_WORDS:
        return []
    vectorizer.idf_ = vectorizer.idf_ - 1  # log(n / df): scikit-learn's + 1 lets "and" name topics
    number_of_topics: Any = max(2, min(TOPICS, len(texts) // _DOCUMENTS_PER_TOPIC))
    model = NMF(number_of_topics, init="nndsvda", max_iter=_ITERATIONS, random_state=0)
    with warnings.catch_warnings():
        # Topics of texts without subjects converge slowly; the user can do nothing about it.
        warnings.simplefilter("ignore", ConvergenceWarning)
        weights = model.fit_transform(vectorizer.transform(documents))
    strongest = np.where(weights.max(1) > 0, weights.argmax(1), -1)
    found = []
    for number, row in enumerate(model.components_):
        # Rounded, so that words of equal weight keep their order whatever the last digits.
        order = np.lexsort((np.arange(len(names)), -np.round(row, 6)))
        top = tuple(str(names[i]) for i in order[:TOP_WORDS] if row[i] > 1e-6)
        if len(top) > 1:
            found.append((top, float((strongest == number).mean())))
    scores = c_npmi([top for top, _ in found], documents)
    return sorted((Topic(top, share, score) for (top, share), score in zip(
        found, scores, strict=True)), key=lambda topic: (-topic.share, topic.words))


def c_npmi(topics: Sequence[Sequence[str]], documents: Sequence[Sequence[str]]) -> list[float]:
    """Coherence of each topic (at least two words) in documents, given by their words in order."""
    index = {word: i for i, word in enumerate(sorted({word for top in topics for word in top}))}
    together, windows = _count_windows(documents, index)
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


def _count_windows(documents: Sequence[Sequence[str]], index: dict[str, int]
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
