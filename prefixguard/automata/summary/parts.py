"""Whose failures are caught: first alarms on the test runs by kind of task and by each group, and what the failures do
that raise none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from prefixguard.alarm import AlarmPolicy, Level, Thresholds
from prefixguard.automata.material import Material
from prefixguard.automata.summary.alarms import group_names
from prefixguard.automata.summary.fidelity import Walks
from prefixguard.automata.summary.missed import MoreOften, ends_of, more_often
from prefixguard.automata.summary.shared_names import short_names
from prefixguard.automata.summary.wording import both_ends, count_text, one_line
from prefixguard.metrics import Resamples, first_alerts
from prefixguard.runtime import plain

#: Values of a group that have a row; the others share one. Letters of a name.
_ROWS, _LETTERS = 8, 48
#: Runs that an interval needs.
_FEWEST = 10
#: Kinds of task that there may be.
_KINDS = 12
_KIND = "kind of task"


@dataclass(frozen=True, slots=True)
class PartAlarms:
    """First alarms on the test runs of one kind of task, or of one value of a group.

    by: "kind of task", or the group. value: its name, or how many share the row. failed, caught, successful,
    false_alarms: test runs. intervals: 95 %, over tasks, of the shares of caught failures and of false alarms; None
    where runs are few. ends: how most failures end that raise no alarm, in words; "" where all do. behaviours: those
    with an advice that these failures have more often than its successes, beyond chance.
    """

    by: str
    value: str
    failed: int
    caught: int
    successful: int
    false_alarms: int
    intervals: tuple[tuple[float, float] | None, tuple[float, float] | None]
    ends: str
    behaviours: tuple[MoreOften, ...]

    @property
    def missed(self) -> int:
        """Failures that raise no alarm."""
        return self.failed - self.caught


def task_kinds(material: Material) -> dict[int, str]:
    """Of every run that is used what stands before the first colon of its task's id; {} where not all have it, all have
    the same, or there are too many to be kinds."""
    used = (material.pool, material.held_out, material.alarm, material.test)
    found = {run: material.corpus.task_ids[run].partition(":") for side in used for run in side.tolist()}
    kinds = {run: kind for run, (kind, colon, _) in found.items() if colon}
    return kinds if len(kinds) == len(found) and 1 < len(set(kinds.values())) <= _KINDS else {}


def alarms_by_part(
    material: Material, walks: Walks, thresholds: Thresholds, glosses: Sequence[str], *, horizon: int
) -> tuple[PartAlarms, ...]:
    """By kind of task, then by each group; the values with most failures first.

    walks: of the test side. thresholds: without one of the alarm, WATCH counts as an alarm. glosses: of the
    symbols. horizon: as of `measure_alarms`.
    """
    groups = {}
    if kinds := task_kinds(material):
        groups[_KIND] = [kinds[run] for run in material.test.tolist()]
    for name in group_names(material):
        short = short_names(of.get(name, "") for of in material.corpus.groups)
        values = [short[material.corpus.groups[run].get(name, "")] for run in material.test.tolist()]
        groups[one_line(name, _LETTERS)] = values
    sound = Level.WATCH if thresholds.alarm is None else Level.ALARM
    ends = list(pairwise(walks.strings.first.tolist()))
    alarms = [np.array([level is sound for level in walks.levels[a:b]], dtype=np.float64) for a, b in ends]
    return tuple(
        _part(material, walks, glosses, alarms, name, value, runs, horizon)
        for name, values in groups.items()
        for value, runs in _rows(values, walks.strings.failed.tolist())
    )


def joined_parts(parts: Sequence[PartAlarms]) -> tuple[PartAlarms, ...]:
    """Each way to part the runs once: where two groups have the same values with the same figures, as domain and kind
    of task, their rows are one, named by the group."""
    rows = {by: [one for one in parts if one.by == by] for by in dict.fromkeys(one.by for one in parts)}
    same: dict[tuple[PartAlarms, ...], list[str]] = {}
    for by, found in rows.items():
        same.setdefault(tuple(replace(one, by="") for one in found), []).append(by)
    return tuple(replace(one, by=names[-1]) for found, names in same.items() for one in found)


def _rows(values: Sequence[str], failed: Sequence[bool]) -> Iterator[tuple[str, list[int]]]:
    """The values with most failures, each with its places; the others as one."""
    runs: dict[str, list[int]] = {}
    for place, value in enumerate(values):
        runs.setdefault(value, []).append(place)
    failures = Counter(value for value, is_failed in zip(values, failed, strict=True) if is_failed)
    order = sorted(runs, key=lambda value: (-failures[value], -len(runs[value]), value))
    few = _ROWS if len(order) > _ROWS + 1 else len(order)
    for value in order[:few]:
        yield plain(both_ends(value, _LETTERS), _LETTERS) or "not named", runs[value]
    if rest := order[few:]:
        yield count_text(len(rest), "other"), sorted(place for value in rest for place in runs[value])


def _part(
    material: Material,
    walks: Walks,
    glosses: Sequence[str],
    alarms: Sequence[np.ndarray[tuple[int], np.dtype[np.float64]]],
    by: str,
    value: str,
    runs: Sequence[int],
    horizon: int,
) -> PartAlarms:
    failed = walks.strings.failed
    lost, good = [i for i in runs if failed[i]], [i for i in runs if not failed[i]]
    _, tasks = np.unique(walks.strings.tasks[list(runs)], return_inverse=True)
    found = first_alerts(
        [alarms[i] for i in runs],
        [bool(failed[i]) for i in runs],
        tasks,
        0.5,
        AlarmPolicy(),
        horizon=horizon,
        resamples=Resamples.draw(int(tasks.max(initial=-1)) + 1),
    )
    missed = [i for i in lost if not alarms[i].any()]
    top = ends_of(walks.strings, missed, good, glosses)[:1]
    short = sum(int(walks.strings.lengths[i]) <= horizon for i in missed)
    broken_off = f"; {short:,} end by step {horizon}" if missed and 2 * short >= len(missed) else ""
    return PartAlarms(
        by=by,
        value=value,
        failed=len(lost),
        caught=len(lost) - len(missed),
        successful=len(good),
        false_alarms=sum(bool(alarms[i].any()) for i in good),
        intervals=(
            found.intervals.get("alerted") if len(lost) >= _FEWEST else None,
            found.intervals.get("false_alarm_rate") if len(good) >= _FEWEST else None,
        ),
        ends="".join(f"{what} ({n:,} of {len(missed):,}){broken_off}" for what, n, _ in top),
        behaviours=more_often(material, missed, good),
    )
