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
from prefixguard.trace import Outcome, Run, Side, run_digest, task_hash, task_key

#: What a task may have been used for that makes its runs no ground for a threshold: the monitor, or its maps from
#: logits to risks, fit them better than new ones.
MADE_FROM = (Side.TRAIN, Side.VALIDATION, Side.CALIBRATION)
#: The same, and what set the thresholds.
USES = (*MADE_FROM, Side.ALARM)


def uses_of(manifest: Mapping[str, Any], key: str) -> dict[str, Side]:
    """Hash -> what it was used for; the first of `USES` where a hash stands under several. key: `tasks` or `runs`."""
    named = manifest.get(key) or {}
    return {digest: side for side in reversed(USES) for digest in named.get(side.value, ())}


def task_of(run: Run[StepRecord], digest: str) -> str:
    """The run's task; where it names none, all runs with its very words are one: a log may stand there twice.

    digest: `run_digest` of its records.
    """
    return task_key(run) if run.task_id is not None else f"words {digest}"


class NewTasks:
    """The runs that a drift signal is to be given: they are exchangeable with its reference if nothing has changed.

    Runs of one task are alike, and a monitor is surer of what it was made from; so the first run of each task counts,
    and none of tasks, or word-for-word repeats of runs, that the monitor was made or its thresholds were set with.
    """

    __slots__ = ("_digests", "_seen", "_tasks")

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        self._tasks, self._digests = uses_of(manifest, "tasks"), uses_of(manifest, "runs")
        self._seen: set[str] = set()

    def take(self, run: Run[StepRecord]) -> bool:
        """Whether this run counts; if so, no later one of its task does."""
        task = task_of(run, run_digest(run.records))
        if task in self._seen or self.was_used(run):
            return False
        self._seen.add(task)
        return True

    def was_used(self, run: Run[StepRecord]) -> bool:
        """Whether the monitor was made, or its thresholds set, with the run's task or its very words."""
        return task_hash(task_key(run)) in self._tasks or run_digest(run.records) in self._digests


@dataclass(slots=True)
class CalibrationRuns:
    """What is kept of the runs that are used.

    Of successful runs, one entry each: maxima (`run_maximum`), tasks (where a run names none, all runs with its very
    words are one), run_ids, digests, lengths, groups (value of the group asked for, None where the run has none).
    Of all runs: step_risks (the outcome risks that were judged), task_hashes, all_digests, counts.
    Of runs of any outcome that the monitor was not made from: looks (task, run id, how the run looks).
    used: runs by what their task was used for before; those of `MADE_FROM` are left out, unless they were asked for.
    """

    maxima: list[float] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    run_ids: list[str] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    groups: list[str | None] = field(default_factory=list)
    step_risks: list[NDArray[np.float64]] = field(default_factory=list)
    looks: list[tuple[str, str, RunSummary]] = field(default_factory=list)
    task_hashes: set[str] = field(default_factory=set)
    all_digests: set[str] = field(default_factory=set)
    known_groups: set[str] = field(default_factory=set)
    used: Counter[Side] = field(default_factory=Counter)
    n_runs: int = 0
    n_failed: int = 0
    without_task: int = 0
    repeats: int = 0
    unjudged: int = 0
    empty: int = 0

    @property
    def n_successful(self) -> int:
        """Successful runs that are used."""
        return len(self.maxima)

    def draw(self, seed: int, group: str | None = None) -> list[int]:
        """Positions of one successful run a task, by seed. group: among the runs of this value only."""
        places = [i for i, value in enumerate(self.groups) if group is None or value == group]
        tasks, run_ids = [self.tasks[i] for i in places], [self.run_ids[i] for i in places]
        return [places[i] for i in draw_one_per_task(tasks, run_ids, seed=seed).tolist()]

    def drift_reference(self, seed: int) -> dict[str, Any] | None:
        """What later runs are compared with: one run a task, by seed. None where no step of theirs could be judged."""
        drawn = draw_one_per_task([task for task, _, _ in self.looks], [name for _, name, _ in self.looks], seed=seed)
        looks = [self.looks[i][2] for i in drawn.tolist()]
        if all(look.largest_risk is None for look in looks):
            return None
        return DriftReference.of(looks).to_json()


def collect(
    monitor: Monitor,
    runs: Iterable[Run[StepRecord]],
    policy: AlarmPolicy,
    *,
    include_used: bool,
    group_by: str | None,
    progress: Callable[[int], None] | None,
) -> CalibrationRuns:
    """Score the runs by the monitor's own steps. include_used: those of tasks the monitor was made from as well."""
    tasks, digests = uses_of(monitor.bundle.manifest, "tasks"), uses_of(monitor.bundle.manifest, "runs")
    found = CalibrationRuns()
    for count, run in enumerate(runs, 1):
        if progress is not None:
            progress(count)
        if not run.records:
            found.empty += 1
            continue
        key, digest = task_key(run), run_digest(run.records)
        uses = {tasks.get(task_hash(key)), digests.get(digest)}
        use = next((side for side in USES if side in uses), None)
        if use is not None:
            found.used[use] += 1
            if use in MADE_FROM and not include_used:
                continue
        session = Session(monitor, None)
        readings = [session.observe_record(record) for record in run.records]
        said = (reading.outcome_risk for reading in readings)
        risks = np.array([risk for risk in said if risk is not None], dtype=np.float64)
        if use not in MADE_FROM:
            found.looks.append((task_of(run, digest), run.run_id, session.summary(readings)))
        found.n_runs += 1
        found.without_task += run.task_id is None
        found.repeats += digest in found.all_digests
        found.step_risks.append(risks)
        found.task_hashes.add(task_hash(key))
        found.all_digests.add(digest)
        found.n_failed += run.outcome is Outcome.FAILURE
        if run.outcome is not Outcome.SUCCESS:
            continue
        found.unjudged += len(risks) == 0
        found.maxima.append(run_maximum(risks, policy))
        found.tasks.append(task_of(run, digest))
        found.run_ids.append(run.run_id)
        found.digests.append(digest)
        found.lengths.append(len(run.records))
        found.known_groups.update(run.groups)
        found.groups.append(run.groups.get(group_by) if group_by is not None else None)
    return found
