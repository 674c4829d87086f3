"""What is fitted of the context before training: scale, bins and hazards.

A neural head misses sharp functions of counts, such as a cap on steps, unless they are handed over: each feature is
given standardised, as piecewise-linear bins, and with the hazards of the step index.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

N_HAZARDS = 3
_LONGEST = 200  # step index at which hazards stop changing
#: Further edges in the upper tail: what happens at a cap on steps happens to few steps.
_TAIL = (0.96, 0.97, 0.98, 0.99, 0.995, 0.999)
_STEP = 0  # position of the step index among the context features


@dataclass(frozen=True, slots=True)
class ContextScale:
    """Fitted on training steps.

    mean, std: float32 (d,). typical: float32 (d,), the median.
    low, width: float32 (bins_total,), where a bin begins and how wide it is; feature: int64 (bins_total,), whose it is.
    hazards: float32 (_LONGEST, 3), logits by step index of: imminent; the run ends within the horizon; the run fails.
    """

    mean: NDArray[np.float32]
    std: NDArray[np.float32]
    typical: NDArray[np.float32]
    low: NDArray[np.float32]
    width: NDArray[np.float32]
    feature: NDArray[np.int64]
    hazards: NDArray[np.float32]

    @property
    def size(self) -> int:
        """Length of the encoded context vector."""
        return len(self.mean) + len(self.low) + N_HAZARDS


def fit_scale(
    context: NDArray[np.float32],
    lengths: NDArray[np.int64],
    failed: NDArray[np.bool_],
    *,
    horizon: int,
    bins: int,
    smoothing: float = 1.0,
) -> ContextScale:
    """Fit on the training runs.

    context: float32 (steps, d), runs one after the other. lengths: int64 (n,). failed: bool (n,).
    bins: piecewise-linear bins a feature, at its quantiles; fewer where a feature has fewer distinct values.
    smoothing: standard deviation, in steps, of the kernel that smooths the hazards.
    """
    levels = [*np.linspace(0, 1, bins + 1), *_TAIL]
    edges = [np.unique(np.quantile(column, levels)).astype(np.float64) for column in context.T]
    std = context.std(axis=0)
    return ContextScale(
        mean=context.mean(axis=0).astype(np.float32),
        std=np.where(std > 1e-6, std, 1.0).astype(np.float32),
        typical=np.median(context, axis=0).astype(np.float32),
        low=np.concatenate([e[:-1] for e in edges]).astype(np.float32),
        width=np.concatenate([np.diff(e) for e in edges]).astype(np.float32),
        feature=np.repeat(np.arange(len(edges)), [len(e) - 1 for e in edges]),
        hazards=_hazards(lengths, failed, horizon, smoothing),
    )


def _hazards(
    lengths: NDArray[np.int64], failed: NDArray[np.bool_], horizon: int, smoothing: float
) -> NDArray[np.float32]:
    """Kernel-smoothed shares of the runs still going at each step index, as logits, shrunk to the base rate."""
    t = np.arange(1, _LONGEST + 1)
    alive = lengths[:, None] >= t[None, :]
    ending = alive & (lengths[:, None] - t[None, :] <= horizon)
    events = np.stack([ending & failed[:, None], ending, alive & failed[:, None]])  # (3, n, L)
    counts = events.sum(axis=1).astype(np.float64)  # (3, L)
    at_risk = alive.sum(axis=0).astype(np.float64)  # (L,)
    kernel = np.exp(-0.5 * ((t[:, None] - t[None, :]) / smoothing) ** 2)
    base = counts.sum(axis=1, keepdims=True) / max(at_risk.sum(), 1.0)
    share = (counts @ kernel + 5 * base) / (at_risk @ kernel + 5)
    share = np.clip(share, 1e-4, 1 - 1e-4)
    return np.ascontiguousarray(np.log(share / (1 - share)).T, dtype=np.float32)
