"""Training of the classifiers: labelled examples, ordinal logistic regression, and a comparison of
the scores with held-out labels.

The loss is the sum over examples and thresholds of the logistic loss ("all-threshold", Rennie and
Srebro 2005, "Loss functions for preference levels") plus l2 / 2 * |w|^2. It is convex, and the
optimal thresholds are ordered. With two labels it is binary logistic regression.
"""

import dataclasses
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import scipy.optimize
import scipy.stats
import threadpoolctl
import xxhash
from apache_beam.io.filesystems import FileSystems
from scipy.special import expit

from data_beam.base import files
from data_beam.models.classifier import OrdinalModel
from data_beam.readers import streams
from maxlm.config.schema import ConfigError, suggestion

_MAX_ITERATIONS = 500
_RELATIVE_TOLERANCE = 1e-6  # of the gradient's norm to that at the start, where training stops


@dataclasses.dataclass(frozen=True)
class Examples:
    """Texts and their labels, [n] int64."""

    texts: list[str]
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.texts)

    def split(self, held_out: float, seed: int) -> tuple["Examples", "Examples"]:
        """Training examples, and a held-out share of the examples. A hash of the text decides, so
        equal texts are always in the same part."""
        is_held_out = np.array([
            xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"), seed=seed)
            < held_out * 2**64 for text in self.texts], bool)
        return self._where(~is_held_out), self._where(is_held_out)

    def _where(self, keep: np.ndarray) -> "Examples":
        return Examples([text for text, kept in zip(self.texts, keep, strict=True) if kept],
                        self.labels[keep])


def read_examples(path: str, text_field: str, label_field: str, highest: int) -> Examples:
    """Reads labelled examples from JSON lines (plain, gzip, zstd or bzip2) or Parquet, detected by
    content. Labels are whole numbers from 0 to `highest`.

    Raises ConfigError if the file does not exist or is damaged, or an example has no text, no label
    or an invalid label. The message names the line or row.
    """
    if not FileSystems.exists(path):
        raise ConfigError(f"--examples: {path} does not exist")
    texts, labels = [], []
    with files.open_raw(path) as handle:
        rows = _parquet if handle.read(4) == b"PAR1" else _json_lines
    for at, text, label in rows(path, text_field, label_field):
        if not isinstance(text, str) or not text.strip():
            raise ConfigError(f"--examples: {path}, {at}: {text_field} must be a string with a "
                              "visible character")
        if (isinstance(label, bool) or not isinstance(label, int | float)
                or label not in range(highest + 1)):
            raise ConfigError(f"--examples: {path}, {at}: {label_field} must be a whole number "
                              f"from 0 to {highest}, got {label!r}")
        texts.append(text)
        labels.append(int(label))
    if not texts:
        raise ConfigError(f"--examples: {path} contains no examples")
    return Examples(texts, np.array(labels, np.int64))


def _missing(path: str, at: str, field: str, names: list[str]) -> ConfigError:
    return ConfigError(f"--examples: {path}{at} has no {field!r}; {suggestion(field, names)}")


def _parquet(path: str, text_field: str, label_field: str) -> Iterator[tuple[str, Any, Any]]:
    try:
        parquet = pyarrow.parquet.ParquetFile(io.BytesIO(files.read_bytes(path)))
        for field in (text_field, label_field):
            if field not in parquet.schema_arrow.names:
                raise _missing(path, "", field, parquet.schema_arrow.names)
        number = 0
        for batch in parquet.iter_batches(256, columns=[text_field, label_field]):
            for row in batch.to_pylist():
                number += 1
                yield f"row {number}", row[text_field], row[label_field]
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--examples: {path} is a damaged Parquet file "
                          f"({' '.join(str(error).split())})") from None


def _json_lines(path: str, text_field: str, label_field: str) -> Iterator[tuple[str, Any, Any]]:
    try:
        data = b"".join(streams.chunks(path))
    except streams.DamagedFile as error:
        raise ConfigError(f"--examples: {path} is damaged ({error})") from None
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"--examples: {path}, line {number} is not JSON ({error})") from None
        if not isinstance(row, dict):
            raise ConfigError(f"--examples: {path}, line {number} is not a JSON object")
        for field in (text_field, label_field):
            if field not in row:
                raise _missing(path, f", line {number}", field, list(row))
        yield f"line {number}", row[text_field], row[label_field]


