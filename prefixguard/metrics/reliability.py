"""Is a risk of .3 followed by failure three times in ten? Brier score, ECE, reliability curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prefixguard.errors import ConfigError, DataError
from prefixguard.metrics.resampling import ratio

Float = npt.NDArray[np.float64]

BINS = 15


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """One point of the reliability curve.

    low, high: smallest and largest risk in the bin. mean_risk: their mean. rate: share of prefixes labelled 1.
    prefixes: how many prefixes the bin holds.
    """

    low: float
    high: float
    mean_risk: float
    rate: float
    prefixes: int


class Reliability:
    """Risks put into bins of equal mass once; errors for each set of weights.

    labels: (N,), 0 or 1. risks: float (N,), probabilities. bins: how many, 1 or more.
    units: int64 (N,), as in `Ranking`.
    Equal risks share a bin (the one of their middle rank), so the order of rows does not matter; with many ties fewer
    bins come out. Bins stay as they are under resampling.
    """

    def __init__(
        self, labels: npt.ArrayLike, risks: npt.ArrayLike, *, units: npt.ArrayLike | None = None, bins: int = BINS
    ) -> None:
        y = np.asarray(labels, dtype=np.float64)
        p = np.asarray(risks, dtype=np.float64)
        unit = np.arange(len(p), dtype=np.int64) if units is None else np.asarray(units, dtype=np.int64)
        if not y.shape == p.shape == unit.shape or p.ndim != 1:
            raise DataError(f"{y.shape} labels for {p.shape} risks: give one label a risk, in one dimension.")
        if np.isnan(p).any():
            raise DataError("a risk is NaN: leave prefixes that were not judged out.")
        if bins < 1:
            raise ConfigError(f"{bins} bins: use 1 or more.")
        n = len(p)
        _, tie, count = np.unique(p, return_inverse=True, return_counts=True)
        middle = np.cumsum(count) - (count + 1) / 2  # mean rank of a tie, from 0
        place = np.minimum((middle * bins / max(n, 1)).astype(np.int64), bins - 1)[tie]
        used, self._bin = np.unique(place, return_inverse=True)
        self._labels, self._risks = y, p
        n_units = int(unit.max(initial=-1)) + 1
        self._n_units = n_units
        # Everything asked later is linear in these sums by unit, so that 1,000 resamples are one matrix product.
        self._count = np.bincount(unit, minlength=n_units).astype(np.float64)  # (U,)
        self._squares = np.bincount(unit, weights=(p - y) ** 2, minlength=n_units)  # (U,)
        self._gap = np.zeros((n_units, len(used)))  # (U, B), sum of risk - label
        np.add.at(self._gap, (unit, self._bin), p - y)

    def brier(self, weights: npt.ArrayLike | None = None) -> Float:
        """Mean squared error of the risks. weights: float (..., units). Returns float (...,); NaN without prefixes."""
        w = self._weights(weights)
        return ratio(w @ self._squares, w @ self._count)

    def ece(self, weights: npt.ArrayLike | None = None) -> Float:
        """Expected calibration error: mean over bins, by mass, of |mean risk - share labelled 1|. Float (...,)."""
        w = self._weights(weights)
        return ratio(np.abs(w @ self._gap).sum(axis=-1), w @ self._count)

    def curve(self) -> list[ReliabilityBin]:
        """The reliability curve, lowest risks first."""
        bins = []
        for b in range(self._gap.shape[1]):
            rows = self._bin == b
            risks, rate = self._risks[rows], float(self._labels[rows].mean())
            bins.append(
                ReliabilityBin(float(risks.min()), float(risks.max()), float(risks.mean()), rate, int(rows.sum()))
            )
        return bins

    def _weights(self, weights: npt.ArrayLike | None) -> Float:
        if weights is None:
            return np.ones(self._n_units)
        # Units beyond the last one that holds a prefix weigh nothing here.
        return np.asarray(weights, dtype=np.float64)[..., : self._n_units]


def brier(labels: npt.ArrayLike, risks: npt.ArrayLike) -> float:
    """Mean squared error of risks.

    >>> brier([0, 1], [0.25, 0.75])
    0.0625
    """
    return float(Reliability(labels, risks).brier())


def log_losses(labels: npt.ArrayLike, risks: npt.ArrayLike) -> Float:
    """-log of the probability that each risk gave to what came true, (N,). A risk counts as at least 1e-6 from 0 and 1.

    >>> log_losses([0, 1], [0.5, 1.0]).round(4)
    array([0.6931, 0.    ])
    """
    said = np.clip(np.asarray(risks, dtype=np.float64), 1e-6, 1 - 1e-6)
    return np.asarray(-np.log(np.where(np.asarray(labels) != 0, said, 1.0 - said)), dtype=np.float64)


def ece(labels: npt.ArrayLike, risks: npt.ArrayLike, *, bins: int = BINS) -> float:
    """Expected calibration error over bins of equal mass.

    >>> ece([0, 1, 0, 1], [0.2, 0.2, 0.7, 0.7], bins=2)
    0.25
    """
    return float(Reliability(labels, risks, bins=bins).ece())


def reliability_curve(labels: npt.ArrayLike, risks: npt.ArrayLike, *, bins: int = BINS) -> list[ReliabilityBin]:
    """Points of mean risk against the share labelled 1, in bins of equal mass, lowest first."""
    return Reliability(labels, risks, bins=bins).curve()
