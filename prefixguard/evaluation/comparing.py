"""Compare monitors on runs that none of them was made from."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from prefixguard.alarm import AlarmPolicy, first_alert
from prefixguard.errors import ConfigError, DataError
from prefixguard.evaluation.evaluation import alarm_thresholds, reference_of
from prefixguard.evaluation.scored_runs import Heard, Key, choose_groups, listen
from prefixguard.evaluation.scoring import RESAMPLES, remarks
from prefixguard.evaluation.tables.alerts import AlarmGroups, AlertRow, alert_rows
from prefixguard.evaluation.tables.comparison import Comparison, MonitorAlerts, MonitorColumn
from prefixguard.evaluation.tables.figures import RISKS, Basis, Difference, Measured, RiskFigures, lead
from prefixguard.evaluation.tables.rows import clock_rows
from prefixguard.metrics import Prefixes, ReferenceRisks, Resamples, paired_difference, ratio
from prefixguard.runtime import Monitor, load, plain
from prefixguard.stepview import StepRecord
from prefixguard.trace import Run

Float = npt.NDArray[np.float64]


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
    runs: a file, folder, glob or tar, which every monitor reads through its own adapter, with `labels` from a companion
        file; or parsed runs, for monitors of one adapter.
    all: count runs that a monitor was made from too; the result then says IN SAMPLE.
    seed : seed of the bootstrap.
    strict, group_by, resamples: as at `evaluate`. progress: called with the number of runs read so far; runs that
        are read through two adapters count twice.
    Raises ConfigError for fewer than two monitors, and where two adapters would have to read what can be read once
    only; DataError where no run is left; TraceError and BundleError as `read_runs` and `load` do.
    """
    opened = [
        (monitor if isinstance(monitor, Monitor) else load(monitor)).with_model("A comparison") for monitor in monitors
    ]
    if len(opened) < 2:
        raise ConfigError(f"{len(opened)} monitor given: a comparison needs two or more.")
    heard = [Heard(monitor, include_used=all) for monitor in opened]
    notes, empty = listen(heard, runs, labels, strict, progress)
    kept, left_out, more = _shared_runs(heard, empty, include_used=all)
    if not kept:
        raise DataError(_nothing_left(left_out))
    grouped_by, groups = choose_groups([heard[0].scored[key].groups for key in kept], group_by)
    tasks = [heard[0].scored[key].task for key in kept]
    each = [_Contender(one, name, kept, tasks) for one, name in zip(heard, _names(opened), strict=True)]
    first = each[0]
    paired = len({one.lengths for one in each}) == 1
    if paired:  # what one did not judge is left out for all, so that all are about the same prefixes
        unjudged = np.any([one.unjudged for one in each], axis=0)
        for one in each:
            one.unjudged = unjudged
    drawn = Resamples.draw(first.prefixes.n_tasks, n=resamples, seed=seed)
    budgets = sorted(set.intersection(*(set(one.thresholds) for one in each)))
    reference = next((one.reference for one in each if one.reference is not None), None)
    for one in each:
        one.measure(drawn, groups, budgets, first.horizon, reference)
    return Comparison(
        runs=len(kept),
        failed_runs=sum(run.failed for run in first.runs),
        tasks=first.prefixes.n_tasks,
        paired=paired,
        grouped_by=grouped_by,
        left_out=left_out,
        in_sample=sum(any(one.used(key) for one in heard) for key in kept),
        horizon=first.horizon,
        monitors=tuple(one.column(first, paired, drawn) for one in each),
        clocks=first.clocks(drawn, groups) if paired else {},
        notes=(*notes, *more, *_notes(each, paired, budgets)),
    )


def _shared_runs(
    heard: Sequence[Heard], empty: int, *, include_used: bool
) -> tuple[list[Key], dict[str, int], list[str]]:
    """The runs that count, in the order in which they were read; those that do not, by reason; notes. empty: runs that
    were empty before they were read."""
    out = dict.fromkeys(("not_read_by_all", "without_outcome", "outcomes_differ", "used_by_a_monitor"), 0)
    out["empty"] = empty
    kept, other_task = [], 0
    for key in dict.fromkeys(key for one in heard for key in (*one.scored, *one.without_outcome, *one.empty)):
        if any(key in one.empty for one in heard):
            out["empty"] += 1
        elif any(key in one.without_outcome for one in heard):
            out["without_outcome"] += 1
        elif any(key not in one.scored for one in heard):
            out["not_read_by_all"] += 1
        elif len({one.scored[key].failed for one in heard}) > 1:
            out["outcomes_differ"] += 1
        elif not include_used and any(one.used(key) for one in heard):
            out["used_by_a_monitor"] += 1
        else:
            kept.append(key)
            other_task += len({one.scored[key].task for one in heard}) > 1
    notes = []
    if any(not one.monitor.bundle.manifest.get("tasks") for one in heard):
        notes.append(
            "A bundle does not say which tasks it was made from, so that its own could not be left out: make sure that "
            "these runs are new to it."
        )
    if other_task:
        notes.append(f"The adapters name other tasks for {other_task} runs; the first monitor's are drawn.")
    return kept, out, notes


