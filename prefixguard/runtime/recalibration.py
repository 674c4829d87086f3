"""New alarm thresholds from new successful runs, without retraining.

Needs what watching needs and no more: it can be done where the monitor runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
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
from prefixguard.bundle import Automaton, cap_imminent, check_target, open_bundle, parts_of, write_bundle
from prefixguard.errors import DataError
from prefixguard.runtime.calibration_runs import MADE_FROM, CalibrationRun, CalibrationRuns, collect, draw
from prefixguard.runtime.monitor import Monitor, load
from prefixguard.stepview import Adapter, ReadReport, StepRecord, read_runs
from prefixguard.trace import Run, Side

#: Pictures of an automaton that show the thresholds of the monitor before.
_STALE = ("automaton.dot", "automaton.svg", "automaton.html")
#: More values than this are no groups.
_MOST_GROUPS = 200


@dataclass(frozen=True, slots=True)
class CalibrateResult:
    """What a calibration made.

    path, id: the new bundle. manifest: its facts; `recalibration` says what the thresholds were set on.
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
    """Set a monitor's alarm threshold and watch threshold anew, on runs it was not made from, and write a new bundle.

    The alarm threshold rests on one successful run a task, each scored by the monitor's own steps; the watch
    threshold on every step of every run that is used, whatever its outcome; what later runs are compared with (see
    `Monitor.drift_signal`) on one run a task, whatever its outcome. Runs are left out whose task, or whose
    word-for-word repeat, the monitor was trained, validated or calibrated on; runs that set its thresholds before may
    set them again.

    monitor: an opened monitor, or the folder of its bundle, which stays as it is.
    out : folder of the new bundle. Default: the monitor's, with -calibrated. To replace the monitor, name its own with
        `overwrite`.
    runs: parsed runs, or a file, folder, glob or tar that the monitor's own adapter reads. labels: a file of outcomes.
    budget : at most this share of successful runs may raise an alarm. Default: the monitor's.
    confidence : how sure the budget is to hold. Default: the monitor's.
    consecutive : steps in a row above the threshold before the alarm sounds. Default: the monitor's.
    release : risk below which a sounding alarm stops. Default: the monitor's.
    cooldown : steps after a release without a new alarm. Default: the monitor's.
    group_by : a group of the runs (tier, tool ...) whose values get thresholds of their own where they have enough
        runs.
    adapter: the one that is meant; another than the monitor's own is refused.
    all: use the runs of tasks the monitor was made from too; the bundle then says that its bound does not hold.
    strict: a run that cannot be read is an error, not a skip.
    seed : draws one successful run of each task.
    progress: called with the number of runs read so far.
    Where the runs are too few for the budget, the bundle is written without an alarm and `thresholds.reason` says how
    many are needed. The same monitor, runs and options give the same bundle.
    Raises DataError where no successful run is left or no run has the group, ConfigError for a policy out of range, and
    BundleError, OtherAdapterError, TraceError and OutputError as `load`, `read_runs` and `write_bundle` do.
    """
    opened = (monitor if isinstance(monitor, Monitor) else load(monitor)).with_model("Calibration")
    opened.refuse_other(adapter, os.fspath(runs) if isinstance(runs, str | os.PathLike) else "-")
    bundle = opened.bundle
    options = (budget, confidence, consecutive, release, cooldown)  # in the order of the policy's fields
    asked = zip(fields(AlarmPolicy), options, strict=True)
    changed: dict[str, Any] = {field.name: value for field, value in asked if value is not None}
    policy = replace(bundle.calibration.policy, **changed)
    path = Path(out) if out is not None else _beside(bundle.path)
    check_target(path, overwrite)  # before all the reading
    report = ReadReport()
    if isinstance(runs, str | os.PathLike):
        source = runs if isinstance(runs, str) else Path(runs)
        companion = None if labels is None else Path(labels)
        runs = read_runs(source, bundle.adapter, labels=companion, strict=strict, report=report)
    found = collect(opened, runs, policy, include_used=all, progress=progress)
    successful = found.successful
    if not successful:
        raise DataError(_nothing_left(found))
    drawn = draw(successful, seed)
    maxima = [run.maximum for run in drawn]
    watch = watch_threshold(np.concatenate([run.risks for run in found.runs]))
    thresholds = watched(alarm_threshold(maxima, policy), watch)
    groups, group_notes = _by_group(found, policy, watch, group_by, seed)
    parts = parts_of(bundle if bundle.automaton is None else replace(bundle, automaton=_capped(bundle.automaton)))
    info = {**parts.info, **_uses(parts.info, found.runs), "alarm_lengths": [run.length for run in drawn]}
    info["alarm_table"] = table_to_json(alarm_table(maxima, policy, watch=thresholds.watch))
    info.pop("drift", None)  # of the runs before
    if (reference := found.drift_reference(seed)) is not None:
        info["drift"] = reference
    info["recalibration"] = {
        "monitor": bundle.id,
        "runs": len(found.runs),
        "successful": len(successful),
        "failed": found.n_failed,
        "without_outcome": len(found.runs) - len(successful) - found.n_failed,
        "drawn": sorted(run.digest for run in drawn),
        "left_out": {} if all else {side.value: found.used[side] for side in MADE_FROM},
        "in_sample": found.n_made_from if all else 0,
        "empty": found.empty + sum(report.empty.values()),
        "seed": seed,
        "group_by": group_by,
        "groups": {} if groups is None else {value: one.n_runs for value, one in groups.of.items()},
    }
    notes = [*_notes(found, thresholds, in_sample=all), *group_notes]
    if any(name in parts.pictures for name in _STALE):
        notes.append("The automaton's picture shows the thresholds of before and is left out.")
    calibration = replace(bundle.calibration, thresholds=thresholds, policy=policy, groups=groups)
    pictures = {name: data for name, data in parts.pictures.items() if name not in _STALE}
    new = replace(parts, calibration=calibration, info=info, pictures=pictures)
    identifier = write_bundle(path, new, overwrite=overwrite)
    manifest = open_bundle(path).manifest
    return CalibrateResult(path, identifier, manifest, policy, thresholds, groups, report, tuple(notes))


