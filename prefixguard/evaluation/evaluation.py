"""Evaluate a monitor on runs, without those it was made from."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from prefixguard.alarm import Thresholds, draw_one_per_task, table_from_json
from prefixguard.bundle import Bundle
from prefixguard.errors import DataError
from prefixguard.evaluation.actors import choose_groups
from prefixguard.evaluation.alerts import AlarmGroups
from prefixguard.evaluation.analyses import Transitions, automaton_fidelity
from prefixguard.evaluation.rows import ScoreRow
from prefixguard.evaluation.rules import rule_rows, rule_scores
from prefixguard.evaluation.scoring import RESAMPLES, evaluate_scores
from prefixguard.evaluation.table import EvaluationTable, LeftOut, RunKey
from prefixguard.runtime import Monitor, Reading, load
from prefixguard.stepview import Adapter, ReadReport, SpooledRuns, StepRecord, read_runs, serialize
from prefixguard.trace import Outcome, Run, Side, run_digest, task_hash, task_key

#: What a task may have been used for that makes its runs no test of the monitor.
USES = (Side.TRAIN, Side.VALIDATION, Side.CALIBRATION, Side.ALARM)


#: Further rows over the runs evaluated, which are given in their order.
Beside = Callable[[Sequence[RunKey]], Sequence[ScoreRow]]


def evaluate(
    monitor: Monitor | str | os.PathLike[str],
    runs: str | os.PathLike[str] | Iterable[Run[StepRecord]],
    *,
    adapter: str | Path | Adapter | None = None,
    labels: str | os.PathLike[str] | None = None,
    all: bool = False,
    strict: bool = False,
    group_by: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = 13,
    beside: Beside | None = None,
    progress: Callable[[int], None] | None = None,
) -> EvaluationTable:
    """How good a monitor is on runs it has not seen.

    Runs are left out whose task, or whose word-for-word repeat, the monitor was trained, validated or calibrated on
    (its manifest holds their hashes), and runs whose outcome is unknown; the table says how many. Runs are read, scored
    and dropped one at a time.

    monitor: an opened monitor, or the folder of its bundle.
    runs: parsed runs, or a file, folder, glob or tar that the monitor's own adapter reads, with `labels` beside it.
    adapter: the one that is meant; another than the monitor's own is refused.
    all: count the runs of tasks the monitor was made from too; the table then says IN SAMPLE.
    strict: a run that cannot be read is an error, not a skip.
    group_by: the group (agent, file, ...) within which runs are compared; None: the first of agent, model and file
        that has two values here.
    resamples, seed: of the bootstrap over tasks. beside: makes further rows, such as `controls.controls_beside`.
    progress: called with the number of runs read so far.
    Raises DataError where no run is left, TraceError, BundleError and OtherAdapterError as `read_runs`
    and `load` do.
    """
    opened = monitor if isinstance(monitor, Monitor) else load(monitor)
    opened.refuse_other(adapter, os.fspath(runs) if isinstance(runs, (str, os.PathLike)) else "-")
    report = runs.report if isinstance(runs, SpooledRuns) else ReadReport()
    parsed: Iterable[Run[StepRecord]]
    if isinstance(runs, (str, os.PathLike)):
        source = runs if isinstance(runs, str) else Path(runs)
        companion = None if labels is None else Path(labels)
        parsed = read_runs(source, opened.bundle.adapter, labels=companion, strict=strict, report=report)
    else:
        parsed = runs
    collected = _collect(opened, parsed, include_used=all, progress=progress)
    if not collected.tasks:
        raise DataError(_nothing_left(collected.used, collected.without_outcome))
    notes = list(collected.notes(opened.bundle))
    notes.extend(report.left_out())
    name, groups = choose_groups(collected.groups, group_by)
    used = sum(collected.used.values())
    bundle = opened.bundle
    policy, thresholds = bundle.calibration.policy, alarm_thresholds(bundle)
    rules = rule_rows(collected.rules, collected.tuning(bundle), policy, list(thresholds))
    further = beside(collected.keys) if beside is not None else ()
    table = evaluate_scores(
        collected.imminent,
        collected.outcome,
        collected.failed,
        collected.tasks,
        groups=groups,
        grouped_by=name,
        horizon=3 if bundle.horizon is None else bundle.horizon,
        policy=policy,
        thresholds=thresholds,
        baselines=[*rules, *further],
        calibration_lengths=bundle.manifest.get("alarm_lengths"),
        resamples=resamples,
        seed=seed,
        left_out=LeftOut(
            by_use={} if all else {use.value: collected.used[use.value] for use in USES},
            without_outcome=collected.without_outcome,
            empty=collected.empty + sum(report.empty.values()),
            in_sample=used if all else 0,
        ),
        notes=notes,
        alarm_groups=AlarmGroups.of(bundle, collected.groups),
        sizes=collected.sizes,
    )
    if table.behind is not None:
        table = replace(table, behind=replace(table.behind, keys=tuple(collected.keys)))
    fidelity = automaton_fidelity(bundle, collected.transitions)
    return table if fidelity is None else replace(table, sections={"automaton": fidelity, **table.sections})


def alarm_thresholds(bundle: Bundle) -> dict[float, Thresholds]:
    """The thresholds a bundle carries, by budget: its manifest's alarm table, and the one its policy uses.

    Raises BundleError if the table cannot be read.
    """
    where = str(bundle.path / "manifest.json")
    table = table_from_json(bundle.manifest.get("alarm_table", ()), where)
    table[bundle.calibration.policy.budget] = bundle.calibration.thresholds
    return dict(sorted(table.items()))


class _Collected:
    """What is kept of the runs: scores and labels, no text."""

    def __init__(self, bundle: Bundle) -> None:
        self.transitions = Transitions(bundle.automaton) if bundle.automaton is not None else None
        self.imminent: list[npt.NDArray[np.float64]] = []
        self.outcome: list[npt.NDArray[np.float64]] = []
        self.rules: list[dict[str, npt.NDArray[np.float64]]] = []
        #: Task, run id and rule scores of the successful runs that the monitor's alarm was set by.
        self.alarm: list[tuple[str, str, dict[str, npt.NDArray[np.float64]]]] = []
        self.failed: list[bool] = []
        self.tasks: list[str] = []
        self.keys: list[RunKey] = []
        #: Bytes of text of each step, (T,) a run.
        self.sizes: list[npt.NDArray[np.float64]] = []
        self.groups: list[Mapping[str, str]] = []
        self.used: Counter[str] = Counter()
        self.without_outcome = 0
        self.without_task = 0
        self.empty = 0
        self.digests: set[str] = set()
        self.repeats = 0

    def tuning(self, bundle: Bundle) -> list[dict[str, npt.NDArray[np.float64]]] | None:
        """Rule scores of the runs that set the monitor's alarm, one a task; None where they are not among the runs."""
        seed = bundle.manifest.get("seed")
        tasks, run_ids = [task for task, _, _ in self.alarm], [run_id for _, run_id, _ in self.alarm]
        drawn = draw_one_per_task(tasks, run_ids, seed=seed if isinstance(seed, int) else 0)
        return [self.alarm[i][2] for i in drawn.tolist()] or None

    def notes(self, bundle: Bundle) -> Iterable[str]:
        if not bundle.manifest.get("tasks"):
            yield (
                "The bundle does not say which tasks it was made from, so none could be left out: make sure that "
                "these runs are new to it."
            )
        if self.without_task:
            yield f"{self.without_task} runs name no task; each counts as a task of its own."
        if self.repeats:
            yield f"{self.repeats} runs say word for word what another run says."


