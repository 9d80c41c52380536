"""Text classifiers trained by `data_beam.train_quality`, and the filter that drops documents with a
low quality score.

A classifier is an ordinal logistic regression: a weight per feature, and a threshold between each
two neighbouring labels.

    P(label > k | x) = sigmoid(w . x - threshold_k)
    score(x) = lowest label + sum over k of P(label > k | x), the expected label

Training is in `classifier_training`, so a worker that only scores does not import an optimiser."""

import dataclasses
import functools
import re

import numpy as np
import xxhash

from data_beam.base.characters import HAN, HIRAGANA_KATAKANA, fold_width
from data_beam.base.filter import Filter
from data_beam.base.hashing import MIX_MULTIPLIERS
from data_beam.base.records import Document, Dropped
from data_beam.config import QualityConfig
from data_beam.models.folder import Folder, description_path
from maxlm.config.schema import ConfigError


@dataclasses.dataclass(frozen=True)
class Task:
    """What a classifier is for."""

    name: str
    highest: int  # labels are 0 to this
    threshold: float  # default score threshold of the report
    above: str  # name of the texts with a score of at least the threshold

    @property
    def kind(self) -> str:
        return f"maxlm {self.name} model 1"


TASKS = {task.name: task for task in (Task("quality", 5, 2.0, "kept"),
                                      Task("safety", 1, 0.5, "unsafe"))}
_UNSPACED = HIRAGANA_KATAKANA + HAN
_TOKENS = re.compile(f"[{_UNSPACED}]|[^\\W{_UNSPACED}]+|[^\\w\\s]|\\n")
_MULTIPLIER, _SECOND_MULTIPLIER = map(np.uint64, MIX_MULTIPLIERS)
_SHAPE = {"lowest": int, "features": int, "ngrams": int}


@dataclasses.dataclass(frozen=True)
class OrdinalModel:
    """A trained ordinal logistic regression."""

    lowest: int  # the lowest label
    weights: np.ndarray  # [features] float32
    thresholds: np.ndarray  # [labels - 1] float64, one between each two neighbouring labels

    def score(self, buckets: np.ndarray, values: np.ndarray) -> float:
        """The expected label of one text, from the lowest to the highest label, given its buckets
        ([n] int64) and their values ([n] float32)."""
        z = float(np.dot(self.weights[buckets].astype(np.float64), values))
        # sigmoid(t) = (1 + tanh(t / 2)) / 2; tanh does not overflow
        return self.lowest + float((0.5 + 0.5 * np.tanh((z - self.thresholds) / 2)).sum())


@functools.lru_cache(2**18)
def _hash(token: str) -> int:
    return xxhash.xxh3_64_intdigest(token.encode("utf-8", "surrogatepass"))


class HashedNgrams:
    """Text of any language -> buckets and their values: hashed n-grams of up to `longest` tokens.
    The number of buckets, `features`, is a power of two.

    A token is a Han or Kana character, a run of other letters and digits (in lower case), any other
    visible character, or a line feed (frequent in menus). So n-grams are of characters in Chinese
    and of words in languages that use spaces. This is the hashing trick of Weinberger et al. 2009
    (arXiv 0902.2206) without its sign, which does not improve a linear model with 2**18 buckets.
    """

    def __init__(self, features: int, longest: int):
        bits = features.bit_length() - 1
        assert features == 1 << bits and 1 <= bits <= 32 and longest >= 1
        self._shift, self._longest = np.uint64(64 - bits), longest

    def __call__(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """Sorted buckets, [n] int64, and 1 + log(count) in each, scaled to length 1, [n]
        float32."""
        tokens = np.array([_hash(token) for token in _TOKENS.findall(text.lower())], np.uint64)
        grams, parts = tokens, [_mixed(tokens)]
        for n in range(2, self._longest + 1):
            # Hashes of the n-grams that begin at each token, from the (n - 1)-grams. Order matters.
            grams = grams[:-1] * _MULTIPLIER + tokens[n - 1:]
            parts.append(_mixed(grams))
        buckets, counts = np.unique(np.concatenate(parts) >> self._shift, return_counts=True)
        values = 1 + np.log(counts, dtype=np.float32)
        norm = np.sqrt(np.square(values).sum())
        return buckets.astype(np.int64), values / norm if len(values) else values


def _mixed(hashes: np.ndarray) -> np.ndarray:
    """Hashes whose high bits depend on all input bits: half of `mix64`. Trained models depend on
    it."""
    return (hashes ^ (hashes >> np.uint64(31))) * _SECOND_MULTIPLIER


class TextClassifier:
    """A trained classifier for a task of `TASKS`, loaded from its folder. Raises ConfigError, which
    names the setting `field`, if there is no model, a damaged model, or a model for another
    task."""

    def __init__(self, path: str, task: str, field: str):
        folder = Folder(path, TASKS[task].kind, field, _SHAPE)
        description, arrays = folder.description, folder.arrays()
        features = description["features"]
        try:
            self._model = OrdinalModel(description["lowest"], arrays["weights"],
                                       arrays["thresholds"])
        except KeyError as error:
            raise ConfigError(f"{field}: {path} has no array {error}; train it again") from None
        if self._model.weights.shape != (features,):
            raise ConfigError(f"{field}: {path} has {self._model.weights.shape} weights for "
                              f"{features} features; train it again")
        self._ngrams = HashedNgrams(features, description["ngrams"])

    def __call__(self, text: str) -> float:
        """The score of a text, between the lowest and the highest label of the examples."""
        return self._model.score(*self._ngrams(text))


class QualityFilter(Filter):
    """Scores a document from 0 to 5 and drops it under a threshold: `quality too low`."""

    name = "quality"
    section = "quality"
    libraries = ("xxhash",)

    @classmethod
    def is_enabled(cls, config: QualityConfig) -> bool:
        return bool(config.model)

    @classmethod
    def files(cls, config: QualityConfig) -> list[tuple[str, str]]:
        return [("config.quality.model", description_path(config.model))]

    def __init__(self, config: QualityConfig):
        super().__init__(config)
        self._classify = TextClassifier(config.model, "quality", "config.quality.model")

    def __call__(self, document: Document) -> Document | Dropped:
        if document.is_code:
            return document
        score = self._classify(fold_width(document.text))
        if score < self._config.min_score:
            return Dropped(document.origin, self.name, "quality too low",
                           f"{score:.2f}, less than {self._config.min_score:g}")
        return document.with_scores(quality=score)
