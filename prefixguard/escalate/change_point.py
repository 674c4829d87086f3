"""Where in a run its risk rises: the step from which it stays up, the largest rise, the first crossing, the highest.

All of it on natural log-odds l_1..l_n of the steps whose risk is known, in order; positions are from 0. Of equally good
positions the earliest is taken. Every rule is one pass, O(n), and looks at nothing else than the numbers.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Risks are held this far from 0 and 1 before their log-odds are taken: log-odds of at most about 13.8.
EDGE = 1e-6
#: A rise below this, in log-odds, is none: what is left when equal numbers are added up in another order.
_NOTHING = 1e-9


def log_odds(risks: Floats) -> Floats:
    """Natural log-odds of risks in [0, 1], held `EDGE` away from both ends. NaN stays NaN.

    >>> log_odds(np.array([0.5, 1.0])).round(3).tolist()
    [0.0, 13.816]
    """
    held = np.clip(risks, EDGE, 1 - EDGE)
    return np.asarray(np.log(held) - np.log1p(-held), dtype=np.float64)


def change_point(levels: Floats) -> int | None:
    """The position from which the log-odds are up for good; None where they never rise for good.

    For a position p >= 1 let a(p) be the mean of what stands before p and b(p) the mean from p on. p is a change for
    good where b(p) > a(p) and nothing from p on is as low as a(p) again: min(l_p, ..) > a(p). Of these the one that
    explains most is taken: two levels with normal noise of one variance have the greatest likelihood where

        G(p) = p (n - p) / n * (b(p) - a(p))^2

    is greatest (the sum of squares between the two parts). Neither the scale nor the zero of the log-odds matters.

    >>> change_point(np.array([-2.0, -2.1, 0.9, 1.1, 1.0]))
    2
    >>> change_point(np.array([0.0, 3.0, 0.0])) is None
    True
    """
    n = len(levels)
    if n < 2:
        return None
    x = levels - levels[0]  # equal numbers become zeros, whose sums are exact
    sums = np.cumsum(x)
    at = np.arange(1, n)
    before = sums[:-1] / at
    after = (sums[-1] - sums[:-1]) / (n - at)
    lowest = np.minimum.accumulate(x[::-1])[::-1][1:]
    for_good = (after - before > _NOTHING) & (lowest - before > _NOTHING)
    if not for_good.any():
        return None
    gain = np.where(for_good, at * (n - at) / n * (after - before) ** 2, -1.0)
    return int(np.argmax(gain)) + 1


def largest_rise(levels: Floats) -> int | None:
    """The position p >= 1 with the greatest l_p - l_(p-1); None where nothing rises.

    >>> largest_rise(np.array([0.0, 0.5, 2.0, 1.0]))
    2
    """
    rises = np.diff(levels)
    if not len(rises) or rises.max() <= _NOTHING:
        return None
    return int(np.argmax(rises)) + 1


def first_crossing(levels: Floats, mark: float) -> int | None:
    """The first position at or above `mark` (log-odds); None where none is.

    >>> first_crossing(np.array([0.0, 0.5, 2.0, 1.0]), 0.5)
    1
    """
    above = np.flatnonzero(levels >= mark)
    return int(above[0]) if len(above) else None


def highest(levels: Floats) -> int | None:
    """The first position of the greatest value; None where there is none.

    >>> highest(np.array([0.0, 2.0, 2.0]))
    1
    """
    return int(np.argmax(levels)) if len(levels) else None


def jump(levels: Floats, position: int) -> float:
    """How much higher the log-odds are from `position` on than before it, mean against mean; 0.0 at position 0.

    >>> jump(np.array([0.0, 0.0, 3.0]), 2)
    3.0
    """
    if position == 0:
        return 0.0
    return math.fsum(levels[position:]) / (len(levels) - position) - math.fsum(levels[:position]) / position


__all__ = ["EDGE", "change_point", "first_crossing", "highest", "jump", "largest_rise", "log_odds"]