def _collect(
    monitor: Monitor,
    runs: Iterable[Run[StepRecord]],
    *,
    include_used: bool,
    progress: Callable[[int], None] | None,
) -> _Collected:
    used_tasks = _uses(monitor.bundle.manifest, "tasks")
    used_runs = _uses(monitor.bundle.manifest, "runs")
    kept = _Collected(monitor.bundle)
    for count, run in enumerate(runs, 1):
        if progress is not None:
            progress(count)
        if not run.records:
            kept.empty += 1
            continue
        if run.outcome is Outcome.UNKNOWN:
            kept.without_outcome += 1
            continue
        key = task_key(run)
        digest = run_digest(run.records)
        use = used_tasks.get(task_hash(key)) or used_runs.get(digest)
        if use is not None:
            kept.used[use] += 1
            if use == Side.ALARM.value and run.outcome is Outcome.SUCCESS:
                kept.alarm.append((key, run.run_id, rule_scores(run.records)))
            if not include_used:
                continue
        readings = monitor.score_run(run.records)
        kept.imminent.append(_risks(readings, "imminent_risk"))
        kept.outcome.append(_risks(readings, "outcome_risk"))
        if kept.transitions is not None:
            kept.transitions.add(readings)
        kept.rules.append(rule_scores(run.records))
        kept.failed.append(run.outcome is Outcome.FAILURE)
        kept.tasks.append(key)
        kept.keys.append((run.run_id, digest))
        kept.sizes.append(np.array([len(serialize(record)) for record in run.records], dtype=np.float64))
        kept.groups.append(run.groups)
        kept.without_task += run.task_id is None
        kept.repeats += digest in kept.digests
        kept.digests.add(digest)
    return kept


def _uses(manifest: Mapping[str, Any], key: str) -> dict[str, str]:
    """Hash -> what it was used for."""
    named = manifest.get(key) or {}
    return {digest: use.value for use in reversed(USES) for digest in named.get(use.value, ())}


def _risks(readings: Sequence[Reading], name: str) -> npt.NDArray[np.float64]:
    values = (getattr(reading, name) for reading in readings)
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _nothing_left(used: Counter[str], without_outcome: int) -> str:
    n_used = sum(used.values())
    if n_used:
        parts = ", ".join(f"{used[use.value]} {use.value}" for use in USES if used[use.value])
        rest = f", {without_outcome} have no outcome" if without_outcome else ""
        return (
            f"no run is left to evaluate: {n_used} belong to tasks the monitor was made from ({parts}){rest}. Give "
            "runs of other tasks, or --all to count these too, marked as in-sample."
        )
    if without_outcome:
        return (
            f"no run is left to evaluate: none of {without_outcome} has an outcome. Give a labels file "
            "(run_id,outcome), or use `prefixguard score`, which needs none."
        )
    return "there is no run to evaluate. See what the adapter reads with: prefixguard parse RUNS"
