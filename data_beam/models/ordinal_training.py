"""Training of ordinal logistic regression (`ordinal`).

The loss is the sum over examples and thresholds of the logistic loss ("all-threshold", Rennie and
Srebro 2005, "Loss functions for preference levels") plus l2 / 2 * |w|^2. It is convex, and its best
thresholds are ordered. With two labels it is that of logistic regression.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize
import threadpoolctl
from scipy.special import expit

from data_beam.models.ordinal import OrdinalModel

_MAX_ITERATIONS = 500
_RELATIVE_TOLERANCE = 1e-6
"""Of the gradient, by its length at the start."""


def train(x: Any, labels: np.ndarray, l2: float,
          progress: Callable[[int, float], None] = lambda iteration, loss: None) -> OrdinalModel:
    """The model with the least loss, by Newton's method with a trust region from zero: no random
    numbers.

    Args:
      x: [examples, features], a `scipy.sparse.csr_array`.
      labels: [examples] integers, two or more different ones.
      l2: weight of the penalty, above 0.
      progress: told the number of each iteration and the loss.

    Raises:
      RuntimeError: it did not converge.
    """
    lowest, highest = int(labels.min()), int(labels.max())
    # [examples, thresholds]: +1 where the label is above, -1 where it is not.
    signs = np.where(labels[:, None] > np.arange(lowest, highest), 1.0, -1.0)
    # Weights of buckets without an example stay 0; vectors get shorter without them.
    features, used = x.shape[1], np.unique(x.indices)
    x = x[:, used]
    problem = _Problem(x, signs, l2)
    # Thresholds begin where they would be without any feature, which shares of labels decide.
    above = np.clip((signs > 0).mean(0), 1e-3, 1 - 1e-3)
    start = np.concatenate([np.zeros(x.shape[1]), np.log((1 - above) / above)])
    tolerance = _RELATIVE_TOLERANCE * np.linalg.norm(problem.loss(start)[1])
    iteration = 0

    def told(intermediate_result: scipy.optimize.OptimizeResult) -> None:
        nonlocal iteration
        iteration += 1
        progress(iteration, float(intermediate_result.fun))

    # Quasi-Newton methods take hundreds of steps of 2**18 numbers here, this one takes ten or so.
    # With one thread sums do not depend on the number of cores, and products of vectors are four
    # times as fast: threads of BLAS wait for each other longer than they work.
    with threadpoolctl.threadpool_limits(1):
        found = scipy.optimize.minimize(
            problem.loss, start, jac=True, hessp=problem.curvature, method="trust-ncg",
            callback=told, options={"gtol": tolerance, "maxiter": _MAX_ITERATIONS,
                                    "initial_trust_radius": 10.0, "max_trust_radius": 1e6})
    if not found.success:
        raise RuntimeError(f"training stopped after {found.nit} iterations: {found.message}")
    weights = np.zeros(features, np.float32)
    weights[used] = found.x[:len(used)]
    return OrdinalModel(lowest, weights, found.x[len(used):])


class _Problem:
    """The loss, its gradient and its second derivatives; parameters are weights, then thresholds.
    """

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
        """The second derivatives times a direction."""
        if self._at is None or not np.array_equal(parameters, self._at):
            margins = self._margins(parameters)
            self._at, self._second = parameters.copy(), expit(margins) * expit(-margins)
        weights, thresholds = np.split(direction, [self._x.shape[1]])
        change = self._second * ((self._x @ weights)[:, None] - thresholds)
        return np.concatenate(
            [self._transposed @ change.sum(1) + self._l2 * weights, -change.sum(0)])
