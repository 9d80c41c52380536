"""Ordinal logistic regression: a weight a feature, and a threshold between neighbouring labels.

    P(label > k | x) = sigmoid(w . x - threshold_k)
    score(x) = lowest label + sum over k of P(label > k | x), the expected label

`ordinal_training` trains it: a worker that only scores need not import an optimiser.
"""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class OrdinalModel:
    """A trained model.

    Attributes:
      lowest: the lowest label.
      weights: [features] float32.
      thresholds: [labels - 1] float64, one between each two neighbouring labels.
    """

    lowest: int
    weights: np.ndarray
    thresholds: np.ndarray

    def score(self, buckets: np.ndarray, values: np.ndarray) -> float:
        """The expected label of one text, from the lowest to the highest label.

        Args:
          buckets: [n] int64.
          values: [n] float32.
        """
        z = float(np.dot(self.weights[buckets].astype(np.float64), values))
        # sigmoid(t) = (1 + tanh(t / 2)) / 2, which cannot overflow
        return self.lowest + float((0.5 + 0.5 * np.tanh((z - self.thresholds) / 2)).sum())
