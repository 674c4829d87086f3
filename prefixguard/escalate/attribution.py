"""Who made the decisive mistake, and where, told from a monitor's risks alone: no language model is asked.

A baseline for auditors, and what is left where none answers. The risk after a step has seen what came back for it, so
the step at which risk rises for good is the one that is blamed, and its agent with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from prefixguard.errors import ConfigError
from prefixguard.escalate.change_point import change_point, first_crossing, highest, jump, largest_rise, log_odds
from prefixguard.stepview import StepRecord


class AttributionMethod(StrEnum):
    """How the step is found: where risk is up for good, where it rises most, where it crosses a mark, where it is
    highest."""

    CHANGE_POINT = "change-point"
    LARGEST_RISE = "largest-rise"
    FIRST_CROSSING = "first-crossing"
    HIGHEST = "highest"


@dataclass(frozen=True, slots=True)
class Attribution:
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
) -> Attribution:
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
    method = _method(method)
    values = np.array([np.nan if risk is None else risk for risk in risks], dtype=np.float64)
    if values.shape != (len(records),):
        raise ConfigError(f"{len(values)} risks for {len(records)} records: give one a record, None where unknown.")
    known = np.flatnonzero(~np.isnan(values))
    if not ((values[known] >= 0) & (values[known] <= 1)).all():
        raise ConfigError("risks are probabilities from 0 to 1; for log-odds, map them first.")
    _check(mark, base, method)
    levels = log_odds(values[known])
    head = 0 if base is None else 1
    if base is not None:
        levels = np.concatenate((log_odds(np.array([base])), levels))
    if method is AttributionMethod.CHANGE_POINT:
        found = change_point(levels)
    elif method is AttributionMethod.LARGEST_RISE:
        found = largest_rise(levels)
    elif method is AttributionMethod.FIRST_CROSSING:
        crossed = first_crossing(levels[head:], float(log_odds(np.array([mark]))[0]))
        found = None if crossed is None else crossed + head
    else:
        top = highest(levels[head:])
        found = None if top is None else top + head
    record = None if found is None else _agent_step(records, int(known[found - head]))
    if found is None or record is None:
        return Attribution(None, None, method, 0.0)
    return Attribution(record.index, record.agent or None, method, jump(levels, found))


def _agent_step(records: Sequence[StepRecord], position: int) -> StepRecord | None:
    """The last record of an agent at or before a position."""
    for i in range(position, -1, -1):
        if records[i].actor == "agent":
            return records[i]
    return None


def _method(name: AttributionMethod | str) -> AttributionMethod:
    try:
        return AttributionMethod(name)
    except ValueError:
        raise ConfigError(
            f"attribution method {name!r}: choose one of {', '.join(m.value for m in AttributionMethod)}."
        ) from None


def _check(mark: float | None, base: float | None, method: AttributionMethod) -> None:
    if method is AttributionMethod.FIRST_CROSSING and mark is None:
        raise ConfigError("first-crossing needs a mark: the risk that counts as crossed, such as the alarm's.")
    for name, value in (("mark", mark), ("base", base)):
        if value is not None and not 0 <= value <= 1:
            raise ConfigError(f"{name} {value}: a risk from 0 to 1.")


__all__ = ["Attribution", "AttributionMethod", "attribute"]
