"""What steps take, against what is usual for the run: behaviours of runs whose steps have signals, and of no others."""

from __future__ import annotations

import math
from typing import Final

from prefixguard.behaviours.tracker import MOST_STEPS, BehaviourTracker
from prefixguard.stepview import Signals, StepRecord

#: Steps that say what is usual; how many times as much is too much, and so many steps in a row.
_KNOWN: Final = 5
_TIMES: Final = 4.0
IN_A_ROW: Final = 3
#: Seconds and tokens below which nothing is too much. Dollars have no such floor: a million of them count as tokens.
_LEAST_SECONDS, _LEAST_TOKENS = 10.0, 1000.0
_TOKENS, _DOLLARS = 1, 2
_SCALE: Final = 1000.0
_ENOUGH: Final = round(_SCALE * math.log(_TIMES))


def spend(t: BehaviourTracker, record: StepRecord) -> dict[str, tuple[int, int, str]]:
    """Take what the step took into the tracker (in place) and return what holds at it."""
    found: dict[str, tuple[int, int, str]] = {}
    took = record.signals
    if took is None:
        return found
    if took.seconds is not None:
        usual, n = math.expm1(t.time_sum / t.time_n / _SCALE) if t.time_n else 0.0, t.time_n
        slow = took.seconds >= _LEAST_SECONDS and n >= _KNOWN and _logarithm(took.seconds) >= t.time_sum / n + _ENOUGH
        t.time_n, t.time_sum = _more(t.time_n, t.time_sum, took.seconds)
        t.slow_since = t.slow_since if slow and t.slow else t.step
        t.slow = t.slow + 1 if slow else 0
        if t.slow >= IN_A_ROW:
            found["slowing_steps"] = t.slow_since, t.slow, f"{took.seconds:,.0f} s, usually {usual:,.1f} s"
    cost, unit = _cost(t, took)
    if cost:
        usual, n = math.expm1(t.cost_sum / t.cost_n / _SCALE) if t.cost_n else 0.0, t.cost_n
        dear = cost >= _LEAST_TOKENS and n >= _KNOWN and _logarithm(cost) >= t.cost_sum / n + _ENOUGH
        t.cost_n, t.cost_sum = _more(t.cost_n, t.cost_sum, cost)
        t.dear_since = t.dear_since if dear and t.dear else t.step
        t.dear = t.dear + 1 if dear else 0
        if t.dear >= IN_A_ROW:
            found["runaway_cost"] = t.dear_since, t.dear, f"{_shown(cost, unit)}, usually {_shown(usual, unit)}"
    return found


def _cost(t: BehaviourTracker, took: Signals) -> tuple[float, int]:
    """What a step cost, in what the first step that cost anything said it in: tokens, or millionths of a dollar.

    0 says nothing of what is usual: harnesses write it for steps that called no model.
    """
    tokens, dollars = (took.tokens_in or 0.0) + (took.tokens_out or 0.0), took.dollars or 0.0
    if not t.cost_unit:
        t.cost_unit = _TOKENS if tokens else _DOLLARS if dollars else 0
    return (tokens, _TOKENS) if t.cost_unit == _TOKENS else (dollars * 1e6, _DOLLARS)


def _shown(cost: float, unit: int) -> str:
    return f"{cost:,.0f} tokens" if unit == _TOKENS else f"{cost / 1e6:,.4f} dollars"


def _logarithm(value: float) -> int:
    return round(_SCALE * math.log1p(value))


def _more(n: int, total: int, value: float) -> tuple[int, int]:
    """One more step in the mean, which stops where its numbers have no more room."""
    after = total + _logarithm(value)
    return (n + 1, after) if after < MOST_STEPS else (n, total)
