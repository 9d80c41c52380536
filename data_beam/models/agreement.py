"""How well scores agree with labels."""

from typing import Any

import numpy as np
import scipy.stats


def kappa(labels: np.ndarray, given: np.ndarray, number: int) -> float:
    """Quadratic weighted kappa (Cohen 1968): 1 minus the mean squared difference over that of
    independent raters with the same shares; 0 where both always say the same.

    Args:
      labels, given: [n] integers from 0 to number - 1.
      number: how many labels there are.
    """
    weights = np.square(np.subtract.outer(np.arange(number), np.arange(number)))
    observed = confusion(labels, given, number)
    expected = np.outer(observed.sum(1), observed.sum(0)) / max(1, len(labels))
    chance = float((weights * expected).sum())
    return 1 - float((weights * observed).sum()) / chance if chance else 0.0


def confusion(labels: np.ndarray, given: np.ndarray, number: int) -> np.ndarray:
    """[label, given] counts."""
    return np.bincount(labels * number + given, minlength=number**2).reshape(number, number)


def agreement(labels: np.ndarray, scores: np.ndarray, number: int, threshold: float
              ) -> dict[str, Any]:
    """Measures of a held-out part, rounded to 4 digits.

    Args:
      labels: [n] integers from 0 to number - 1.
      scores: [n] floats in the same range.
      number: how many labels there are.
      threshold: precision, recall and F1 are those of telling texts with a label of at least this.
    """
    given = np.clip(np.rint(scores), 0, number - 1).astype(int)
    told, true = scores >= threshold, labels >= threshold
    hits = int((told & true).sum())
    precision = hits / max(1, int(told.sum()))
    recall = hits / max(1, int(true.sum()))
    varied = len(set(labels.tolist())) > 1 and len(set(scores.tolist())) > 1
    spearman: Any = scipy.stats.spearmanr(scores, labels) if varied else (0.0, 1.0)
    measures = {
        "accuracy": float((given == labels).mean()),
        "accuracy_of_the_commonest_label": float(np.bincount(labels).max() / len(labels)),
        "mean_absolute_error": float(np.abs(scores - labels).mean()),
        "quadratic_weighted_kappa": kappa(labels, given, number),
        "spearman": float(spearman[0]),
        "precision": precision, "recall": recall,
        "f1": 2 * precision * recall / (precision + recall) if hits else 0.0,
    }
    return {"documents": len(labels), "threshold": threshold,
            **{name: round(value, 4) for name, value in measures.items()},
            "confusion": confusion(labels, given, number).tolist()}
