"""A run of an agent and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Generic, TypeVar

R = TypeVar("R")


class Outcome(StrEnum):
    """How a run ended. Never a bool: a run whose end nobody judged is UNKNOWN, not a failure."""

    SUCCESS = "success"
    FAILURE = "failure"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Mistake:
    """The decisive mistake of a failed run, where a set says it (attribution sets).

    step: number of the record it falls on, from 1; None where the set's index hits no record.
    agent: name of the agent that made it; None where unknown.
    """

    step: int | None
    agent: str | None


@dataclass(frozen=True, slots=True)
class Fault:
    """An agent that a set blames, and how it failed (attribution sets that name several, or no step).

    agent: name as the set spells it, which may not occur among the records; None where the set names none.
    mode: the failure mode, such as FM-3.2; None where the set names none.
    """

    agent: str | None
    mode: str | None


@dataclass(frozen=True, slots=True)
class Run(Generic[R]):
    """One run, parsed.

    run_id: unique in its corpus.
    task_id: what was asked; runs of one task never stand on two sides of a split. None where the trace has none.
    groups: agent, file, domain and the like; for evaluation and splits, never a feature.
    records: the steps in order (`stepview.StepRecord`).
    source: where it was read (file and position), for messages.
    mistake, faults: labels of attribution sets; for evaluation, never a feature. mistake: None where a set says nothing
    of it or that there is none. faults: each pair once, in the order of the set.
    """

    run_id: str
    task_id: str | None
    outcome: Outcome
    records: tuple[R, ...]
    source: str
    groups: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    mistake: Mistake | None = None
    faults: tuple[Fault, ...] = ()
