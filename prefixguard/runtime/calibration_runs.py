"""Runs that alarm thresholds are set on: scored one at a time, numbers kept, texts dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.alarm import AlarmPolicy, draw_one_per_task, run_maximum
from prefixguard.runtime.monitor import Monitor
from prefixguard.stepview import StepRecord
from prefixguard.trace import Outcome, Run, Side, run_digest, task_hash, task_key

#: What a task may have been used for that makes its runs no ground for a threshold: the monitor, or its maps from
#: logits to risks, fit them better than new ones.
MADE_FROM = (Side.TRAIN, Side.VALIDATION, Side.CALIBRATION)
_USES = (*MADE_FROM, Side.ALARM)


@dataclass(slots=True)
class CalibrationRuns:
    """What is kept of the runs that are used.

    Of successful runs, one entry each: maxima (`run_maximum`), tasks (where a run names none, all runs with its very
    words are one), run_ids, digests, lengths, groups (value of the group asked for, None where the run has none).
    Of all runs: step_risks (the outcome risks that were judged), task_hashes, all_digests, counts.
    used: runs by what their task was used for before; those of `MADE_FROM` are left out, unless they were asked for.
    """

    maxima: list[float] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    run_ids: list[str] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    groups: list[str | None] = field(default_factory=list)
    step_risks: list[NDArray[np.float64]] = field(default_factory=list)
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
    tasks, digests = _uses(monitor.bundle.manifest, "tasks"), _uses(monitor.bundle.manifest, "runs")
    found = CalibrationRuns()
    for count, run in enumerate(runs, 1):
        if progress is not None:
            progress(count)
        if not run.records:
            found.empty += 1
            continue
        key, digest = task_key(run), run_digest(run.records)
        uses = {tasks.get(task_hash(key)), digests.get(digest)}
        use = next((side for side in _USES if side in uses), None)
        if use is not None:
            found.used[use] += 1
            if use in MADE_FROM and not include_used:
                continue
        said = (reading.outcome_risk for reading in monitor.score_run(run.records))
        risks = np.array([risk for risk in said if risk is not None], dtype=np.float64)
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
        # A log that stands there twice, without tasks, must not count for two runs.
        found.tasks.append(key if run.task_id is not None else f"words {digest}")
        found.run_ids.append(run.run_id)
        found.digests.append(digest)
        found.lengths.append(len(run.records))
        found.known_groups.update(run.groups)
        found.groups.append(run.groups.get(group_by) if group_by is not None else None)
    return found


def _uses(manifest: Mapping[str, Any], key: str) -> dict[str, Side]:
    """Hash -> what it was used for; the first of `_USES` where a hash stands under several."""
    named = manifest.get(key) or {}
    return {digest: side for side in reversed(_USES) for digest in named.get(side.value, ())}
