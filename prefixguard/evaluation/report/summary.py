"""The top of a report: the verdict, the lead over what costs nothing, and what folds and the leak audit found."""

from __future__ import annotations

import math
from collections.abc import Iterator

from prefixguard.evaluation.report.given import RISK_TITLES, name
from prefixguard.evaluation.tables.evaluation_table import BaselineRow, EvaluationTable
from prefixguard.evaluation.tables.verdict import working_alert
from prefixguard.results import Facts, Summary, number, percent, percents, signed, spread


def summary_of(table: EvaluationTable) -> Summary:
    """Headline, sentences and figures, all of them from the table."""
    says = table.verdict
    headline = says.headline
    if table.left_out.in_sample:
        headline = f"In sample: {headline[0].lower()}{headline[1:]}"
    sentences = (says.ranking, _lead(table), says.alarm, *_folds(table), *_leaks(table))
    good = bool(says.rankable and says.alarm_separable and not table.left_out.in_sample)
    return Summary(headline, sentences, _facts(table), good)


def best_honest(table: EvaluationTable, which: str) -> tuple[str, BaselineRow] | None:
    """The baseline with the highest AUPRC of this risk ("imminent" or "outcome") that a monitor could really be."""
    honest = {
        (getattr(row, which).auprc, title): (title, row)
        for title, row in table.baselines.items()
        if not row.oracle and math.isfinite(getattr(row, which).auprc)
    }
    return honest[max(honest)] if honest else None


def _lead(table: EvaluationTable) -> str:
    parts = []
    for which, meaning in RISK_TITLES.items():
        best = best_honest(table, which)
        mine = getattr(table, which).auprc
        if best is None or not math.isfinite(mine):
            continue
        theirs = getattr(best[1], which)
        ahead = theirs.differences.get("auprc")
        said = f"{number(mine)} to {number(theirs.auprc)} for {meaning.lower()} ({name(best[0])}"
        if ahead is not None:
            said += f"; {signed(ahead.value)} {spread(ahead.interval, with_sign=True)}".rstrip()
            if ahead.interval is not None:
                low, high = ahead.interval
                said += ", ahead" if low > 0 else ", behind" if high < 0 else ", not told apart"
        parts.append(f"{said})")
    if not parts:
        return "How far it is ahead of the best honest baseline cannot be said: AUPRC takes failures and successes."
    return f"Against the best honest baseline its AUPRC is {', and '.join(parts)}."


def _folds(table: EvaluationTable) -> Iterator[str]:
    """What the same training says of more runs, where folds were fitted: this table may be too small to tell."""
    found = table.sections["folds"].as_json() if "folds" in table.sections else {"outcome": {}}
    idx = found["outcome"].get("outcome_auroc_at_index")
    if idx is not None:
        ends = found["outcome"]["intervals"].get("outcome_auroc_at_index")
        yield (
            f"The same training on {found['folds']} task-grouped folds, measured on {found['runs']:,} runs instead of "
            f"{table.runs:,}: AUROC {f'{number(idx)} {spread(ends)}'.rstrip()} at equally many steps passed."
        )


def _leaks(table: EvaluationTable) -> Iterator[str]:
    """A further sentence where the leak audit found errors: then no figure can be taken at its word."""
    found = table.sections["leaks"].as_json().get("findings", ()) if "leaks" in table.sections else ()
    errors = sorted({str(one["field"]) for one in found if one["severity"] == "error"})
    if errors:
        yield f"The leak audit found errors in {name(', '.join(errors))}: all figures may flatter, mend these first."


def _facts(table: EvaluationTable) -> Facts:
    rank, skill = table.outcome.outcome_auroc_at_index, table.outcome.skill
    items = [
        (title, number(getattr(table, which).auprc), f"AUPRC; chance {number(getattr(table, which).prevalence)}")
        for which, title in RISK_TITLES.items()
    ]
    items.append(("Ranks", number(rank), "AUROC at equally many steps passed; a clock has .500"))
    if math.isfinite(skill):
        items.append(("Skill", number(skill), "share of a fitted clock's log-loss that it takes away; a clock has 0"))
    row = working_alert(table.first_alert)
    if row is not None and row.alerts is not None and row.budget is not None:
        found = row.alerts
        early = f"of failed runs {percents(found.intervals.get('early'))}".rstrip()
        allowed = f"of successful runs; budget {100 * row.budget:g} %"
        items += [
            ("Alerted early", percent(found.early), early),
            ("False alarms", percent(found.false_alarm_rate), allowed),
            ("Steps saved", percent(found.steps_saved), "of failed runs' steps come after the alert"),
        ]
    counted = f"{table.failed_runs:,} failed; {table.tasks:,} tasks; {table.prefixes:,} prefixes"
    return Facts((*items, ("Runs", f"{table.runs:,}", counted)))
