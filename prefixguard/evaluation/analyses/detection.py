"""Time to detection: how many steps after a known onset the first alarm comes, how often before it, how often never."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from prefixguard.alarm import AlarmPolicy, Thresholds, first_alert
from prefixguard.errors import ConfigError, DataError
from prefixguard.evaluation.tables.alerts import AlarmGroups
from prefixguard.metrics import Resamples, ratio
from prefixguard.metrics.resampling import exact_interval
from prefixguard.results import Block, Cell, Result, TableBlock, Text, percent, percents
from prefixguard.stepview import FIELDS, StepRecord
from prefixguard.trace import Run

Float = npt.NDArray[np.float64]
#: The onset that labels of a run name: the step of its decisive mistake.
MISTAKE_STEP = "mistake_step"
#: Fields of a record that an onset may be found by.
_FIELDS = (*FIELDS, "agent")
#: An onset that is named and is no step of its run.
NO_STEP = 0


def onset_of(run: Run[StepRecord], name: str) -> int | None:
    """The step of a run, from 1, from which on an alarm is due; None where it has none, `NO_STEP` where what is named
    is no step of it.

    name: `mistake_step`, of its labels; FIELD=VALUE, the first step whose record has that value; or a group of the
    run, whose value is the number of a step, from 1; an empty one says that there is none.
    Raises ConfigError for a field that records do not have.
    """
    field, equals, value = name.partition("=")
    if equals:
        if field not in _FIELDS:
            raise ConfigError(f"onset {name!r}: records have no field {field!r}. Choose from: {', '.join(_FIELDS)}.")
        return next((record.index for record in run.records if getattr(record, field) == value), None)
    if name == MISTAKE_STEP:
        return None if run.mistake is None else run.mistake.step
    text = run.groups.get(name, "").strip()
    step = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else NO_STEP
    return None if not text else step if step <= len(run.records) else NO_STEP


def known_onsets(
    name: str, onsets: Sequence[int | None], groups: Collection[str]
) -> tuple[list[int | None], list[str]]:
    """The onsets of the runs, None where a run has none, and notes on what was named and is no step.

    groups: names of the groups that runs have. Raises DataError where no run has an onset.
    """
    wrong = sum(step == NO_STEP for step in onsets)
    found = [step or None for step in onsets]
    if not any(found):
        said = f"{wrong} runs name something else than the number of one of their steps" if wrong else "no run has one"
        raise DataError(
            f"onset {name!r}: {said}. Name {MISTAKE_STEP} (the mistake that labels name), a group whose value is a "
            f"step (of these runs: {', '.join(sorted(groups)) or 'none'}), or FIELD=VALUE, such as status=error."
        )
    note = f"{wrong} runs name an onset that is no step of theirs; they count among those without an onset."
    return found, [note] * bool(wrong)


@dataclass(frozen=True, slots=True)
class DetectionRow:
    """First alarms of one budget. Shares of the runs with an onset, which sum to 1; NaN where there is none.

    detected: the first alarm comes at the onset or later. early: before it. missed: never.
    delays: steps from the onset to the alarm of the detected runs, ascending; 0: at the onset itself.
    alarmed_without: share of the runs without an onset that alarm. intervals: 95 % over tasks, by name of a share.
    """

    budget: float
    detected: float
    early: float
    missed: float
    delays: tuple[int, ...]
    alarmed_without: float
    intervals: Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Detection(Result):
    """runs: with an onset. without, without_failed: runs without one, and those of them that failed. rows: by budget,
    ascending; a budget that was refused has none."""

    runs: int
    without: int
    without_failed: int
    rows: tuple[DetectionRow, ...]

    def blocks(self) -> tuple[Block, ...]:
        """A row a budget, and how to read it."""
        if not self.rows:
            refused = f"Time to detection: {self.runs:,} runs have an onset, and no alarm is in force: its budget was "
            return (Text(refused + "refused. Train with a larger --budget, or calibrate on more successful runs."),)
        head = ("Budget", "detected", "too early", "missed", "delay, steps", "alarmed without onset")
        counted = f"{self.runs:,} runs with an onset, {self.without:,} without ({self.without_failed:,} of them failed)"
        return (
            TableBlock.of(f"Time to detection: {counted}", head, [_line(row) for row in self.rows]),
            Text(
                "Detected: the first alarm comes at the onset or after it. Too early: before it. Delay: steps from the "
                "onset to the alarm of detected runs, median and quartiles."
            ),
        )


def _line(row: DetectionRow) -> list[Cell]:
    low, middle, high = np.quantile(row.delays, [0.25, 0.5, 0.75]) if row.delays else (0, 0, 0)
    delay = Cell(f"{middle:g}", f"[{low:g}, {high:g}]") if row.delays else Cell("–")
    detected, early, missed, without = (
        Cell(percent(getattr(row, name)), percents(row.intervals.get(name)))
        for name in ("detected", "early", "missed", "alarmed_without")
    )
    return [Cell(f"{100 * row.budget:g} %"), detected, early, missed, delay, without]


def detection(
    scores: Sequence[Float],
    onsets: Sequence[int | None],
    failed: Sequence[bool],
    tasks: npt.NDArray[np.int64],
    thresholds: Mapping[float, Thresholds],
    policy: AlarmPolicy,
    *,
    resamples: Resamples,
    groups: AlarmGroups | None = None,
) -> Detection:
    """First alarms against the onset of each run. scores: outcome scores, one (T,) a run. onsets, failed, tasks: of
    each run. thresholds, groups: by budget, and by group at the policy's own. resamples: over tasks."""
    has = np.array([onset is not None for onset in onsets], dtype=np.bool_)
    start = np.array([onset or 0 for onset in onsets], dtype=np.int64)

    def by_task(runs: npt.NDArray[np.bool_]) -> Float:
        return np.bincount(tasks, weights=runs.astype(np.float64), minlength=resamples.weights.shape[1]).astype(float)

    rows = []
    for budget, common in sorted(thresholds.items()):
        by_group = groups if groups is not None and budget == policy.budget else None
        own = [common.alarm] * len(scores) if by_group is None else by_group.in_force(common)
        if not any(one is not None for one in own):
            continue
        alarm = np.array([first_alert(score, at, policy) or 0 for score, at in zip(scores, own, strict=True)])
        sounded = alarm > 0
        counted = {
            "detected": (has & sounded & (alarm >= start), has),
            "early": (has & sounded & (alarm < start), has),
            "missed": (has & ~sounded, has),
            "alarmed_without": (~has & sounded, ~has),
        }
        found = resamples.estimate(
            {
                name: (partial(_share, by_task(runs), by_task(among)), resamples.weights.shape[1])
                for name, (runs, among) in counted.items()
            }
        )
        intervals = found.intervals
        for name, (low, high) in [*intervals.items()]:
            if low == high:  # all or none, in every resample: the bootstrap would claim certainty
                intervals[name] = exact_interval(found.values[name], int(np.count_nonzero(by_task(counted[name][1]))))
        delays = np.sort((alarm - start)[counted["detected"][0]])
        rows.append(DetectionRow(budget, delays=tuple(delays.tolist()), intervals=intervals, **found.values))
    without = ~has
    return Detection(int(has.sum()), int(without.sum()), int((without & np.asarray(failed)).sum()), tuple(rows))


def _share(runs: Float, among: Float, weights: Float) -> Float:
    return ratio(weights @ runs, weights @ among)