def _nothing_left(left_out: Mapping[str, int]) -> str:
    parts = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in left_out.items() if count)
    if not parts:
        return "there is no run to compare on. See what the adapters read with: prefixguard parse RUNS"
    return (
        f"no run is left that all monitors can be compared on: {parts}. Give runs of other tasks, with outcomes, or "
        "--all to count those that a monitor was made from too, marked as in-sample."
    )


def _names(monitors: Sequence[Monitor]) -> list[str]:
    """What monitors are called: their folders' names, with the folder before where two have the same, and with a number
    where that does not tell them apart either."""
    short = [monitor.bundle.path.name or str(monitor.bundle.path) for monitor in monitors]
    longer = ["/".join(monitor.bundle.path.resolve().parts[-2:]) for monitor in monitors]
    names = [
        more if longer.count(more) == 1 < short.count(name) else name for name, more in zip(short, longer, strict=True)
    ]
    return [
        name if names.count(name) == 1 else f"{name} ({names[: place + 1].count(name)})"
        for place, name in enumerate(names)
    ]


class _Contender:
    """One monitor's scores of the shared runs, and what they come to over resamples of tasks that all monitors share.

    tasks: of the runs, as the first monitor reads them. unjudged: bool (N,), prefixes that its figures leave out.
    """

    measured: dict[str, Measured]
    alerts: tuple[AlertRow, ...]

    def __init__(self, heard: Heard, name: str, kept: Sequence[Key], tasks: Sequence[str]) -> None:
        self.heard, self.name, bundle = heard, name, heard.monitor.bundle
        self.runs = [heard.scored[key] for key in kept]
        self.lengths = tuple(len(run.outcome) for run in self.runs)
        self.horizon = 3 if bundle.horizon is None else bundle.horizon
        self.prefixes = Prefixes.of(self.lengths, [run.failed for run in self.runs], tasks)
        self.policy, self.thresholds = bundle.calibration.policy, alarm_thresholds(bundle)
        self.reference = reference_of(bundle)
        self.groups = AlarmGroups.of(bundle, [run.groups for run in self.runs])
        self.scores = np.stack([np.concatenate([getattr(run, risk) for run in self.runs]) for risk in RISKS])  # (2, N)
        self.unjudged = np.isnan(self.scores).any(axis=0)

    def measure(
        self,
        drawn: Resamples,
        groups: Sequence[str] | None,
        budgets: Sequence[float],
        early: int,
        reference: ReferenceRisks | None,
    ) -> None:
        """Its figures, and its first alerts at these budgets. early: steps that an early alert leaves, or more.
        reference: of the first monitor that has one; its clock is that of all but monitors of healthy runs alone, whose
        figures are no risks of failing."""
        rarity = self.heard.monitor.bundle.manifest.get("backend") == "healthy"
        clock = None if reference is None or rarity else reference.by_step(self.prefixes.step)
        basis = Basis(self.prefixes, self.horizon, drawn, groups, clock)
        self.measured = basis.measure([*np.where(self.unjudged, np.nan, self.scores)], probability=True)
        self.alerts = alert_rows(
            [run.outcome for run in self.runs],
            self.prefixes,
            {budget: self.thresholds[budget] for budget in budgets},
            self.policy,
            horizon=early,
            resamples=drawn,
            groups=self.groups,
            sizes=[run.sizes for run in self.runs],
        )

    def column(self, first: _Contender, paired: bool, drawn: Resamples) -> MonitorColumn:
        """Everything about this monitor, and how it differs from the first."""
        bundle, backend = self.heard.monitor.bundle, self.heard.monitor.bundle.manifest.get("backend")
        comparable = [risk for risk in RISKS if risk == "outcome" or self.horizon == first.horizon]
        return MonitorColumn(
            name=self.name,
            id=bundle.id,
            adapter=bundle.adapter.name,
            backend=backend if isinstance(backend, str) else bundle.kind,
            horizon=self.horizon,
            used=sum(self.heard.used(key) for key in self.heard.scored),
            prefixes=len(self.prefixes),
            unknown_prefixes=int(np.isnan(self.scores).any(axis=0).sum()),
            imminent=self.measured["imminent"].figures,
            outcome=self.measured["outcome"].figures,
            ahead={risk: lead(self.measured[risk], first.measured[risk]) for risk in comparable}
            if paired and self is not first
            else {},
            alerts=tuple(
                self._compared(own, first, its, drawn) for own, its in zip(self.alerts, first.alerts, strict=True)
            ),
        )

    def _compared(self, own: AlertRow, first: _Contender, its: AlertRow, drawn: Resamples) -> MonitorAlerts:
        """First alerts of this monitor and of the first monitor, run by run."""
        if self is first or own.alerts is None or its.alerts is None:
            return MonitorAlerts(own, {}, None, None, None)
        mine, theirs = self._alerted(own, first.horizon), first._alerted(its, first.horizon)
        failed = self.prefixes.failed
        ahead = {}
        for share, among in (("false_alarm_rate", ~failed), ("alerted", failed), ("early", failed)):
            value = getattr(own.alerts, share) - getattr(its.alerts, share)
            spread = None
            if first.prefixes.n_tasks > 1 and not np.isnan(value):
                of_task = first.prefixes.task
                spread = paired_difference(
                    _shares(drawn, of_task, mine[share], among), _shares(drawn, of_task, theirs[share], among)
                )
            ahead[share] = Difference(value, spread)
        one, other = mine["alerted"] & failed, theirs["alerted"] & failed
        both, only_this, only_first = (int(x.sum()) for x in (one & other, one & ~other, other & ~one))
        return MonitorAlerts(own, ahead, both, only_this, only_first)

    def _alerted(self, row: AlertRow, early: int) -> dict[str, npt.NDArray[np.bool_]]:
        """Which runs are alerted, and which early, both bool (runs,), by the share that counts them."""
        common, groups = row.thresholds, self.groups if row.groups else None
        thresholds = [common.alarm] * len(self.runs) if groups is None else groups.in_force(common)
        steps = [first_alert(run.outcome, at, self.policy) for run, at in zip(self.runs, thresholds, strict=True)]
        alerted = np.array([step is not None for step in steps], dtype=np.bool_)
        left = np.array([n - (step or n) for n, step in zip(self.lengths, steps, strict=True)])
        return {"false_alarm_rate": alerted, "alerted": alerted, "early": alerted & (left > early)}

    def clocks(self, drawn: Resamples, groups: Sequence[str] | None) -> dict[str, dict[str, RiskFigures]]:
        """Step index and end oracle over the prefixes that count."""
        basis = Basis(self.prefixes, self.horizon, drawn, groups)
        found = {}
        for row in clock_rows(self.prefixes, self.lengths, self.horizon, AlarmPolicy(), (), None)[1:]:
            scores = np.where(self.unjudged, np.nan, row.flat(self.lengths))
            measured = basis.measure([*scores], probability=row.probability)
            found[row.name] = {risk: one.figures for risk, one in measured.items()}
        return found


