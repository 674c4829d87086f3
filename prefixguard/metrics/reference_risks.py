"""Risks that read nothing of what a run says, fitted on training runs: what a monitor's content has to add to.

The clock knows the number of the step. The size spline knows that, and how many bytes of text there were so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from prefixguard.errors import BundleError
from prefixguard.metrics.prefixes import Prefixes

Float = npt.NDArray[np.float64]
#: Step index at which hazards stop changing.
_LONGEST = 200
#: Share of the steps below each knot of the splines; what happens at a cap on steps happens to few of them.
_KNOTS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99)
#: Weight of the squares of the spline's coefficients, beside the mean log-loss.
_RIDGE = 1e-3
#: Steps that the spline is fitted on at most, equally spaced; more teach so few coefficients nothing.
_MOST = 100_000


def hazards(lengths: npt.NDArray[np.int64], failed: npt.NDArray[np.bool_], horizon: int) -> Float:
    """Log-odds by step index, (200, 3), of: imminent; the run ends within the horizon; the run fails.

    Shares of the runs still going at each step, smoothed by a normal kernel of one step and shrunk to the base rate.
    lengths, failed: of each training run, (n,).
    """
    t = np.arange(1, _LONGEST + 1)
    alive = lengths[:, None] >= t[None, :]
    ending = alive & (lengths[:, None] - t[None, :] <= horizon)
    events = np.stack([ending & failed[:, None], ending, alive & failed[:, None]])  # (3, n, L)
    counts = events.sum(axis=1).astype(np.float64)  # (3, L)
    at_risk = alive.sum(axis=0).astype(np.float64)  # (L,)
    kernel = np.exp(-0.5 * (t[:, None] - t[None, :]) ** 2)
    base = counts.sum(axis=1, keepdims=True) / max(at_risk.sum(), 1.0)
    share = (counts @ kernel + 5 * base) / (at_risk @ kernel + 5)
    share = np.clip(share, 1e-4, 1 - 1e-4)
    return np.asarray(np.log(share / (1 - share)).T, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class ReferenceRisks:
    """Both, fitted. Columns are of the imminent and of the outcome risk.

    clock: float64 (L, 2), log-odds at step 1..L; the last holds from then on.
    knots: float64 (2, K), of the logarithms of the steps and of the bytes so far, both plus one.
    weights: float64 (1 + 2 (K + 1), 2): constant, then slope and change of slope at each knot.
    """

    clock: Float
    knots: Float
    weights: Float

    @classmethod
    def fit(cls, prefixes: Prefixes, sizes: Sequence[npt.ArrayLike], horizon: int) -> ReferenceRisks:
        """prefixes: of the training runs, one or more. sizes: bytes of text of each step, (T,) a run."""
        lengths = np.bincount(prefixes.run, minlength=len(prefixes.failed))
        levels = hazards(lengths, prefixes.failed, horizon)[: max(int(lengths.max(initial=1)), 1)]
        every = max(1, -(-len(prefixes) // _MOST))
        logs = _logs(prefixes.step, sizes)[:, ::every]
        knots = np.quantile(logs, _KNOTS, axis=1).T
        x = _hinges(logs, knots)
        labels = prefixes.imminent_labels(horizon), prefixes.outcome_labels
        weights = np.stack([_logistic(x, label[::every].astype(np.float64)) for label in labels], axis=1)
        return cls(levels[:, [0, 2]], knots, weights)

    def by_step(self, step: npt.NDArray[np.int64]) -> Float:
        """What the clock says at steps, (N,) from 1: risks, (N, 2)."""
        return _risk(self.clock[np.minimum(step, len(self.clock)) - 1])

    def by_size(self, step: npt.NDArray[np.int64], sizes: Sequence[npt.ArrayLike]) -> Float:
        """What the size spline says at all steps of runs, (N,): risks, (N, 2). sizes: as at `fit`."""
        return _risk(_hinges(_logs(step, sizes), self.knots) @ self.weights)

    def as_json(self) -> dict[str, Any]:
        """Lists of numbers to six places, as a bundle's manifest carries them (key `reference_risks`)."""
        return {name: np.round(getattr(self, name), 6).tolist() for name in self.__slots__}

    @classmethod
    def from_json(cls, value: Any, where: str) -> ReferenceRisks | None:
        """What `as_json` gave; None where there is nothing. Raises BundleError, naming `where`, for anything else."""
        if value is None:
            return None
        try:
            parts = [np.array(value[name], dtype=np.float64) for name in cls.__slots__]
        except (TypeError, KeyError, ValueError, OverflowError) as exc:
            raise BundleError(
                f"{where}: its reference risks cannot be read ({exc!r}). Train the monitor again."
            ) from exc
        clock, knots, weights = parts
        k = knots.shape[-1] if knots.ndim else 0
        shapes = clock.ndim == 2 and len(clock) and clock.shape[1] == 2 and knots.shape == (2, k)
        if not shapes or weights.shape != (3 + 2 * k, 2) or not all(np.isfinite(part).all() for part in parts):
            raise BundleError(f"{where}: its reference risks have another shape or no number. Train the monitor again.")
        return cls(clock, knots, weights)


def _logs(step: npt.NDArray[np.int64], sizes: Sequence[npt.ArrayLike]) -> Float:
    """Logarithms of steps and of bytes so far, (2, N)."""
    so_far = [np.cumsum(np.asarray(size, dtype=np.float64)) for size in sizes]
    logs: Float = np.log1p(np.stack((step.astype(np.float64), np.concatenate([np.zeros(0), *so_far]))))
    return logs


def _hinges(logs: Float, knots: Float) -> Float:
    """(2, N) and (2, K) -> a piecewise-linear basis, (N, 3 + 2 K)."""
    bent = [np.maximum(one - knot, 0.0) for one, of_one in zip(logs, knots, strict=True) for knot in of_one]
    return np.stack((np.ones(logs.shape[1]), *logs, *bent), axis=1)


def _risk(logits: Float) -> Float:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(logits, -500.0, 500.0))), dtype=np.float64)


def _logistic(x: Float, y: Float) -> Float:
    """Coefficients, (d,), of least mean log-loss plus ridge, by Newton's method; a step that overshoots is halved."""
    n, d = x.shape

    def loss(w: Float) -> float:
        z = x @ w
        return float((np.logaddexp(0.0, z) - y * z).mean() + 0.5 * _RIDGE * w @ w)

    w = np.zeros(d)
    for _ in range(50):
        p = _risk(x @ w)
        slope = x.T @ (p - y) / n + _RIDGE * w
        step = np.linalg.solve((x.T * (p * (1 - p))) @ x / n + _RIDGE * np.eye(d), slope)
        before = loss(w)
        while loss(w - step) > before and np.abs(step).max() > 1e-9:
            step = step / 2
        w = w - step
        if np.abs(step).max() < 1e-7:
            break
    return w
