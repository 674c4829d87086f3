"""Levels from behaviours alone: rules that need no model and no training.

Every fault has two counts: from one it is worth a look (`watch`), from the other a person would step in (`alarm`). They
were set by what the behaviours mean: two equal results are an accident, six are a loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Final

from prefixguard.alarm.policy import Level
from prefixguard.behaviours import BehaviourFinding

#: Scales that a calibration may choose. Below the least, an ALARM would come before what is worth a look.
LEAST_SCALE: Final = 0.5
MOST_SCALE: Final = 1000.0


def rule_level(findings: Iterable[BehaviourFinding], scale: float = 1.0) -> Level:
    """The level of a step, by what holds at it: never UNKNOWN.

    findings: as `behaviours.update` gives them. scale: what all counts are multiplied by, above 0; a greater one raises
    fewer alarms.
    """
    level = Level.OK
    for finding in findings:
        behaviour = finding.behaviour
        if behaviour.alarm and finding.count >= scale * behaviour.alarm:
            return Level.ALARM
        if behaviour.watch and finding.count >= scale * behaviour.watch:
            level = Level.WATCH
    return level


def alarm_scale(findings: Iterable[BehaviourFinding]) -> Fraction:
    """The greatest scale at which a step with these findings has the level ALARM; 0 where it has it at none."""
    scales = (Fraction(one.count, one.behaviour.alarm) for one in findings if one.behaviour.alarm)
    return max(scales, default=Fraction(0))


def calibrated_scale(maxima: Sequence[Fraction], allowed: int) -> float:
    """The least scale at which at most `allowed` of these runs alarm: in hundredths, and at least `LEAST_SCALE`.

    maxima : of each run the greatest `alarm_scale` of its steps. allowed : 0 to len(maxima) - 1.

    >>> calibrated_scale([Fraction(7, 6), Fraction(0), Fraction(2)], allowed=1)
    1.17
    """
    passed = sorted(maxima)[len(maxima) - 1 - allowed]  # at this very scale the run still alarms
    return max(LEAST_SCALE, (math.floor(100 * passed) + 1) / 100)
