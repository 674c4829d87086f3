"""A run of an agent, how it ended, and the labels of its prefixes: is the failure close?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from prefixguard.errors import ConfigError

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
class RunOffer:
    """What a run is given at its start, as far as somebody says it.

    tools: names of the tools that it can call; None where nobody says. step_limit: steps that it may have, 1 or more;
    None where nobody says.
    """

    tools: tuple[str, ...] | None = None
    step_limit: int | None = None


NO_OFFER: Final = RunOffer()


@dataclass(frozen=True, slots=True)
class Run(Generic[R]):
    """One run, parsed.

    run_id: unique in its corpus.
    task_id: what was asked; runs of one task are never on two sides of a split. None where the trace has none.
    groups: agent, file, domain and the like; for evaluation and splits, never a feature.
    records: the steps in order (`stepview.StepRecord`).
    source: where it was read (file and position), for messages.
    mistake, faults: labels of attribution sets; for evaluation, never a feature. mistake: None where a set says nothing
    of it or that there is none. faults: each pair once, in the order of the set.
    offer: what the run was given, as far as its events say it; a live monitor sees it too. Never a feature.
    """

    run_id: str
    task_id: str | None
    outcome: Outcome
    records: tuple[R, ...]
    source: str
    groups: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    mistake: Mistake | None = None
    faults: tuple[Fault, ...] = ()
    offer: RunOffer = NO_OFFER


def remaining_steps(n_steps: int) -> npt.NDArray[np.int64]:
    """Steps left after each prefix: T - t for t = 1..T. Shape (T,).

    >>> remaining_steps(4)
    array([3, 2, 1, 0])
    """
    if n_steps < 0:
        raise ConfigError(f"a run cannot have {n_steps} steps.")
    return np.arange(n_steps - 1, -1, -1, dtype=np.int64)


def imminent_labels(n_steps: int, failed: bool, horizon: int) -> npt.NDArray[np.uint8]:
    """Label of each prefix: 1 iff the run failed and at most `horizon` steps remain. uint8, shape (T,).

    n_steps: T, 0 or more.
    failed: the run's outcome is FAILURE. A run whose outcome is UNKNOWN has no labels: leave it out before.
    horizon: H, 0 or more; 0 marks the last step only.
    Raises ConfigError if `horizon` or `n_steps` is negative.

    >>> imminent_labels(6, failed=True, horizon=3)
    array([0, 0, 1, 1, 1, 1], dtype=uint8)
    >>> imminent_labels(2, failed=True, horizon=3)
    array([1, 1], dtype=uint8)
    >>> imminent_labels(3, failed=False, horizon=3)
    array([0, 0, 0], dtype=uint8)
    """
    if horizon < 0:
        raise ConfigError(f"horizon is {horizon}: it counts steps before the end, so use 0 or more (default 3).")
    remaining = remaining_steps(n_steps)
    if not failed:
        return np.zeros(n_steps, dtype=np.uint8)
    return (remaining <= horizon).astype(np.uint8)
