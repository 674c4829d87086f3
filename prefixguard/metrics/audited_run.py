"""What an auditor said of one run, beside what is known of it; what such rows add to the sums that figures of
attribution are ratios of, and which figures they can have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from prefixguard.errors import DataError
from prefixguard.metrics.resampling import ratio

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
        for name, number in (("cost", self.cost), ("seconds", self.seconds)):
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
        facts = ("task_id", "n_steps", "failed", "gold_step", "gold_agent")
        for name in facts:
            if getattr(row, name) != getattr(known, name):
                raise DataError(
                    f'run "{row.run_id}" is there with {name} {getattr(known, name)!r} and {getattr(row, name)!r}. '
                    "Give every run an id of its own."
                )
    for run_id, sum_ in total.items():
        if abs(sum_ - 1.0) > 1e-6:
            raise DataError(
                f'run "{run_id}": the shares of its rows sum to {sum_:g}, not 1. Give one row a run, or all that may '
                "happen with their probabilities."
            )
    return tuple(sorted(total))


Float = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ratio:
    """`above / below`, each a sum of named sums. needs: a sum without which the figure does not exist."""

    above: str
    below: tuple[str, ...]
    needs: str = ""
    times: float = 1.0


RATIOS: Mapping[str, Ratio] = {
    "exact_f1": Ratio("exact", ("unsafe", "alarmed", "false_alarms"), "unsafe", 2.0),
    "exact_f1_text": Ratio("exact", ("unsafe", "alarmed"), "unsafe", 2.0),
    "step_precision": Ratio("exact", ("alarmed", "false_alarms")),
    "step_precision_text": Ratio("exact", ("alarmed",)),
    "step_accuracy": Ratio("exact", ("unsafe",)),
    "step_within_1": Ratio("within_1", ("unsafe",)),
    "step_within_3": Ratio("within_3", ("unsafe",)),
    "agent_accuracy": Ratio("agent", ("unsafe",)),
    "agent_accuracy_normalised": Ratio("agent_normalised", ("unsafe",)),
    "joint": Ratio("joint", ("unsafe",)),
    "joint_normalised": Ratio("joint_normalised", ("unsafe",)),
    "ass": Ratio("shift", ("shifted",)),
    "alarmed": Ratio("alarmed", ("unsafe",)),
    "ass_all": Ratio("shift_all", ("placed",)),
    "false_alarm_rate": Ratio("false_alarms", ("safe",)),
    "false_alarms_per_call": Ratio("false_alarms", ("safe_calls",)),
    "errors": Ratio("errors", ("runs",)),
    "abstained": Ratio("abstained", ("runs",)),
    "failed_calls": Ratio("failed_calls", ("calls",)),
    "before_end": Ratio("before_end", ("unsafe",)),
    "calls_per_run": Ratio("calls", ("runs",)),
    "tokens_in_per_call": Ratio("tokens_in", ("calls",)),
    "tokens_out_per_call": Ratio("tokens_out", ("calls",)),
    "seconds_per_call": Ratio("seconds", ("calls",)),
    "cost_per_call": Ratio("cost", ("calls",)),
    "cost_per_1000_runs": Ratio("cost", ("runs",), times=1000.0),
}
#: Names of the figures, in order.
ATTRIBUTION_FIGURES: tuple[str, ...] = tuple(RATIOS)
_OF_STEPS = (
    *("exact_f1", "exact_f1_text", "step_precision", "step_precision_text", "step_accuracy"),
    *("step_within_1", "step_within_3", "ass", "ass_all"),
)
_OF_BOTH = ("joint", "joint_normalised")
_OF_AGENTS = ("agent_accuracy", "agent_accuracy_normalised")
_NORMALISED = ("agent_accuracy_normalised", "joint_normalised")
_OF_COST = ("cost_per_call", "cost_per_1000_runs")
#: Shares of runs: where it is all or none, no resample differs, and the bootstrap would claim to know.
COUNTED = (
    *("step_accuracy", "step_within_1", "step_within_3", *_OF_AGENTS, *_OF_BOTH, "alarmed", "false_alarm_rate"),
    *("errors", "abstained", "before_end"),
)
#: Figures that have no exact interval to fall back on then: it is left out.
UNCERTAIN = ("exact_f1", "exact_f1_text", "step_precision", "step_precision_text")


def run_sums(rows: Sequence[AuditedRun], normalise: Callable[[str], str] | None) -> dict[str, Float]:
    """What every row adds to the sums, float64 (N,) each."""
    names = {name for row in rows for name in (row.agent, row.gold_agent) if name is not None}
    plain = {name: name if normalise is None else normalise(name) for name in names}
    failed = np.array([row.failed for row in rows], dtype=np.bool_)
    outcome = np.array([row.outcome for row in rows], dtype=np.str_)
    step, gold = _numbers([row.step for row in rows]), _numbers([row.gold_step for row in rows])
    n_steps, alarm_step = _numbers([row.n_steps for row in rows]), _numbers([row.alarm_step for row in rows])
    calls = _numbers([row.calls for row in rows])
    agent = failed & np.array([row.agent is not None and row.agent == row.gold_agent for row in rows], dtype=np.bool_)
    alike = failed & np.array(
        [
            row.agent is not None and row.gold_agent is not None and plain[row.agent] == plain[row.gold_agent]
            for row in rows
        ],
        dtype=np.bool_,
    )
    alarm, placed = outcome == "alarm", failed & ~np.isnan(gold)
    shifted = placed & ~np.isnan(step)
    shift = np.where(shifted, np.abs(step - gold), np.nan)  # NaN compares false below
    columns = {
        "runs": np.ones(len(rows)),
        "unsafe": failed,
        "safe": ~failed,
        "alarmed": failed & alarm,
        "false_alarms": ~failed & alarm,
        "exact": shift == 0,
        "within_1": shift <= 1,
        "within_3": shift <= 3,
        "agent": agent,
        "agent_normalised": alike,
        "joint": agent & (shift == 0),
        "joint_normalised": alike & (shift == 0),
        "placed": placed,
        "unplaced": failed & ~placed,
        "shifted": shifted,
        "shift": np.nan_to_num(shift),
        "shift_all": np.where(placed, np.where(shifted, shift, n_steps), 0.0),
        "errors": outcome == "error",
        "abstained": outcome == "abstain",
        "before_end": failed & (alarm_step < n_steps),
        "calls": calls,
        "failed_calls": _numbers([row.failed_calls for row in rows]),
        "safe_calls": np.where(failed, 0.0, calls),
        "tokens_in": _numbers([row.tokens_in for row in rows]),
        "tokens_out": _numbers([row.tokens_out for row in rows]),
        "seconds": _numbers([row.seconds for row in rows]),
        "cost": np.nan_to_num(_numbers([row.cost for row in rows])),
    }
    return {name: np.asarray(values, dtype=np.float64) for name, values in columns.items()}


def _numbers(values: Sequence[float | None]) -> Float:
    """float64 (N,), None as NaN."""
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def missing_figures(rows: Sequence[AuditedRun], normalise: Callable[[str], str] | None) -> set[str]:
    """Figures that these rows cannot have, however the ratios come out."""
    if not rows:
        return set(ATTRIBUTION_FIGURES)
    alarms = [row for row in rows if row.outcome == "alarm"]
    failed = [row for row in rows if row.failed]

    def never(name: str, label: str = "") -> bool:
        unnamed = bool(alarms) and all(getattr(row, name) is None for row in alarms)
        return unnamed or (bool(label) and all(getattr(row, label) is None for row in failed))

    missing: set[str] = set()
    if never("step", "gold_step"):
        missing.update(_OF_STEPS, _OF_BOTH)
    if never("agent", "gold_agent"):
        missing.update(_OF_AGENTS, _OF_BOTH)
    if never("alarm_step"):
        missing.add("before_end")
    if normalise is None:
        missing.update(_NORMALISED)
    if any(row.calls and row.cost is None for row in rows):
        missing.update(_OF_COST)
    return missing


def ratio_of(parts: Ratio, sums: Mapping[str, Float]) -> Float:
    """A figure from its sums; float64 of one shape each, such as one a resample."""
    above = parts.times * sums[parts.above]
    below = sum((sums[name] for name in parts.below), np.zeros_like(above))
    needs = sums[parts.needs] if parts.needs else below
    return ratio(above, below, where=(below > 0) & (needs > 0))
