"""From scores to the table: arrays in, figures out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from prefixguard.alarm import BUDGETS, AlarmPolicy, Thresholds
from prefixguard.errors import DataError
from prefixguard.evaluation.alerts import AlarmGroups, AlertRow, alert_rows
from prefixguard.evaluation.analyses.observability import observability
from prefixguard.evaluation.analyses.prevalence import prevalence_table
from prefixguard.evaluation.analyses.shortcuts import shortcuts
from prefixguard.evaluation.figures import Measured, compared, measure
from prefixguard.evaluation.rows import ScoreRow, clock_rows, oracle_rows
from prefixguard.evaluation.table import BaselineRow, Behind, EvaluationTable, LeftOut
from prefixguard.evaluation.verdict import judge
from prefixguard.metrics import Prefixes, Resamples
from prefixguard.results import Result

#: Resamples behind each interval: the ends of a 95 % interval rest on about 12 of them each.
RESAMPLES = 500


def evaluate_scores(
    imminent_risk: Sequence[npt.ArrayLike],
    outcome_risk: Sequence[npt.ArrayLike],
    failed: Sequence[bool],
    tasks: Sequence[str],
    *,
    groups: Sequence[str] | None = None,
    grouped_by: str | None = None,
    horizon: int = 3,
    policy: AlarmPolicy | None = None,
    thresholds: Mapping[float, Thresholds] | None = None,
    baselines: Sequence[ScoreRow] = (),
    calibration_lengths: Sequence[int] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 13,
    left_out: LeftOut | None = None,
    notes: Sequence[str] = (),
    alarm_groups: AlarmGroups | None = None,
    sizes: Sequence[npt.ArrayLike] | None = None,
) -> EvaluationTable:
    """Every figure of a monitor's risks over a set of runs, beside what any monitor has to beat.

    imminent_risk, outcome_risk: one float (T,) a run, T its number of steps; NaN where the monitor said UNKNOWN.
    failed, tasks: outcome and task of each run. groups: its agent or file, called `grouped_by` in the table.
    policy, thresholds: the monitor's alarm policy, and its thresholds on the outcome risk by budget.
    baselines: further rows; constant, step index and the oracles are always there.
    calibration_lengths: see `clock_rows`.
    resamples, seed: of the bootstrap over tasks.
    left_out, notes: carried into the table.
    alarm_groups: thresholds by group, by which the monitor's alarms of each run are judged at the policy's own budget.
    sizes: bytes of text of each step, (T,) a run, for the share of text after first alerts; None: not told.
    Raises DataError where there is no run, or counts differ. One class gives NaN in what needs two, and a note.
    """
    if not len(imminent_risk) == len(outcome_risk) == len(failed) == len(tasks):
        raise DataError(
            f"{len(imminent_risk)} and {len(outcome_risk)} scored runs with {len(failed)} outcomes and {len(tasks)} "
            "tasks: give one of each a run."
        )
    if not tasks:
        raise DataError("there is no run to evaluate: give runs whose outcome is known.")
    policy = policy or AlarmPolicy()
    marks: dict[float | None, Thresholds] = {float(budget): mark for budget, mark in (thresholds or {}).items()}
    budgets = sorted(budget for budget in marks if budget is not None) or list(BUDGETS)
    monitor = ScoreRow(
        "monitor",
        [np.asarray(risk, dtype=np.float64) for risk in imminent_risk],
        [np.asarray(risk, dtype=np.float64) for risk in outcome_risk],
        probability=True,
        thresholds=marks,
    )
    lengths = [len(risk) for risk in monitor.outcome]
    prefixes = Prefixes.of(lengths, failed, tasks)
    drawn = Resamples.draw(prefixes.n_tasks, n=resamples, seed=seed)
    labels = prefixes.imminent_labels(horizon), prefixes.outcome_labels
    unjudged = np.zeros(len(prefixes), dtype=np.bool_)
    for scores in monitor.flat(lengths):
        unjudged |= np.isnan(scores)

    def both(row: ScoreRow) -> tuple[Measured, Measured]:
        # What the monitor did not judge is left out of every row, so that all rows are about the same prefixes.
        flat = (np.where(unjudged, np.nan, scores) for scores in row.flat(lengths))
        imminent, outcome = (
            measure(prefixes, scores, label, drawn, probability=row.probability, groups=groups)
            for scores, label in zip(flat, labels, strict=True)
        )
        return imminent, outcome

    text = None if sizes is None else [np.asarray(size, dtype=np.float64) for size in sizes]
    if text is not None and [len(size) for size in text] != lengths:
        raise DataError("sizes of steps are not one a step of every run: give one of each, or none at all.")

    def alerts_of(row: ScoreRow, by_group: AlarmGroups | None = None) -> tuple[AlertRow, ...]:
        return alert_rows(
            row.outcome,
            prefixes,
            row.thresholds,
            policy,
            horizon=horizon,
            resamples=drawn,
            groups=by_group,
            sizes=text,
        )

    imminent, outcome = both(monitor)
    alerts = alerts_of(monitor, alarm_groups)
    rows: dict[str, BaselineRow] = {}
    beside = (
        *clock_rows(prefixes, lengths, horizon, policy, budgets, calibration_lengths),
        *oracle_rows(prefixes, lengths, horizon, seed),
        *baselines,
    )
    for row in beside:
        other = both(row)
        rows[row.name] = BaselineRow(
            imminent=compared(imminent, other[0]),
            outcome=compared(outcome, other[1]),
            first_alert=alerts_of(row),
            oracle=row.oracle,
            note=row.note,
        )
    sections: dict[str, Result] = {
        "observability": observability(monitor, prefixes, lengths, horizon),
        "prevalence": prevalence_table((monitor, *beside), prefixes, lengths, horizon, resamples=drawn),
    }
    if groups is not None:
        sections["shortcuts"] = shortcuts(
            monitor.outcome, failed, tasks, groups, grouped_by=grouped_by or "group", resamples=resamples, seed=seed
        )
    return EvaluationTable(
        runs=len(tasks),
        failed_runs=int(prefixes.failed.sum()),
        tasks=prefixes.n_tasks,
        prefixes=len(prefixes),
        unknown_prefixes=int(unjudged.sum()),
        horizon=horizon,
        grouped_by=grouped_by if groups is not None else None,
        left_out=left_out or LeftOut(),
        imminent=imminent.figures,
        outcome=outcome.figures,
        first_alert=alerts,
        baselines=rows,
        verdict=judge(outcome.figures, alerts, horizon, rows["step index"].outcome),
        notes=(*notes, *_remarks(prefixes, unjudged)),
        sections=sections,
        behind=Behind(
            rows=(monitor, *beside),
            tasks=tuple(tasks),
            failed=tuple(bool(fail) for fail in failed),
            lengths=tuple(lengths),
            groups=None if groups is None else tuple(groups),
            alarm_groups=alarm_groups,
        ),
    )


def _remarks(prefixes: Prefixes, unjudged: npt.NDArray[np.bool_]) -> list[str]:
    remarks = []
    if prefixes.failed.all() or not prefixes.failed.any():
        kind = "failures" if prefixes.failed.any() else "successes"
        remarks.append(f"All runs are {kind}: nothing that compares failures with successes can be computed.")
    if prefixes.n_tasks == 1:
        remarks.append("All runs are of one task: there are no intervals over tasks.")
    if unjudged.any():
        remarks.append(
            f"The monitor said UNKNOWN at {int(unjudged.sum())} of {len(prefixes)} prefixes; they are left out of "
            "every figure but the first alerts, where they never alarm."
        )
    return remarks
