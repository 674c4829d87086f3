"""What an auditor said of one run, and what is known of that run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from prefixguard.errors import DataError

AuditOutcome = Literal["alarm", "safe", "abstain", "error"]
_OUTCOMES = get_args(AuditOutcome)


@dataclass(frozen=True, slots=True)
class AuditedRun:
    """One audited run. Steps are in one index of the caller's choice, the same in all rows.

    task_id: runs of a task are resampled together; None: the run stands for itself.
    n_steps: number of the run's last step, which is its length where steps count from 1.
    failed: the label; False: the run succeeded ("safe").
    gold_step: the decisive step of a failed run; None where the label hits no step, or there is none.
    gold_agent: who made it; None where unknown.
    outcome: of the whole audit of this run: "alarm", "safe", "abstain" (the auditor cannot tell) or "error" (no
        verdict). An error is never "safe".
    step, agent: alarm only: what is blamed; None where the auditor named none.
    alarm_step: alarm only: the last step that the auditor had seen when it alarmed; kept apart from the step that it
        blames. None where it judged the finished run.
    calls: questions sent. failed_calls: of them, those that gave no verdict.
    tokens_in, tokens_out, cost, seconds: of all calls together; cost None where unknown.
    share: probability of this row among the rows of the same run, which sum to 1. 1: this is what happened. A guess by
        chance is written as all it may come to, and its figures are then exact expectations, not a draw.
    Raises DataError for a row that contradicts itself.
    """

    run_id: str
    task_id: str | None
    n_steps: int
    failed: bool
    gold_step: int | None
    gold_agent: str | None
    outcome: AuditOutcome
    step: int | None = None
    agent: str | None = None
    alarm_step: int | None = None
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    seconds: float = 0.0
    failed_calls: int = 0
    share: float = 1.0

    def __post_init__(self) -> None:
        if self.outcome not in _OUTCOMES:
            raise DataError(f'run "{self.run_id}": outcome "{self.outcome}" is none of {", ".join(_OUTCOMES)}.')
        blamed = (self.step, self.agent, self.alarm_step)
        if self.outcome != "alarm" and any(part is not None for part in blamed):
            raise DataError(
                f'run "{self.run_id}": the outcome is {self.outcome}, but a step or an agent is blamed. Blame only '
                "with an alarm."
            )
        for name in ("n_steps", "gold_step", "step", "alarm_step", "calls", "failed_calls", "tokens_in", "tokens_out"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise DataError(f'run "{self.run_id}": {name} is {value!r}: use a whole number of 0 or more.')
        if self.failed_calls > self.calls:
            raise DataError(f'run "{self.run_id}": {self.failed_calls} of {self.calls} calls failed. Count each once.')
        for name in ("cost", "seconds"):
            number = getattr(self, name)
            if number is not None and not (math.isfinite(number) and number >= 0):
                raise DataError(f'run "{self.run_id}": {name} is {number:g}: use a number of 0 or more.')
        if not 0.0 < self.share <= 1.0:
            raise DataError(f'run "{self.run_id}": share {self.share:g} is out of range: above 0, at most 1.')

    @property
    def task(self) -> str:
        """What is resampled: the task, or the run where it has none."""
        return self.run_id if self.task_id is None else self.task_id


def check_rows(rows: Sequence[AuditedRun]) -> tuple[str, ...]:
    """The run ids, sorted. DataError where a run is there twice, or its rows are of different runs."""
    first: dict[str, AuditedRun] = {}
    total: dict[str, float] = {}
    for row in rows:
        known = first.setdefault(row.run_id, row)
        total[row.run_id] = total.get(row.run_id, 0.0) + row.share
        for name in ("task_id", "n_steps", "failed", "gold_step", "gold_agent"):
            if getattr(row, name) != getattr(known, name):
                raise DataError(
                    f'run "{row.run_id}" is there with {name} {getattr(known, name)!r} and {getattr(row, name)!r}. '
                    "Give every run an id of its own."
                )
    for run_id, shares in total.items():
        if abs(shares - 1.0) > 1e-6:
            raise DataError(
                f'run "{run_id}": the shares of its rows sum to {shares:g}, not 1. Give one row a run, or all that may '
                "happen with their probabilities."
            )
    return tuple(sorted(total))
