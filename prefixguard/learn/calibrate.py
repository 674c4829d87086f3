"""From logits to probabilities and thresholds, on runs that nothing was trained on."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from prefixguard.bundle import Platt

_FLAT = 1e-3  # slope given to a map whose data say that higher logits mean less risk: (nearly) the base rate for all


def fit_platt(logits: NDArray[np.float64], target: NDArray[np.float64]) -> Platt:
    """Maximum-likelihood p = sigmoid(a * logit + b) with Platt's smoothed targets, by Newton steps.

    logits, target: float64 (n,), one a step. A slope that would not be positive becomes nearly flat.
    Source: Platt 1999; Lin, Lin and Weng 2007.

    >>> fit_platt(np.array([-2.0, -1.0, 1.0, 2.0] * 50), np.array([0.0, 0.0, 1.0, 1.0] * 50)).a > 1
    True
    """
    positive, n = float(target.sum()), len(target)
    high, low = (positive + 1) / (positive + 2), 1 / (n - positive + 2)
    t = np.where(target > 0.5, high, low)
    base = math.log((positive + 1) / (n - positive + 1))
    theta = np.array([0.0, base])
    x = np.stack([logits, np.ones(n)])
    ridge = 1e-9 * np.eye(2)

    def cost(w: NDArray[np.float64]) -> float:
        z = w @ x
        return float((np.logaddexp(0, z) - t * z).sum())

    value = cost(theta)
    for _ in range(100):
        p = 1 / (1 + np.exp(-np.clip(theta @ x, -500, 500)))
        gradient = x @ (p - t)
        hessian = (x * (p * (1 - p))) @ x.T + ridge
        step = np.linalg.solve(hessian, gradient)
        scale = 1.0
        while scale > 1e-8 and cost(theta - scale * step) > value:
            scale /= 2
        theta = theta - scale * step
        new = cost(theta)
        if value - new < 1e-10 * max(1.0, abs(value)):
            break
        value = new
    a, b = theta.tolist()
    return Platt(a, b) if a > _FLAT else Platt(_FLAT, base)
