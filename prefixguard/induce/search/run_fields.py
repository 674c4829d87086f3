"""Readings of a field of runs, the outcome or the task: candidates from every place, evidence as log-odds,
and the probability that follows. Names of places are one term of several.

Candidates that say the same of all runs are one reading. The probability of a reading is its weight beside those of the
readings that contradict it and of "none of these".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import exp
from typing import Any

from prefixguard.induce.search.seen_runs import Values
from prefixguard.stepview import canonical

#: Readings below this are not taken; from SURE on nobody is asked; rivals from NEAR on are shown.
TAKEN, SURE, NEAR = 0.4, 0.8, 0.08


@dataclass(frozen=True, slots=True)
class Weighed:
    """A candidate. spec: of the outcome, or of the task. says: of each run its side (1, -1, 0), or its task.
    odds: natural logarithm. confidence: the probability, once rivals were looked at; at most `most`. assumed: one of
    its parts is a guess whatever the odds."""

    spec: Any
    says: tuple[Any, ...]
    odds: float
    why: str
    column: Values
    confidence: float = 0.0
    assumed: bool = False
    most: float = 1.0

    @property
    def label(self) -> str:
        """The place, for a person."""
        of = self.column.spec
        if self.column.near == "list":
            return f"the list {of['in'].get('path')} of {of['in']['sibling']}"
        return shown(of)


def shown(spec: Any) -> str:
    """A value of the spec, for a person."""
    return spec if isinstance(spec, str) else canonical(spec)


def ranked(found: Iterable[Weighed], agrees: Callable[[Any, Any], bool], none: float = 1.0) -> list[Weighed]:
    """Readings, likeliest first, each by its likeliest candidate, with its probability. none: the weight of "none of
    these"."""
    readings: list[Weighed] = []
    for one in sorted(found, key=lambda one: -one.odds):
        if not any(agrees(one.says, other.says) for other in readings):
            readings.append(one)
    total = none + sum(exp(one.odds) for one in readings)
    return [replace(one, confidence=min(one.most, exp(one.odds) / total)) for one in readings]