def _capped(automaton: Automaton) -> Automaton:
    """Releases before 0.4.0 wrote automata with imminent risks above the outcome risk."""
    return replace(automaton, risk=cap_imminent(automaton.risk), interval=cap_imminent(automaton.interval))


def _beside(path: Path) -> Path:
    named = path if path.name not in ("", "..") else Path(os.path.realpath(path))
    return named.with_name(f"{named.name}-calibrated")


def _by_group(
    found: CalibrationRuns, policy: AlarmPolicy, watch: float, group_by: str | None, seed: int
) -> tuple[GroupThresholds | None, list[str]]:
    """Thresholds by group, None where no group has enough runs; and what to say of those that have not."""
    if group_by is None:
        return None, []
    of_value: dict[str, list[CalibrationRun]] = {}
    for run in found.successful:
        if group_by in run.groups:
            of_value.setdefault(run.groups[group_by], []).append(run)
    values = sorted(of_value)
    if not values:
        known = ", ".join(sorted({name for run in found.successful for name in run.groups})) or "none"
        raise DataError(f"no successful run has a group {group_by!r}. Groups of these runs: {known}.")
    if len(values) > _MOST_GROUPS:
        raise DataError(
            f"{group_by!r} has {len(values):,} values, at most {_MOST_GROUPS} can have thresholds of their own. "
            "Group by something that many runs share."
        )
    maxima = {value: [run.maximum for run in draw(of_value[value], seed)] for value in values}
    groups = group_thresholds(group_by, maxima, policy, watch=watch)
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
    without = len(found.successful) - sum(map(len, of_value.values()))
    if without:
        notes.append(f"{without:,} successful runs have no group {group_by}; they count for the common threshold.")
    return (groups if len(few) < len(values) else None), notes


def _uses(before: Mapping[str, Any], runs: Sequence[CalibrationRun]) -> dict[str, dict[str, list[str]]]:
    """The tasks and runs of each side as they were before, with those that are used now on the alarm side."""
    used = {}
    for what, now in (("tasks", {run.task_hash for run in runs}), ("runs", {run.digest for run in runs})):
        stood = {side: set(names) for side, names in (before.get(what) or {}).items()}
        kept = {side: names - now if side == Side.TEST.value else names for side, names in stood.items()}
        made_from = set().union(*(kept.get(side.value, set()) for side in MADE_FROM))
        kept[Side.ALARM.value] = kept.get(Side.ALARM.value, set()) | (now - made_from)
        used[what] = {side: sorted(names) for side, names in kept.items()}
    return used


def _made_from(found: CalibrationRuns) -> str:
    return ", ".join(f"{found.used[side]} {side.value}" for side in MADE_FROM if found.used[side])


def _notes(found: CalibrationRuns, thresholds: Thresholds, *, in_sample: bool) -> list[str]:
    used, by, again = found.n_made_from, _made_from(found), found.used[Side.ALARM]
    repeats = len(found.runs) - len({run.digest for run in found.runs})
    without_task = sum(not run.names_task for run in found.runs)
    unjudged = sum(len(run.risks) == 0 for run in found.successful)
    notes = {
        f"IN SAMPLE: {used} of these runs are of tasks the monitor was made from ({by}). It is surer of them than of "
        "new ones, so the bound does not hold; the bundle says so.": used and in_sample,
        f"{used} runs of tasks the monitor was made from were left out ({by}).": used and not in_sample,
        f"{again} runs are of tasks that set the thresholds before; they set them again.": again,
        f"{repeats} runs repeat another word for word.": repeats,
        f"{without_task} runs name no task: each counts as a task of its own, those that are word for word the same as "
        "one.": without_task,
        f"In {unjudged} successful runs no step could be judged; they count as runs without an alarm. See why: "
        "prefixguard score": unjudged,
        f"no alarm: {thresholds.reason} The bundle says WATCH and OK only.": thresholds.reason,
    }
    return [note for note, holds in notes.items() if holds]


def _nothing_left(found: CalibrationRuns) -> str:
    if found.n_made_from and not found.runs:
        return (
            f"no run is left to calibrate on: {found.n_made_from} belong to tasks the monitor was made from "
            f"({_made_from(found)}). Give runs of other tasks, or --all to use these, marked as in-sample."
        )
    without = len(found.runs) - found.n_failed
    if without:
        return (
            f"no run is known to have succeeded: {without} have no outcome, {found.n_failed} failed. Give a labels "
            "file (run_id,outcome)."
        )
    if found.n_failed:
        return f"all {found.n_failed} runs failed: a false-alarm budget is set on runs that succeeded. Give some."
    return "there is no run to calibrate on. See what the adapter reads with: prefixguard parse RUNS"
