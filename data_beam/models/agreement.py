"""How well scores agree with labels, as scikit-learn measures it."""

from typing import Any

import numpy as np
import scipy.stats
from sklearn import metrics


def kappa(labels: np.ndarray, given: np.ndarray, number: int) -> float:
    """Quadratic weighted kappa (Cohen 1968); 0 where both always give the same label, for which it
    is undefined.

    Args:
      labels, given: [n] integers from 0 to number - 1.
      number: how many labels there are.
    """
    if len({*labels.tolist(), *given.tolist()}) < 2:
        return 0.0
    return float(metrics.cohen_kappa_score(
        labels, given, labels=np.arange(number), weights="quadratic"))


def agreement(labels: np.ndarray, scores: np.ndarray, number: int, threshold: float
              ) -> dict[str, Any]:
    """Measures of a held-out part, rounded to 4 digits.

    Args:
      labels: [n] integers from 0 to number - 1.
      scores: [n] floats in the same range.
      number: how many labels there are.
      threshold: precision, recall and F1 are of the texts with a label of at least this.
    """
    given = np.clip(np.rint(scores), 0, number - 1).astype(int)
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(
        labels >= threshold, scores >= threshold, average="binary", zero_division=0)
    varied = len(set(labels.tolist())) > 1 and len(set(scores.tolist())) > 1
    spearman: Any = scipy.stats.spearmanr(scores, labels) if varied else (0.0, 1.0)
    measures = {
        "accuracy": metrics.accuracy_score(labels, given),
        "accuracy_of_the_commonest_label": np.bincount(labels).max() / len(labels),
        "mean_absolute_error": metrics.mean_absolute_error(labels, scores),
        "quadratic_weighted_kappa": kappa(labels, given, number),
        "spearman": spearman[0], "precision": precision, "recall": recall, "f1": f1,
    }
    return {"documents": len(labels), "threshold": threshold,
            **{name: round(float(value), 4) for name, value in measures.items()},
            "confusion": metrics.confusion_matrix(
                labels, given, labels=np.arange(number)).tolist()}
