"""From scores to the table: arrays in, figures out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from prefixguard.alarm import BUDGETS, AlarmPolicy, Thresholds
from prefixguard.errors import DataError
from prefixguard.evaluation.analyses.detection import detection
from prefixguard.evaluation.analyses.observability import observability
from prefixguard.evaluation.analyses.prevalence import prevalence_table
from prefixguard.evaluation.analyses.shares_seen import shares_seen
from prefixguard.evaluation.analyses.shortcuts import shortcuts
from prefixguard.evaluation.tables.alerts import AlarmGroups, alert_rows
from prefixguard.evaluation.tables.evaluation_table import BaselineRow, Behind, EvaluationTable, RunsLeftOut
from prefixguard.evaluation.tables.figures import RISKS, Basis, Measured, compared
from prefixguard.evaluation.tables.rows import ScoreRow, clock_rows, oracle_rows, reference_rows
from prefixguard.evaluation.tables.verdict import verdict_of
from prefixguard.metrics import Prefixes, ReferenceRisks, Resamples
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
    left_out: RunsLeftOut | None = None,
    notes: Sequence[str] = (),
    alarm_groups: AlarmGroups | None = None,
    sizes: Sequence[npt.ArrayLike] | None = None,
    reference: ReferenceRisks | None = None,
    onsets: Sequence[int | None] | None = None,
    took: Mapping[str, Sequence[npt.ArrayLike]] = MappingProxyType({}),
) -> EvaluationTable:
    """Every figure of a monitor's risks over a set of runs, with what any monitor has to beat.

    imminent_risk, outcome_risk: one float (T,) a run, T its number of steps; NaN where the monitor said UNKNOWN.
    failed, tasks: outcome and task of each run. groups: its agent or file, called `grouped_by` in the table.
    policy, thresholds: the monitor's alarm policy, and its thresholds on the outcome risk by budget.
    baselines: further rows; constant, step index and the oracles are always there.
    calibration_lengths: see `clock_rows`.
    resamples, seed: of the bootstrap over tasks.
    left_out, notes: carried into the table.
    alarm_groups: thresholds by group, by which the monitor's alarms of each run are judged at the policy's own budget.
    sizes: bytes of text of each step, (T,) a run, for the share of text after first alerts; None: not known.
    reference: risks fitted on training runs that read nothing: rows, and the clock of `skill`; None: there are none.
    onsets: step of each run, from 1, from which an alarm is due; None for a run without one. None: not known.
    took: what each step took, by name (seconds, tokens, dollars), (T,) a run, NaN where it is not known.
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
    by_budget = {float(budget): one for budget, one in (thresholds or {}).items()}
    monitor = ScoreRow("monitor", _floats(imminent_risk), _floats(outcome_risk), True, thresholds=by_budget)
    lengths = [len(risk) for risk in monitor.outcome]
    text = None if sizes is None else _floats(sizes)
    if text is not None and [len(size) for size in text] != lengths:
        raise DataError("sizes of steps are not one a step of every run: give one of each, or none at all.")
    prefixes = Prefixes.of(lengths, failed, tasks)
    drawn = Resamples.draw(prefixes.n_tasks, n=resamples, seed=seed)
    basis = Basis(prefixes, horizon, drawn, groups, None if reference is None else reference.by_step(prefixes.step))
    unjudged = np.logical_or(*map(np.isnan, monitor.flat(lengths)))
    rows = (
        monitor,
        *clock_rows(prefixes, lengths, horizon, policy, sorted(by_budget) or list(BUDGETS), calibration_lengths),
        *([] if reference is None else reference_rows(reference, prefixes, lengths, text)),
        *oracle_rows(prefixes, lengths, horizon, seed),
        *baselines,
    )
    own: dict[str, Measured] = {}
    found: list[BaselineRow] = []
    for row in rows:
        # What the monitor did not judge is left out of every row, so that all rows are about the same prefixes.
        scores = [np.where(unjudged, np.nan, flat) for flat in row.flat(lengths)]
        measured = basis.measure(scores, probability=row.probability)
        own = own or measured
        alerts = alert_rows(
            row.outcome,
            prefixes,
            row.thresholds,
            policy,
            horizon=horizon,
            resamples=drawn,
            groups=alarm_groups if row is monitor else None,
            sizes=text,
            took=took,
        )
        imminent, outcome = (compared(own[risk], measured[risk]) for risk in RISKS)
        found.append(BaselineRow(imminent, outcome, alerts, row.oracle, row.note))
    beaten = {row.name: one for row, one in zip(rows[1:], found[1:], strict=True)}
    figures, first_alert = own["outcome"].figures, found[0].first_alert
    sections: dict[str, Result] = {
        "observability": observability(monitor, prefixes, lengths, horizon),
        "prevalence": prevalence_table(rows, prefixes, lengths, horizon, resamples=drawn),
        "shares_seen": shares_seen(rows, prefixes, lengths, resamples=drawn),
    }
    if onsets is not None:
        sections["detection"] = detection(
            monitor.outcome, onsets, failed, prefixes.task, by_budget, policy, resamples=drawn, groups=alarm_groups
        )
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
        left_out=left_out or RunsLeftOut(),
        imminent=own["imminent"].figures,
        outcome=figures,
        first_alert=first_alert,
        baselines=beaten,
        verdict=verdict_of(figures, first_alert, horizon, beaten["step index"].outcome),
        notes=(*notes, *remarks(prefixes, unjudged, "The monitor")),
        sections=sections,
        behind=Behind(
            rows=rows,
            tasks=tuple(tasks),
            failed=tuple(bool(fail) for fail in failed),
            lengths=tuple(lengths),
            groups=None if groups is None else tuple(groups),
            alarm_groups=alarm_groups,
        ),
    )


def _floats(each: Sequence[npt.ArrayLike]) -> list[npt.NDArray[np.float64]]:
    return [np.asarray(one, dtype=np.float64) for one in each]


def remarks(prefixes: Prefixes, unjudged: npt.NDArray[np.bool_], who: str) -> list[str]:
    """What figures over these prefixes cannot say. unjudged: bool (N,). who: did not judge them."""
    said = []
    if prefixes.failed.all() or not prefixes.failed.any():
        kind = "failures" if prefixes.failed.any() else "successes"
        said.append(f"All runs are {kind}: nothing that compares failures with successes can be computed.")
    if prefixes.n_tasks == 1:
        said.append("All runs are of one task: there are no intervals over tasks.")
    if unjudged.any():
        said.append(
            f"{who} said UNKNOWN at {int(unjudged.sum())} of {len(prefixes)} prefixes; they are left out of "
            "every figure but the first alerts, where they never alarm."
        )
    return said
