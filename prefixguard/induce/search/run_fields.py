"""Readings of a field of runs, the outcome or the task: candidates from every place, evidence as log-odds,
and the probability that follows. Names of places are one term of several and can be left out.

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
#: Texts from so many words on are what a task says; an id, a name or a path has fewer.
FEWEST_WORDS = 4

Sides = tuple[int, ...]
Keys = tuple[str | None, ...]


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
        return of if isinstance(of, str) else canonical(of)


def ranked(found: Iterable[Weighed], agrees: Callable[[Any, Any], bool], none: float = 1.0) -> list[Weighed]:
    """Readings, likeliest first, each by its likeliest candidate, with its probability. none: the weight of "none of
    these"."""
    readings: list[Weighed] = []
    for one in sorted(found, key=lambda one: -one.odds):
        if not any(agrees(one.says, other.says) for other in readings):
            readings.append(one)
    total = none + sum(exp(one.odds) for one in readings)
    return [replace(one, confidence=min(one.most, exp(one.odds) / total)) for one in readings]


def is_prose(column: Values) -> bool:
    """Are its values texts of several words, rather than ids, names, times or paths?"""
    here = [text for text in column.texts if text]
    return bool(here) and sum(len(text.split()) >= FEWEST_WORDS for text in here) >= 0.8 * len(here)