def _shares(
    drawn: Resamples, task: npt.NDArray[np.int64], runs: npt.NDArray[np.bool_], among: npt.NDArray[np.bool_]
) -> Float:
    """Share of `among` that is in `runs`, both bool (runs,), for every resample, (R,). task: of each run."""
    above, below = (
        np.bincount(task, weights=chosen.astype(np.float64), minlength=drawn.weights.shape[1])
        for chosen in (runs & among, among)
    )
    return drawn.figures(lambda w: ratio(w @ above, w @ below))


def _notes(each: Sequence[_Contender], paired: bool, budgets: Sequence[float]) -> list[str]:
    """What a reader must know before comparing."""
    notes, first = [], each[0]
    if not paired:
        notes.append(
            "The monitors do not read the same steps from every run, so prefixes cannot be paired: each has its "
            "own figures, over its own prefixes, and only first alerts are compared, run by run. Steps left are "
            "counted in each one's own steps."
        )
    if len({one.horizon for one in each}) > 1:
        notes.append(
            "The monitors have different horizons, so that imminent means another thing to each: their imminent "
            f"figures are not compared. Early is more than {first.horizon} steps left for all."
        )
    for one in each:
        if one.groups is not None and one.policy.budget in budgets:
            by, budget = plain(one.groups.thresholds.by, 40), f"{100 * one.policy.budget:g} %"
            notes.append(f"{one.name} has alarm thresholds by {by}: at {budget} each run is judged by its own.")
    if not budgets:
        notes.append("No alarm budget is common to all monitors: there are no first alerts to compare.")
    unjudged = first.unjudged if paired else np.zeros(0, dtype=np.bool_)
    return [*notes, *remarks(first.prefixes, unjudged, "Some monitor")]
