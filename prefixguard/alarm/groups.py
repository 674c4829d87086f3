"""Thresholds of their own for the values of a run's group: a customer's tier, the tool an agent works with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy.typing as npt

from prefixguard.alarm.policy import AlarmPolicy
from prefixguard.alarm.threshold import Thresholds, alarm_threshold


@dataclass(frozen=True, slots=True)
class GroupThresholds:
    """Thresholds by the value of one group.

    by: name of the group, such as "tier". of: value of the group -> its thresholds. Each row with an alarm keeps the
    budget over runs of its own value, by the same bound; that all rows keep it at once is not promised. A row without
    one had too few calibration runs, says how many are needed, and the common thresholds hold instead: those keep
    the budget over runs of all values together, not within a single value.
    """

    by: str
    of: Mapping[str, Thresholds]

    def pick(self, value: str | None, common: Thresholds) -> Thresholds:
        """What holds for a run of this value: its own thresholds, or the common ones.

        value: None where the run's is not known.

        >>> own, few = Thresholds(0.8, 0.3, 30, 0, 22, None), Thresholds(None, 0.3, 5, 0, 22, "too few")
        >>> groups = GroupThresholds("tier", {"gold": own, "new": few})
        >>> common = Thresholds(0.7, 0.3, 40, 1, 22, None)
        >>> [groups.pick(value, common).alarm for value in ("gold", "new", "silver", None)]
        [0.8, 0.7, 0.7, 0.7]
        """
        own = None if value is None else self.of.get(value)
        return common if own is None or own.alarm is None else own


def group_thresholds(
    by: str, maxima: Mapping[str, npt.ArrayLike], policy: AlarmPolicy, *, watch: float = 1.0
) -> GroupThresholds:
    """`alarm_threshold` for every value of a group, in the order of its values.

    maxima: value -> `run_maximum` of its successful calibration runs, one a task within the value.
    """
    rows = {value: watched(alarm_threshold(maxima[value], policy), watch) for value in sorted(maxima)}
    return GroupThresholds(by, MappingProxyType(rows))


def watched(thresholds: Thresholds, mark: float) -> Thresholds:
    """The same thresholds with a watch mark, lowered to the alarm: what sounds an alarm is worth watching.

    >>> watched(Thresholds(0.2, 1.0, 30, 0, 22, None), 0.3).watch
    0.2
    """
    watch = mark if thresholds.alarm is None else min(mark, thresholds.alarm)
    return replace(thresholds, watch=watch)
