"""Monitors side by side, on runs that none of them was made from."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from prefixguard.alarm import AlarmPolicy, Thresholds, first_alert
from prefixguard.errors import ConfigError, DataError
from prefixguard.evaluation.alerts import AlarmGroups, AlertRow, alert_rows
from prefixguard.evaluation.comparison import Comparison, MonitorAlerts, MonitorColumn
from prefixguard.evaluation.evaluation import alarm_thresholds
from prefixguard.evaluation.figures import Difference, Measured, RiskFigures, lead, measure
from prefixguard.evaluation.rows import clock_rows
from prefixguard.evaluation.scored_runs import Heard, Key, choose_groups, listen, nothing_left, shared_runs
from prefixguard.evaluation.scoring import RESAMPLES
from prefixguard.metrics import Prefixes, Resamples, paired_difference, ratio
from prefixguard.runtime import Monitor, load, plain
from prefixguard.stepview import StepRecord
from prefixguard.trace import Run

Float = npt.NDArray[np.float64]
_RISKS = ("imminent", "outcome")


def compare(
    monitors: Sequence[Monitor | str | os.PathLike[str]],
    runs: str | os.PathLike[str] | Sequence[Run[StepRecord]],
    *,
    labels: str | os.PathLike[str] | None = None,
    all: bool = False,
    strict: bool = False,
    group_by: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = 13,
    progress: Callable[[int], None] | None = None,
) -> Comparison:
    """Several monitors on the same runs: figures side by side, and each one's lead over the first.

    A run counts where every monitor reads it and none was made from its task or from a word-for-word repeat of it; what
    is left out is counted. Differences are paired: prefix by prefix where every run has as many steps for every
    monitor, else run by run, and then of first alerts only.

    monitors: two or more, opened or folders of bundles.
    runs: a file, folder, glob or tar, which every monitor reads through its own adapter, with `labels` beside it; or
        parsed runs, for monitors of one adapter.
    all: count runs that a monitor was made from too; the result then says IN SAMPLE.
    strict, group_by, resamples, seed: as at `evaluate`. progress: called with the number of runs read so far; runs that
        are read through two adapters count twice.
    Raises ConfigError for fewer than two monitors, and where two adapters would have to read what can be read once
    only; DataError where no run is left; TraceError and BundleError as `read_runs` and `load` do.
    """
    opened = [monitor if isinstance(monitor, Monitor) else load(monitor) for monitor in monitors]
    if len(opened) < 2:
        raise ConfigError(f"{len(opened)} monitor given: a comparison needs two or more.")
    heard = [Heard(monitor, include_used=all) for monitor in opened]
    notes, _ = listen(heard, runs, labels, strict, progress)
    kept, left_out, more = shared_runs(heard, include_used=all)
    if not kept:
        raise DataError(nothing_left(left_out))
    notes += more
    grouped_by, groups = choose_groups([heard[0].scored[key].groups for key in kept], group_by)
    bench = _Bench(heard, kept, groups, resamples=resamples, seed=seed)
    return Comparison(
        runs=len(kept),
        failed_runs=sum(bench.failed),
        tasks=bench.n_tasks,
        paired=bench.paired,
        grouped_by=grouped_by,
        left_out=left_out,
        in_sample=sum(any(one.used(key) for one in heard) for key in kept),
        horizon=bench.horizon,
        monitors=tuple(bench.column(place, name) for place, name in enumerate(bench.names)),
        clocks=bench.clocks(),
        notes=(*notes, *bench.notes()),
    )


def _names(monitors: Sequence[Monitor]) -> list[str]:
    """What monitors are called: their folders' names, with the folder before where two have the same, and with a number
    where that does not tell them apart either."""
    plain = [monitor.bundle.path.name or str(monitor.bundle.path) for monitor in monitors]
    longer = ["/".join(monitor.bundle.path.resolve().parts[-2:]) for monitor in monitors]
    plain = [
        more if longer.count(more) == 1 < plain.count(name) else name for name, more in zip(plain, longer, strict=True)
    ]
    return [
        name if plain.count(name) == 1 else f"{name} ({plain[: place + 1].count(name)})"
        for place, name in enumerate(plain)
    ]


class _Bench:
    """Scores of the shared runs, measured over the same resamples of tasks."""

    def __init__(
        self,
        heard: Sequence[Heard],
        kept: Sequence[Key],
        groups: Sequence[str] | None,
        *,
        resamples: int,
        seed: int,
    ) -> None:
        self._heard, self._groups = heard, groups
        self.names = _names([one.monitor for one in heard])
        self._runs = [[one.scored[key] for key in kept] for one in heard]  # monitor, run
        first = self._runs[0]
        self.failed = [run.failed for run in first]
        tasks = [run.task for run in first]
        lengths = [[len(run.outcome) for run in runs] for runs in self._runs]
        self.paired = all(other == lengths[0] for other in lengths)
        self._prefixes = [Prefixes.of(of_monitor, self.failed, tasks) for of_monitor in lengths]
        self._lengths = lengths
        self.n_tasks = self._prefixes[0].n_tasks
        self._drawn = Resamples.draw(self.n_tasks, n=resamples, seed=seed)
        bundles = [one.monitor.bundle for one in heard]
        self._horizons = [3 if bundle.horizon is None else bundle.horizon for bundle in bundles]
        self.horizon = self._horizons[0]
        marks = [alarm_thresholds(bundle) for bundle in bundles]
        self._marks = marks
        self._by_group = [
            AlarmGroups.of(bundle, [run.groups for run in runs])
            for bundle, runs in zip(bundles, self._runs, strict=True)
        ]
        self._budgets = sorted(set.intersection(*(set(table) for table in marks)))
        self._unjudged = [np.isnan(self._flat(place)).any(axis=0) for place in range(len(heard))]
        if self.paired:  # what one did not judge is left out for all, so that all are about the same prefixes
            self._unjudged = [np.any(self._unjudged, axis=0)] * len(heard)
        self._measured = [self._measure(place, self._flat(place), True) for place in range(len(heard))]
        self._alerts = [self._first_alerts(place) for place in range(len(heard))]

    def _flat(self, place: int) -> Float:
        """Imminent and outcome risks of a monitor at all prefixes, (2, N)."""
        runs = self._runs[place]
        return np.stack([np.concatenate([getattr(run, risk) for run in runs]) for risk in _RISKS])

    def _measure(self, place: int, scores: Float, probability: bool) -> dict[str, Measured]:
        prefixes = self._prefixes[place]
        labels = prefixes.imminent_labels(self._horizons[place]), prefixes.outcome_labels
        seen = np.where(self._unjudged[place], np.nan, scores)
        return {
            risk: measure(prefixes, seen[i], labels[i], self._drawn, probability=probability, groups=self._groups)
            for i, risk in enumerate(_RISKS)
        }

    def _first_alerts(self, place: int) -> tuple[AlertRow, ...]:
        marks: dict[float | None, Thresholds] = {budget: self._marks[place][budget] for budget in self._budgets}
        return alert_rows(
            [run.outcome for run in self._runs[place]],
            self._prefixes[place],
            marks,
            self._heard[place].monitor.bundle.calibration.policy,
            horizon=self.horizon,
            resamples=self._drawn,
            groups=self._by_group[place],
            sizes=[run.sizes for run in self._runs[place]],
        )

    def column(self, place: int, name: str) -> MonitorColumn:
        """Everything about one monitor."""
        bundle, measured = self._heard[place].monitor.bundle, self._measured[place]
        ahead: dict[str, dict[str, Difference]] = {}
        if place and self.paired:
            for risk in _RISKS:
                if risk == "outcome" or self._horizons[place] == self.horizon:
                    ahead[risk] = lead(measured[risk], self._measured[0][risk])
        backend = bundle.manifest.get("backend")
        return MonitorColumn(
            name=name,
            id=bundle.id,
            adapter=bundle.adapter.name,
            backend=backend if isinstance(backend, str) else bundle.kind,
            horizon=self._horizons[place],
            used=sum(self._heard[place].used(key) for key in self._heard[place].scored),
            prefixes=len(self._prefixes[place]),
            unknown_prefixes=int(np.isnan(self._flat(place)).any(axis=0).sum()),
            imminent=measured["imminent"].figures,
            outcome=measured["outcome"].figures,
            ahead=ahead,
            alerts=tuple(
                self._beside(place, own, first) for own, first in zip(self._alerts[place], self._alerts[0], strict=True)
            ),
        )

    def _beside(self, place: int, own: AlertRow, first: AlertRow) -> MonitorAlerts:
        """A monitor's first alerts beside those of the first monitor, run by run."""
        if not place or own.alerts is None or first.alerts is None:
            return MonitorAlerts(own, {}, None, None, None)
        mine, theirs = self._alerted(place, own), self._alerted(0, first)
        failed = np.array(self.failed, dtype=np.bool_)
        ahead = {}
        for share, among in (("false_alarm_rate", ~failed), ("alerted", failed), ("early", failed)):
            own_share, first_share = (self._share(found[share], among) for found in (mine, theirs))
            value = getattr(own.alerts, share) - getattr(first.alerts, share)
            known = self.n_tasks > 1 and not np.isnan(value)
            ahead[share] = Difference(value, paired_difference(own_share, first_share) if known else None)
        one, other = mine["alerted"] & failed, theirs["alerted"] & failed
        both, only_this, only_first = (int(x.sum()) for x in (one & other, one & ~other, other & ~one))
        return MonitorAlerts(own, ahead, both, only_this, only_first)

    def _alerted(self, place: int, row: AlertRow) -> dict[str, npt.NDArray[np.bool_]]:
        """Which runs a monitor alerts, and which early, both bool (runs,)."""
        policy = self._heard[place].monitor.bundle.calibration.policy
        by_group = self._by_group[place] if row.groups else None
        marks = [row.thresholds.alarm] * len(self.failed) if by_group is None else by_group.marks(row.thresholds)
        steps = [first_alert(run.outcome, mark, policy) for run, mark in zip(self._runs[place], marks, strict=True)]
        alerted = np.array([step is not None for step in steps], dtype=np.bool_)
        left = [n - (step or n) for n, step in zip(self._lengths[place], steps, strict=True)]
        return {"false_alarm_rate": alerted, "alerted": alerted, "early": alerted & (np.array(left) > self.horizon)}

    def _share(self, runs: npt.NDArray[np.bool_], among: npt.NDArray[np.bool_]) -> Float:
        """Share of `among` that is in `runs`, for every resample, (R,)."""
        task = self._prefixes[0].task
        above, below = (
            np.bincount(task, weights=chosen.astype(np.float64), minlength=self.n_tasks)
            for chosen in (runs & among, among)
        )
        return self._drawn.figures(lambda w: ratio(w @ above, w @ below))

    def clocks(self) -> dict[str, dict[str, RiskFigures]]:
        """Step index and end oracle over the prefixes all share; none where they do not share them."""
        if not self.paired:
            return {}
        lengths = self._lengths[0]
        rows = clock_rows(self._prefixes[0], lengths, self.horizon, AlarmPolicy(), (), None)
        return {
            row.name: {
                risk: found.figures
                for risk, found in self._measure(0, np.stack(row.flat(lengths)), row.probability).items()
            }
            for row in rows
            if row.name != "constant"
        }

    def notes(self) -> list[str]:
        """What a reader must know before comparing."""
        notes = []
        if not self.paired:
            notes.append(
                "The monitors do not read the same steps from every run, so prefixes cannot be paired: each has its "
                "own figures, over its own prefixes, and only first alerts are compared, run by run. Steps left are "
                "counted in each one's own steps."
            )
        if len(set(self._horizons)) > 1:
            notes.append(
                "The monitors have different horizons, so that imminent means another thing to each: their imminent "
                f"figures are not compared. Early is more than {self.horizon} steps left for all."
            )
        for name, one, by_group in zip(self.names, self._heard, self._by_group, strict=True):
            budget = one.monitor.bundle.calibration.policy.budget
            if by_group is not None and budget in self._budgets:
                notes.append(
                    f"{name} has alarm thresholds by {plain(by_group.thresholds.by, 40)}: at {100 * budget:g} % each "
                    "run is judged by its own."
                )
        if not self._budgets:
            notes.append("No alarm budget is common to all monitors: there are no first alerts to compare.")
        if self.n_tasks == 1:
            notes.append("All runs are of one task: there are no intervals over tasks.")
        if all(self.failed) or not any(self.failed):
            kind = "failures" if self.failed[0] else "successes"
            notes.append(f"All runs are {kind}: nothing that compares failures with successes can be computed.")
        if self.paired and self._unjudged[0].any():
            notes.append(
                f"Some monitor said UNKNOWN at {int(self._unjudged[0].sum())} of {len(self._prefixes[0])} prefixes; "
                "they are left out of every figure but the first alerts, where they never alarm."
            )
        return notes