def train(x: Any, labels: np.ndarray, l2: float,
          progress: Callable[[int, float], None] = lambda iteration, loss: None) -> OrdinalModel:
    """The model with the lowest loss, found by a trust-region Newton method that starts from zero
    weights and uses no random numbers. Raises RuntimeError if it does not converge.

    `x` is a `scipy.sparse.csr_array` [examples, features], `labels` [examples] integers with at
    least two distinct values, `l2` the weight of the L2 penalty, above 0. `progress` is called with
    the number of each iteration and its loss.
    """
    lowest, highest = int(labels.min()), int(labels.max())
    # [examples, thresholds]: +1 if the label is above the threshold, otherwise -1.
    signs = np.where(labels[:, None] > np.arange(lowest, highest), 1.0, -1.0)
    # Weights of unused buckets stay 0; leaving them out shortens the vectors.
    features, used = x.shape[1], np.unique(x.indices)
    x = x[:, used]
    problem = _Problem(x, signs, l2)
    # The thresholds start at their optimum for zero weights, which follows from the label shares.
    above = np.clip((signs > 0).mean(0), 1e-3, 1 - 1e-3)
    start = np.concatenate([np.zeros(x.shape[1]), np.log((1 - above) / above)])
    tolerance = _RELATIVE_TOLERANCE * np.linalg.norm(problem.loss(start)[1])
    iteration = 0

    def report(intermediate_result: scipy.optimize.OptimizeResult) -> None:
        nonlocal iteration
        iteration += 1
        progress(iteration, float(intermediate_result.fun))

    # Quasi-Newton methods need hundreds of steps here, this method about ten. With one BLAS thread
    # the sums do not depend on the number of cores, and vector products are four times as fast
    # because the threads would mostly wait for each other.
    with threadpoolctl.threadpool_limits(1):
        found = scipy.optimize.minimize(
            problem.loss, start, jac=True, hessp=problem.curvature, method="trust-ncg",
            callback=report, options={"gtol": tolerance, "maxiter": _MAX_ITERATIONS,
                                    "initial_trust_radius": 10.0, "max_trust_radius": 1e6})
    if not found.success:
        raise RuntimeError(f"training stopped after {found.nit} iterations: {found.message}")
    weights = np.zeros(features, np.float32)
    weights[used] = found.x[:len(used)]
    return OrdinalModel(lowest, weights, found.x[len(used):])


class _Problem:
    """The loss, its gradient and its Hessian at the parameters: the weights, then the
    thresholds."""

    def __init__(self, x: Any, signs: np.ndarray, l2: float):
        self._x, self._signs, self._l2 = x, signs, l2
        self._transposed = x.T.tocsr()
        self._at: np.ndarray | None = None
        self._second = np.zeros(0)

    def _margins(self, parameters: np.ndarray) -> np.ndarray:
        weights, thresholds = np.split(parameters, [self._x.shape[1]])
        return self._signs * ((self._x @ weights)[:, None] - thresholds)

    def loss(self, parameters: np.ndarray) -> tuple[float, np.ndarray]:
        margins = self._margins(parameters)
        weights = parameters[:self._x.shape[1]]
        value = np.logaddexp(0, -margins).sum() + self._l2 / 2 * (weights @ weights)
        slopes = -self._signs * expit(-margins)
        return float(value), np.concatenate(
            [self._transposed @ slopes.sum(1) + self._l2 * weights, -slopes.sum(0)])

    def curvature(self, parameters: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """The product of the Hessian and a direction."""
        if self._at is None or not np.array_equal(parameters, self._at):
            margins = self._margins(parameters)
            self._at, self._second = parameters.copy(), expit(margins) * expit(-margins)
        weights, thresholds = np.split(direction, [self._x.shape[1]])
        change = self._second * ((self._x @ weights)[:, None] - thresholds)
        return np.concatenate(
            [self._transposed @ change.sum(1) + self._l2 * weights, -change.sum(0)])


def kappa(labels: np.ndarray, predicted: np.ndarray, number: int) -> float:
    """Quadratic weighted kappa (Cohen 1968) of [n] integers from 0 to number - 1, by scikit-learn;
    0 where both have one and the same label only, for which it is undefined."""
    from sklearn.metrics import cohen_kappa_score  # the import takes seconds

    if len({*labels.tolist(), *predicted.tolist()}) < 2:
        return 0.0
    return float(cohen_kappa_score(
        labels, predicted, labels=np.arange(number), weights="quadratic"))


def agreement(labels: np.ndarray, scores: np.ndarray, number: int, threshold: float
              ) -> dict[str, Any]:
    """Measures of how well scores agree with labels, rounded to 4 digits: [n] floats and [n]
    integers from 0 to number - 1. For precision, recall and F1 a text is positive from the
    threshold on, as a label or score."""
    from sklearn import metrics

    rounded = np.clip(np.rint(scores), 0, number - 1).astype(int)
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(
        labels >= threshold, scores >= threshold, average="binary",
        zero_division=0)  # pyright: ignore
    varied = len(set(labels.tolist())) > 1 and len(set(scores.tolist())) > 1
    spearman: Any = scipy.stats.spearmanr(scores, labels) if varied else (0.0, 1.0)
    measures = {
        "accuracy": metrics.accuracy_score(labels, rounded),
        "accuracy_of_the_commonest_label": np.bincount(labels).max() / len(labels),
        "mean_absolute_error": metrics.mean_absolute_error(labels, scores),
        "quadratic_weighted_kappa": kappa(labels, rounded, number),
        "spearman": spearman[0], "precision": precision, "recall": recall, "f1": f1,
    }
    return {"documents": len(labels), "threshold": threshold,
            **{name: round(float(value), 4) for name, value in measures.items()},
            "confusion": metrics.confusion_matrix(
                labels, rounded, labels=np.arange(number)).tolist()}
