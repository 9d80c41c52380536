"""Text classifiers trained by `data_beam.train_quality`, and the filter that drops documents with a
low quality score.

A classifier is an ordinal logistic regression: a weight per feature, and a threshold between each
two neighbouring labels.

    P(label > k | x) = sigmoid(w . x - threshold_k)
    score(x) = lowest label + sum over k of P(label > k | x), the expected label

Training is in `classifier_training`, so a worker that only scores does not import an optimiser."""

import dataclasses

import numpy as np

from data_beam.base.characters import fold_width
from data_beam.base.filter import Filter
from data_beam.base.records import Document, Dropped
from data_beam.config import QualityConfig
from data_beam.models.folder import Folder, description_path
from data_beam.models.hashed_ngrams import HashedNgrams
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
