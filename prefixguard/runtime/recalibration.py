"""New alarm thresholds from new successful runs, without retraining.

Needs what watching needs and no more: it can be done where the monitor runs.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from prefixguard.alarm import (
    AlarmPolicy,
    GroupThresholds,
    Thresholds,
    alarm_table,
    alarm_threshold,
    group_thresholds,
    table_to_json,
    watch_threshold,
    watched,
)
from prefixguard.bundle import Bundle, check_target, open_bundle, parts_of, write_bundle
from prefixguard.errors import DataError
from prefixguard.runtime.calibration_runs import MADE_FROM, CalibrationRuns, collect
from prefixguard.runtime.monitor import Monitor, load
from prefixguard.stepview import Adapter, ReadReport, StepRecord, read_runs
from prefixguard.trace import Run, Side

#: Pictures of an automaton that show the marks of the monitor before.
_STALE = ("automaton.dot", "automaton.svg", "automaton.html")
#: More values than this are no groups.
_MOST_GROUPS = 200


@dataclass(frozen=True, slots=True)
class CalibrateResult:
    """What a calibration made.

    path, id: the new bundle. manifest: its facts; `recalibration` says what the marks were set on.
    thresholds: in force for all runs but those of a group with its own; their `reason` says why the budget was refused.
    groups: thresholds by group; None where no group has its own. report: what reading the runs counted.
    notes: sentences for people.
    """

    path: Path
    id: str
    manifest: Mapping[str, Any]
    policy: AlarmPolicy
    thresholds: Thresholds
    groups: GroupThresholds | None
    report: ReadReport
    notes: tuple[str, ...]


def calibrate(
    monitor: Monitor | str | os.PathLike[str],
    runs: str | os.PathLike[str] | Iterable[Run[StepRecord]],
    *,
    out: str | os.PathLike[str] | None = None,
    budget: float | None = None,
    confidence: float | None = None,
    consecutive: int | None = None,
    release: float | None = None,
    cooldown: int | None = None,
    group_by: str | None = None,
    labels: str | os.PathLike[str] | None = None,
    adapter: str | Path | Adapter | None = None,
    all: bool = False,
    strict: bool = False,
    seed: int = 13,
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
) -> CalibrateResult:
    """Set a monitor's alarm threshold and watch mark anew, on runs it was not made from, and write a new bundle.

    The alarm threshold rests on one successful run a task, each scored by the monitor's own steps; the watch
    mark on every step of every run that is used, whatever its outcome; what later runs are compared with (see
    `Monitor.drift_signal`) on one run a task, whatever its outcome. Runs are left out whose task, or whose
    word-for-word repeat, the monitor was trained, validated or calibrated on; runs that set its thresholds before may
    set them again.

    monitor: an opened monitor, or the folder of its bundle, which stays as it is. out: folder of the new bundle, by
    default beside the monitor's, its name with "-calibrated"; to replace the monitor, name its own with `overwrite`.
    runs: parsed runs, or a file, folder, glob or tar that the monitor's own adapter reads, with `labels` beside it.
    budget, confidence, consecutive, release, cooldown: of the alarm, see `AlarmPolicy`; None: the monitor's own.
    group_by: a group of the runs (tier, tool ...) whose values get thresholds of their own where they have enough runs.
    adapter: the one that is meant; another than the monitor's own is refused.
    all: use the runs of tasks the monitor was made from too; the bundle then says that its bound does not hold.
    strict: a run that cannot be read is an error, not a skip. seed: draws one run of each task.
    progress: called with the number of runs read so far.
    Where the runs are too few for the budget, the bundle is written without an alarm and `thresholds.reason` says how
    many are needed. The same monitor, runs and options give the same bundle.
    Raises DataError where no successful run is left or no run has the group, ConfigError for a policy out of range, and
    BundleError, OtherAdapterError, TraceError and OutputError as `load`, `read_runs` and `write_bundle` do.
    """
    opened = monitor if isinstance(monitor, Monitor) else load(monitor)
    opened.refuse_other(adapter, os.fspath(runs) if isinstance(runs, str | os.PathLike) else "-")
    bundle = opened.bundle
    wanted = {
        "budget": budget,
        "confidence": confidence,
        "consecutive": consecutive,
        "release": release,
        "cooldown": cooldown,
    }
    changed: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    policy = replace(bundle.calibration.policy, **changed)
    path = Path(out) if out is not None else _beside(bundle.path)
    check_target(path, overwrite)  # before all the reading
    report = ReadReport()
    if isinstance(runs, str | os.PathLike):
        source = runs if isinstance(runs, str) else Path(runs)
        companion = None if labels is None else Path(labels)
        runs = read_runs(source, bundle.adapter, labels=companion, strict=strict, report=report)
    found = collect(opened, runs, policy, include_used=all, group_by=group_by, progress=progress)
    if not found.n_successful:
        raise DataError(_nothing_left(found))
    return _write(bundle, found, policy, path, group_by, seed, in_sample=all, overwrite=overwrite, report=report)


def _write(
    bundle: Bundle,
    found: CalibrationRuns,
    policy: AlarmPolicy,
    path: Path,
    group_by: str | None,
    seed: int,
    *,
    in_sample: bool,
    overwrite: bool,
    report: ReadReport,
) -> CalibrateResult:
    drawn = found.draw(seed)
    maxima = [found.maxima[i] for i in drawn]
    mark = watch_threshold(np.concatenate(found.step_risks)) if found.step_risks else 1.0
    thresholds = watched(alarm_threshold(maxima, policy), mark)
    groups, group_notes = _by_group(found, policy, mark, group_by, seed)
    used = sum(found.used[side] for side in MADE_FROM)
    parts = parts_of(bundle)
    info = _info(parts.info, found, drawn)
    info["alarm_table"] = table_to_json(alarm_table(maxima, policy, watch=thresholds.watch))
    info.pop("drift", None)  # of the runs before
    if (reference := found.drift_reference(seed)) is not None:
        info["drift"] = reference
    info["recalibration"] = {
        "monitor": bundle.id,
        "runs": found.n_runs,
        "successful": found.n_successful,
        "failed": found.n_failed,
        "without_outcome": found.n_runs - found.n_successful - found.n_failed,
        "drawn": sorted(found.digests[i] for i in drawn),
        "left_out": {} if in_sample else {side.value: found.used[side] for side in MADE_FROM},
        "in_sample": used if in_sample else 0,
        "empty": found.empty + sum(report.empty.values()),
        "seed": seed,
        "group_by": group_by,
        "groups": {} if groups is None else {value: one.n_runs for value, one in groups.of.items()},
    }
    notes = [*_notes(found, thresholds, used, in_sample=in_sample), *group_notes]
    if any(name in parts.pictures for name in _STALE):
        notes.append("The automaton's picture shows the marks of before and is left out.")
    calibration = replace(bundle.calibration, thresholds=thresholds, policy=policy, groups=groups)
    pictures = {name: data for name, data in parts.pictures.items() if name not in _STALE}
    new = replace(parts, calibration=calibration, info=info, pictures=pictures)
    identifier = write_bundle(path, new, overwrite=overwrite)
    manifest = open_bundle(path).manifest
    return CalibrateResult(path, identifier, manifest, policy, thresholds, groups, report, tuple(notes))


def _beside(path: Path) -> Path:
    named = path if path.name not in ("", "..") else Path(os.path.realpath(path))
    return named.with_name(f"{named.name}-calibrated")


def _by_group(
    found: CalibrationRuns, policy: AlarmPolicy, mark: float, group_by: str | None, seed: int
) -> tuple[GroupThresholds | None, list[str]]:
    """Thresholds by group, None where no group has enough runs; and what to say of those that have not."""
    if group_by is None:
        return None, []
    values = sorted({value for value in found.groups if value is not None})
    if not values:
        known = ", ".join(sorted(found.known_groups)) or "none"
        raise DataError(f"no successful run has a group {group_by!r}. Groups of these runs: {known}.")
    if len(values) > _MOST_GROUPS:
        raise DataError(
            f"{group_by!r} has {len(values):,} values, at most {_MOST_GROUPS} can have thresholds of their own. "
            "Group by something that many runs share."
        )
    maxima = {value: [found.maxima[i] for i in found.draw(seed, value)] for value in values}
    groups = group_thresholds(group_by, maxima, policy, watch=mark)
    few = {value: one.n_runs for value, one in groups.of.items() if one.alarm is None}
    notes = []
    if few:
        needed = next(iter(groups.of.values())).needed
        shown = ", ".join(f"{value} {count}" for value, count in list(few.items())[:5])
        more = f" and {len(few) - 5} more" if len(few) > 5 else ""
        notes.append(
            f"{len(few)} of {len(values)} values of {group_by} have fewer than the {needed} tasks with a successful "
            f"run that the budget needs ({shown}{more}): their runs go by the common threshold, which keeps the budget "
            "over runs of all values together, not within theirs."
        )
    without = sum(value is None for value in found.groups)
    if without:
        notes.append(f"{without:,} successful runs have no group {group_by}; they count for the common threshold.")
    return (groups if len(few) < len(values) else None), notes


def _info(before: Mapping[str, Any], found: CalibrationRuns, drawn: list[int]) -> dict[str, Any]:
    """The manifest's facts of before, with the tasks and runs that are used now on the alarm side."""
    info = dict(before)
    for what, now in (("tasks", found.task_hashes), ("runs", found.all_digests)):
        stood = {side: set(names) for side, names in (info.get(what) or {}).items()}
        kept = {side: names - now if side == Side.TEST.value else names for side, names in stood.items()}
        made_from = set().union(*(kept.get(side.value, set()) for side in MADE_FROM))
        kept[Side.ALARM.value] = kept.get(Side.ALARM.value, set()) | (now - made_from)
        info[what] = {side: sorted(names) for side, names in kept.items()}
    info["alarm_lengths"] = [found.lengths[i] for i in drawn]
    return info


