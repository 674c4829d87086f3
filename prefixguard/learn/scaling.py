"""What is fitted of the context before training: scale, bins and hazards.

A neural head misses sharp functions of counts, such as a cap on steps, unless they are handed over: each feature is
given standardised, as piecewise-linear bins, and with the hazards of the step index.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prefixguard.metrics import hazards

N_HAZARDS = 3
#: Further edges in the upper tail: what happens at a cap on steps happens to few steps.
_TAIL = (0.96, 0.97, 0.98, 0.99, 0.995, 0.999)


@dataclass(frozen=True, slots=True)
class ContextScale:
    """Fitted on training steps.

    mean, std: float32 (d,). typical: float32 (d,), the median.
    low, width: float32 (bins_total,), where a bin begins and how wide it is; feature: int64 (bins_total,), whose it is.
    hazards: float32 (200, 3), logits by step index of: imminent; the run ends within the horizon; the run fails.
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
) -> ContextScale:
    """Fit on the training runs.

    context: float32 (steps, d), runs one after the other. lengths: int64 (n,). failed: bool (n,).
    bins: piecewise-linear bins a feature, at its quantiles; fewer where a feature has fewer distinct values.
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
        hazards=np.ascontiguousarray(hazards(lengths, failed, horizon), dtype=np.float32),
    )
