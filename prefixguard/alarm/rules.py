"""Levels from behaviours alone: rules that need no model and no training.

Every fault has two counts: from one it is worth a look (`watch`), from the other a person would step in (`alarm`). They
were set by what the behaviours mean: two equal results are an accident, six are a loop.
"""

from __future__ import annotations

from collections.abc import Iterable

from prefixguard.alarm.policy import Level
from prefixguard.behaviours import BehaviourFinding


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