def _notes(found: CalibrationRuns, thresholds: Thresholds, used: int, *, in_sample: bool) -> list[str]:
    notes = []
    if used:
        by = ", ".join(f"{found.used[side]} {side.value}" for side in MADE_FROM if found.used[side])
        if in_sample:
            notes.append(
                f"IN SAMPLE: {used} of these runs are of tasks the monitor was made from ({by}). It is surer of them "
                "than of new ones, so the bound does not hold; the bundle says so."
            )
        else:
            notes.append(f"{used} runs of tasks the monitor was made from were left out ({by}).")
    if found.used[Side.ALARM]:
        notes.append(f"{found.used[Side.ALARM]} runs are of tasks that set the thresholds before; they set them again.")
    if found.repeats:
        notes.append(f"{found.repeats} runs repeat another word for word.")
    if found.without_task:
        notes.append(
            f"{found.without_task} runs name no task: each counts as a task of its own, those that are word for word "
            "the same as one."
        )
    if found.unjudged:
        notes.append(
            f"In {found.unjudged} successful runs no step could be judged; they count as runs without an alarm. See "
            "why: prefixguard score"
        )
    if thresholds.reason:
        notes.append(f"no alarm: {thresholds.reason} The bundle says WATCH and OK only.")
    return notes


def _nothing_left(found: CalibrationRuns) -> str:
    used: Counter[Side] = found.used
    n_used = sum(used[side] for side in MADE_FROM)
    without = found.n_runs - found.n_failed
    if n_used and not found.n_runs:
        by = ", ".join(f"{used[side]} {side.value}" for side in MADE_FROM if used[side])
        return (
            f"no run is left to calibrate on: {n_used} belong to tasks the monitor was made from ({by}). Give runs of "
            "other tasks, or --all to use these, marked as in-sample."
        )
    if without:
        return (
            f"no run is known to have succeeded: {without} have no outcome, {found.n_failed} failed. Give a labels "
            "file (run_id,outcome)."
        )
    if found.n_failed:
        return f"all {found.n_failed} runs failed: a false-alarm budget is set on runs that succeeded. Give some."
    return "there is no run to calibrate on. See what the adapter reads with: prefixguard parse RUNS"
