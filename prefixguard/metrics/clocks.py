"""Scores that know the time and nothing else; a monitor below them has learned less than a clock would know."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from prefixguard.metrics.prefixes import Prefixes


def step_index(prefixes: Prefixes) -> npt.NDArray[np.float64]:
    """Score t of each prefix, (N,): with a step cap, late means failing."""
    return prefixes.step.astype(np.float64)


def end_oracle(prefixes: Prefixes) -> npt.NDArray[np.float64]:
    """Score -(T - t) of each prefix, (N,): knows when the run ends, as no monitor can, and nothing of its outcome."""
    return -prefixes.remaining.astype(np.float64)
