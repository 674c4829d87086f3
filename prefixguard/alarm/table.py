"""Thresholds for several budgets, as a bundle's manifest carries them (key `alarm_table`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any

import numpy.typing as npt

from prefixguard.alarm.policy import AlarmPolicy
from prefixguard.alarm.threshold import Thresholds, alarm_threshold
from prefixguard.errors import BundleError

#: The budgets that an alarm table covers.
BUDGETS = (0.01, 0.05, 0.10)


def alarm_table(
    maxima: npt.ArrayLike, policy: AlarmPolicy, *, budgets: Sequence[float] = BUDGETS, watch: float = 1.0
) -> dict[float, Thresholds]:
    """`alarm_threshold` for several budgets, all else as in `policy`. Budget -> thresholds, in the order given.

    Each row's guarantee holds alone; that all rows hold at once is not promised.
    """
    return {budget: alarm_threshold(maxima, replace(policy, budget=budget), watch=watch) for budget in budgets}


def table_to_json(table: Mapping[float, Thresholds]) -> list[dict[str, Any]]:
    """Plain JSON: one object a budget, `budget` and the fields of `Thresholds`.

    >>> table_to_json({0.1: Thresholds(0.7, 0.4, 30, 0, 22, None)})[0]["budget"]
    0.1
    """
    return [{"budget": budget, **asdict(thresholds)} for budget, thresholds in table.items()]


def table_from_json(rows: Iterable[Mapping[str, Any]], where: str = "manifest.json") -> dict[float, Thresholds]:
    """What `table_to_json` wrote. Raises BundleError, naming `where`, for anything else."""
    names = {field.name for field in fields(Thresholds)}
    table = {}
    try:
        for row in rows:
            table[float(row["budget"])] = Thresholds(**{name: row[name] for name in names})
    except (TypeError, KeyError, ValueError) as exc:
        raise BundleError(
            f"{where}: its alarm table cannot be read ({type(exc).__name__}: {exc}). Calibrate the monitor again."
        ) from exc
    return table
