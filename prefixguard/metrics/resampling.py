"""Ratios of sums, and how sure they are: resamples of tasks, percentile intervals, paired differences.

The prefixes of a run depend on each other, and so do the runs of a task; so tasks are what is drawn. A resample is a
vector that says how often each task was drawn; figures take it as weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prefixguard.errors import ConfigError

Float = npt.NDArray[np.float64]


def ratio(above: npt.ArrayLike, below: npt.ArrayLike, where: npt.ArrayLike | None = None) -> Float:
    """above / below, elementwise, float64; NaN where `below` is not positive (or `where` is false).

    >>> ratio([1.0, 1.0], [4.0, 0.0])
    array([0.25,  nan])
    """
    top, bottom = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    usable = bottom > 0 if where is None else np.asarray(where, dtype=np.bool_)
    out: Float = np.full(np.broadcast_shapes(top.shape, bottom.shape), np.nan)
    np.divide(top, bottom, out=out, where=usable)
    return out


def exact_interval(share: float, n_tasks: int) -> tuple[float, float]:
    """The exact 95 % interval of a share of so many tasks. Source: Clopper and Pearson 1934.

    >>> [round(end, 3) for end in (*exact_interval(0.0, 21), *exact_interval(1 / 21, 21))]
    [0.0, 0.161, 0.001, 0.238]
    """
    from scipy.stats import beta  # here, so that help and audits need no extra

    n = max(n_tasks, 1)
    k = min(max(share, 0.0), 1.0) * n
    low, high = beta.ppf((0.025, 0.975), (max(k, 1e-9), k + 1), (n - k + 1, max(n - k, 1e-9)))
    return (float(low) if share > 0 else 0.0), (float(high) if share < 1 else 1.0)


@dataclass(frozen=True, slots=True)
class Estimates:
    """Figures by name. values: NaN where one does not exist. samples: float64 (R,), of every resample.

    intervals: 95 %, of the figures that exist in enough resamples.
    """

    values: dict[str, float]
    samples: dict[str, Float]

    @property
    def intervals(self) -> dict[str, tuple[float, float]]:
        known = {name: interval(self.samples[name]) for name, value in self.values.items() if not math.isnan(value)}
        return {name: ends for name, ends in known.items() if ends is not None}


#: Weights times rows that are held at once, about 32 MB an array.
_CHUNK = 4_000_000


@dataclass(frozen=True, slots=True)
class Resamples:
    """weights: float64 (R, U): how often each of U tasks was drawn in each of R resamples; rows sum to U."""

    weights: Float

    @classmethod
    def draw(cls, n_units: int, *, n: int = 1000, seed: int = 13) -> Resamples:
        """R = n resamples of `n_units` tasks with replacement, by seed."""
        if n < 0 or n_units < 0:
            raise ConfigError(f"{n} resamples of {n_units} tasks: use 0 or more of each.")
        if seed < 0:
            raise ConfigError(f"seed of the resamples is {seed}: use 0 or more.")
        if n_units == 0:
            return cls(np.zeros((n, 0)))
        counts = np.random.default_rng(seed).multinomial(n_units, np.full(n_units, 1 / n_units), size=n)
        return cls(counts.astype(np.float64))

    def figures(self, figure: Callable[[Float], Float], rows: int = 1) -> Float:
        """`figure` for every resample, float (R,).

        figure: takes weights (r, U), gives (r,). rows: how many rows it spreads each resample over, to bound memory.
        """
        step = max(1, _CHUNK // max(rows, 1))
        parts = [figure(self.weights[i : i + step]) for i in range(0, len(self.weights), step)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def estimate(self, figures: Mapping[str, tuple[Callable[[Float], Float], int]]) -> Estimates:
        """Each figure over all tasks, (U,) weights of one, and over every resample.

        figures: by name, the figure and its rows, as at `figures`; it takes weights of either shape.
        """
        whole = np.ones(self.weights.shape[1])
        return Estimates(
            {name: float(figure(whole)) for name, (figure, _) in figures.items()},
            {name: self.figures(figure, rows) for name, (figure, rows) in figures.items()},
        )


def interval(samples: npt.ArrayLike, level: float = 0.95) -> tuple[float, float] | None:
    """The middle `level` of resampled figures (percentile interval), low and high.

    Resamples in which the figure does not exist (NaN: a class was not drawn) are left out; None where that leaves
    fewer than half, or none at all.

    >>> interval(range(101), level=0.5)
    (25.0, 75.0)
    """
    if not 0.0 < level < 1.0:
        raise ConfigError(f"interval level {level:g} is out of range: use a number between 0 and 1, such as 0.95.")
    values = np.asarray(samples, dtype=np.float64)
    known = values[~np.isnan(values)]
    if len(known) == 0 or 2 * len(known) < len(values):
        return None
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def paired_difference(one: npt.ArrayLike, other: npt.ArrayLike, level: float = 0.95) -> tuple[float, float] | None:
    """Interval of `one - other`, both resampled by the same `Resamples`: task by task, what they share cancels."""
    return interval(np.asarray(one, dtype=np.float64) - np.asarray(other, dtype=np.float64), level)
