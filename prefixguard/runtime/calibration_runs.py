"""Runs that alarm thresholds are set on: which of them the monitor was not made from, and what is kept of each.

They are scored one at a time; numbers are kept, texts dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.alarm import AlarmPolicy, draw_one_per_task, run_maximum
from prefixguard.runtime.drift import RunSummary
from prefixguard.runtime.drift_signal import DriftReference
from prefixguard.runtime.monitor import Monitor
from prefixguard.runtime.session import Session
from prefixguard.stepview import StepRecord
from prefixguard.trace import Outcome, Run, Side, digest_of, task_hash, task_key

#: What a task may have been used for that makes its runs no ground for a threshold: the monitor, or its maps from
#: logits to risks, fit them better than new ones.
MADE_FROM = (Side.TRAIN, Side.VALIDATION, Side.CALIBRATION)
#: The same, and what set the thresholds.
USES = (*MADE_FROM, Side.ALARM)


class EarlierUse:
    """What the tasks and runs that a manifest names were used for."""

    __slots__ = ("_runs", "_tasks")

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        self._tasks, self._runs = (
            # the first of `USES` where a hash stands under several
            {digest: side for side in reversed(USES) for digest in (manifest.get(key) or {}).get(side.value, ())}
            for key in ("tasks", "runs")
        )

    def of(self, run: Run[StepRecord], digest: str) -> Side | None:
        """The first of `USES` that the run's task or its very words had; None for a new run.

        digest: `digest_of` of its records.
        """
        uses = {self._tasks.get(task_hash(task_key(run))), self._runs.get(digest)}
        return next((side for side in USES if side in uses), None)


def task_of(run: Run[StepRecord], digest: str) -> str:
    """The run's task; where it names none, all runs with the same words are one: a log may hold a run twice."""
    return task_key(run) if run.task_id is not None else f"words {digest}"


class NewTasks:
    """The runs that a drift signal is to be given: they are exchangeable with its reference if nothing has changed.

    Runs of one task are alike, and a monitor is surer of what it was made from; so the first run of each task counts,
    and none of tasks, or word-for-word repeats of runs, that the monitor was made or its thresholds were set with.
    """

    __slots__ = ("_earlier", "_seen")

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        self._earlier = EarlierUse(manifest)
        self._seen: set[str] = set()

    def take(self, run: Run[StepRecord]) -> bool:
        """Whether this run counts; if so, no later one of its task does."""
        task = task_of(run, digest_of(run))
        if task in self._seen or self.was_used(run):
            return False
        self._seen.add(task)
        return True

    def was_used(self, run: Run[StepRecord]) -> bool:
        """Whether the monitor was made, or its thresholds set, with the run's task or its very words."""
        return self._earlier.of(run, digest_of(run)) is not None


@dataclass(frozen=True, slots=True)
class CalibrationRun:
    """What is kept of one run.

    task: see `task_of`. use: what its task or words were used for before. risks: float64 (n,), the outcome risks of the
    steps that were judged. maximum: its `run_maximum`. summary: how the run looks.
    """

    run_id: str
    task: str
    task_hash: str
    names_task: bool
    digest: str
    use: Side | None
    outcome: Outcome
    groups: Mapping[str, str]
    length: int
    risks: NDArray[np.float64]
    maximum: float
    summary: RunSummary


@dataclass(slots=True)
class CalibrationRuns:
    """The runs that are used, and counts of the others.

    used: runs by what their task was used for before; those of `MADE_FROM` are left out, unless they were asked for.
    empty: runs without a step.
    """

    runs: list[CalibrationRun] = field(default_factory=list)
    used: Counter[Side] = field(default_factory=Counter)
    empty: int = 0

    @property
    def successful(self) -> list[CalibrationRun]:
        """Those that succeeded: thresholds are set on them."""
        return [run for run in self.runs if run.outcome is Outcome.SUCCESS]

    @property
    def n_failed(self) -> int:
        """Runs that failed."""
        return sum(run.outcome is Outcome.FAILURE for run in self.runs)

    @property
    def n_made_from(self) -> int:
        """Runs of tasks that the monitor was made from, whether they are used or left out."""
        return sum(self.used[side] for side in MADE_FROM)

    def drift_reference(self, seed: int) -> dict[str, Any] | None:
        """What later runs are compared with: one run a task, of any outcome, that the monitor was not made from, drawn
        by seed. None where no step of theirs could be judged."""
        looks = [run.summary for run in draw([run for run in self.runs if run.use not in MADE_FROM], seed)]
        if all(look.largest_risk is None for look in looks):
            return None
        return DriftReference.of(looks).to_json()


def draw(runs: list[CalibrationRun], seed: int) -> list[CalibrationRun]:
    """One of these runs for each task, by seed."""
    drawn = draw_one_per_task([run.task for run in runs], [run.run_id for run in runs], seed=seed)
    return [runs[i] for i in drawn.tolist()]


def collect(
    monitor: Monitor,
    runs: Iterable[Run[StepRecord]],
    policy: AlarmPolicy,
    *,
    include_used: bool,
    progress: Callable[[int], None] | None,
) -> CalibrationRuns:
    """Score the runs by the monitor's own steps. include_used: those of tasks the monitor was made from as well."""
    earlier, found = EarlierUse(monitor.bundle.manifest), CalibrationRuns()
    for count, run in enumerate(runs, 1):
        if progress is not None:
            progress(count)
        if not run.records:
            found.empty += 1
            continue
        digest = digest_of(run)
        use = earlier.of(run, digest)
        if use is not None:
            found.used[use] += 1
            if use in MADE_FROM and not include_used:
                continue
        session = Session(monitor, None)
        readings = [session.observe_record(record) for record in run.records]
        risks = np.array([r.outcome_risk for r in readings if r.outcome_risk is not None], dtype=np.float64)
        found.runs.append(
            CalibrationRun(
                run_id=run.run_id,
                task=task_of(run, digest),
                task_hash=task_hash(task_key(run)),
                names_task=run.task_id is not None,
                digest=digest,
                use=use,
                outcome=run.outcome,
                groups=dict(run.groups),
                length=len(run.records),
                risks=risks,
                maximum=run_maximum(risks, policy),
                summary=session.summary(readings),
            )
        )
    return found
