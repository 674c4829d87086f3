"""Who made the decisive mistake, and where, told from a monitor's risks alone: no language model is asked.

A baseline for auditors, and what is left where none answers. The risk after a step has seen what came back for it, so
the step at which risk rises for good is the one that is blamed, and its agent with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from prefixguard.errors import ConfigError
from prefixguard.stepview import StepRecord

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


class AttributionMethod(StrEnum):
    """How the step is found: where risk is up for good, where it rises most, where it crosses a mark, where it is
    highest."""

    CHANGE_POINT = "change-point"
    LARGEST_RISE = "largest-rise"
    FIRST_CROSSING = "first-crossing"
    HIGHEST = "highest"


@dataclass(frozen=True, slots=True)
class BlamedStep:
    """The step that is blamed.

    step: index of the record, from 1; None where the risks point at none. agent: who acted there, as the run spells it;
    None without a step, or where the record names nobody. method: how it was found.
    strength: mean log-odds from that reading on less the mean before it, the base counted with what was before; 0.0
    where there is nothing before, and without a step. It says how clear the rise is, not how likely the step is right.
    """

    step: int | None
    agent: str | None
    method: AttributionMethod
    strength: float


def attribute(
    records: Sequence[StepRecord],
    risks: Sequence[float | None] | NDArray[np.float64],
    method: AttributionMethod | str = AttributionMethod.CHANGE_POINT,
    *,
    mark: float | None = None,
    base: float | None = None,
) -> BlamedStep:
    """The step of a run, and the agent, that its risks point at.

    records: of a run, in order. risks: one a record, in [0, 1], the risk after that record; None or NaN where the
        monitor read UNKNOWN: such steps are passed over, as if they were not there.
    mark: the risk that `first-crossing` waits for. base: the risk of a run before its first record, such as the share
        of runs that fail; it counts as one reading more in front, and only with it can `change-point` and
        `largest-rise` point at the first step: without, nothing is there to rise from.

    Only agents' steps are blamed. Where the risk changes at a record of somebody else (a user's message, say), the last
    step of an agent before it is: what it did is what that record answers. None where no agent acted by then.
    ConfigError where risks do not fit the records, are no probabilities, or a mark is missing.
    """
    try:
        method = AttributionMethod(method)
    except ValueError:
        choices = ", ".join(one.value for one in AttributionMethod)
        raise ConfigError(f"attribution method {method!r}: choose one of {choices}.") from None
    if method is AttributionMethod.FIRST_CROSSING and mark is None:
        raise ConfigError("first-crossing needs a mark: the risk that counts as crossed, such as the alarm's.")
    for name, value in (("mark", mark), ("base", base)):
        if value is not None and not 0 <= value <= 1:
            raise ConfigError(f"{name} {value}: a risk from 0 to 1.")
    values = np.array([np.nan if risk is None else risk for risk in risks], dtype=np.float64)
    if values.shape != (len(records),):
        raise ConfigError(f"{len(values)} risks for {len(records)} records: give one a record, None where unknown.")
    known = np.flatnonzero(~np.isnan(values))
    if not ((values[known] >= 0) & (values[known] <= 1)).all():
        raise ConfigError("risks are probabilities from 0 to 1; for log-odds, map them first.")
    head = 0 if base is None else 1
    levels = log_odds(np.concatenate(([base] if base is not None else [], values[known])))
    if method is AttributionMethod.CHANGE_POINT:
        found = change_point(levels)
    elif method is AttributionMethod.LARGEST_RISE:
        found = largest_rise(levels)
    else:  # the base is no reading that may be blamed
        crossed = None if mark is None else float(log_odds(np.array([mark]))[0])
        crosses = method is AttributionMethod.FIRST_CROSSING and crossed is not None
        found = first_crossing(levels[head:], crossed or 0.0) if crosses else highest(levels[head:])
        found = None if found is None else found + head
    # The last record of an agent at or before the position.
    before = records[: int(known[found - head]) + 1] if found is not None else ()
    record = next((one for one in reversed(before) if one.actor == "agent"), None)
    if found is None or record is None:
        return BlamedStep(None, None, method, 0.0)
    return BlamedStep(record.index, record.agent or None, method, jump(levels, found))
