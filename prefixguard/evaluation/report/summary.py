"""The verdict in three sentences: does it rank, does it beat what costs nothing, does it warn."""

from __future__ import annotations

import math

from prefixguard.evaluation.alerts import AlertRow
from prefixguard.evaluation.table import BaselineRow, EvaluationTable
from prefixguard.evaluation.verdict import MAX_BUDGET
from prefixguard.results import Facts, Summary, number, percent, percents, signed, spread
from prefixguard.runtime import plain

#: What the two risks are called in sentences.
SOON, AT_ALL = "failing soon", "failing at all"


def verdict_of(table: EvaluationTable) -> Summary:
    """Headline, three sentences and figures, all of them from the table."""
    says = table.verdict
    if says.rankable is None:
        headline = "Nothing can be said about ranking"
    elif not says.rankable:
        headline = "Not rankable"
    elif says.alarm_separable is None:
        headline = "Rankable; alarms cannot be judged"
    elif says.alarm_separable:
        headline = "Rankable and alarm-separable"
    else:
        headline = "Rankable but not alarm-separable"
    sentences = (_ranking(table), _lead(table), _alarm(table), *_folds(table), *_leaks(table))
    if table.left_out.in_sample:
        headline = f"In sample: {headline[0].lower()}{headline[1:]}"
    good = bool(says.rankable and says.alarm_separable and not table.left_out.in_sample)
    return Summary(headline, sentences, _facts(table), good)


def _folds(table: EvaluationTable) -> tuple[str, ...]:
    """What the same training says of more runs, where folds were fitted: this table may be too small to tell."""
    section = table.sections.get("folds")
    if section is None:
        return ()
    found = section.as_json()
    rem = found["outcome"]["outcome_auroc_at_remaining"]
    if rem is None:
        return ()
    ends = found["outcome"]["intervals"].get("outcome_auroc_at_remaining")
    return (
        f"The same training on {found['folds']} task-grouped folds, measured on {found['runs']:,} runs instead of "
        f"{table.runs:,}: AUROC {f'{number(rem)} {spread(ends)}'.rstrip()} at equally many steps left.",
    )


def _leaks(table: EvaluationTable) -> tuple[str, ...]:
    """A fourth sentence where the leak audit found errors: then no figure can be taken at its word."""
    section = table.sections.get("leaks")
    found = section.as_json().get("findings", ()) if section is not None else ()
    errors = sorted({str(one["field"]) for one in found if one["severity"] == "error"})
    if not errors:
        return ()
    return (f"The leak audit found errors in {_name(', '.join(errors))}: all figures may flatter, mend these first.",)


def best_honest(table: EvaluationTable, which: str) -> tuple[str, BaselineRow] | None:
    """The baseline with the highest AUPRC of this risk ("imminent" or "outcome") that a monitor could really be."""
    honest = [
        (getattr(row, which).auprc, title, row)
        for title, row in table.baselines.items()
        if not row.oracle and math.isfinite(getattr(row, which).auprc)
    ]
    if not honest:
        return None
    _, title, row = max(honest, key=lambda entry: (entry[0], entry[1]))
    return title, row


def largest_granted(table: EvaluationTable) -> AlertRow | None:
    """The monitor's first alerts at the largest budget of at most 10 % that was granted: what the verdict goes by."""
    granted = [
        row
        for row in table.first_alert
        if row.budget is not None and row.budget <= MAX_BUDGET and row.alerts is not None
    ]
    return granted[-1] if granted else None


def _ranking(table: EvaluationTable) -> str:
    value = table.outcome.outcome_auroc_at_remaining
    ends = table.outcome.intervals.get("outcome_auroc_at_remaining")
    if table.failed_runs in (0, table.runs):
        one, other = ("failed", "succeeded") if table.failed_runs else ("succeeded", "failed")
        return f"Whether it ranks cannot be said: all {table.runs:,} runs {one}, and it takes runs that {other} too."
    if ends is None or not math.isfinite(value):
        return (
            "Whether it ranks cannot be said: that takes failures and successes with equally many steps left, of more "
            "than one task."
        )
    said = (
        f"Of a failed and a successful run with equally many steps left it rates the failed one higher in "
        f"{100 * value:.1f} % of cases (AUROC {number(value)} {spread(ends)}; a coin has .500)"
    )
    if ends[0] <= 0.5:
        said += ", which does not exclude chance"
    clock = table.baselines.get("step index")
    if clock is not None and clock.outcome.outcome_auroc_at_remaining >= value:
        said += f"; counting steps does as well ({number(clock.outcome.outcome_auroc_at_remaining)})"
    return said + "."


def _lead(table: EvaluationTable) -> str:
    parts = []
    for which, meaning in (("imminent", SOON), ("outcome", AT_ALL)):
        best = best_honest(table, which)
        mine = getattr(table, which).auprc
        if best is None or not math.isfinite(mine):
            continue
        title, row = best
        theirs = getattr(row, which)
        ahead = theirs.differences.get("auprc")
        said = f"{number(mine)} to {number(theirs.auprc)} for {meaning} ({_name(title)}"
        if ahead is not None:
            said += f"; {signed(ahead.value)} {spread(ahead.interval, with_sign=True)}".rstrip()
            if ahead.interval is not None:
                low, high = ahead.interval
                said += ", ahead" if low > 0 else ", behind" if high < 0 else ", not told apart"
        said += ")"
        parts.append(said)
    if not parts:
        return "How far it is ahead of the best honest baseline cannot be said: AUPRC takes failures and successes."
    return f"Against the best honest baseline its AUPRC is {', and '.join(parts)}."


def _alarm(table: EvaluationTable) -> str:
    row = largest_granted(table)
    if row is None or row.alerts is None or row.budget is None:
        reason = next(
            (row.reason for row in table.first_alert if row.reason), "the monitor carries no alarm threshold."
        )
        return f"Alarms cannot be judged: {reason}"
    found = row.alerts
    if not table.failed_runs:
        return (
            f"Allowed false alarms on {100 * row.budget:g} % of successful runs, it raises them on "
            f"{percent(found.false_alarm_rate)}; what it would alert of failed runs cannot be told."
        )
    if table.failed_runs == table.runs:
        return (
            f"With a budget of {100 * row.budget:g} % of successful runs it alerts {percent(found.alerted)} of failed "
            f"runs, {percent(found.early)} with more than {table.horizon} steps left; how many successful runs that "
            "costs cannot be told."
        )
    said = (
        f"Allowed false alarms on {100 * row.budget:g} % of successful runs, it raises them on "
        f"{percent(found.false_alarm_rate)} and alerts {percent(found.alerted)} of failed runs, "
        f"{percent(found.early)} with more than {table.horizon} steps left"
    )
    if found.leads:
        left = "step" if found.lead_median == 1 else "steps"
        said += f"; half of its alerts on failed runs come with at least {found.lead_median:g} {left} left"
    return said + "."


def _facts(table: EvaluationTable) -> Facts:
    imminent, outcome = table.imminent, table.outcome
    items = [
        ("Failing soon", number(imminent.auprc), f"AUPRC; chance {number(imminent.prevalence)}"),
        ("Failing at all", number(outcome.auprc), f"AUPRC; chance {number(outcome.prevalence)}"),
        ("Ranks", number(outcome.outcome_auroc_at_remaining), "AUROC at equally many steps left; chance .500"),
    ]
    row = largest_granted(table)
    if row is not None and row.alerts is not None and row.budget is not None:
        found = row.alerts
        items += [
            (
                "Alerted early",
                percent(found.early),
                f"of failed runs {percents(found.intervals.get('early'))}".rstrip(),
            ),
            ("False alarms", percent(found.false_alarm_rate), f"of successful runs; budget {100 * row.budget:g} %"),
            ("Steps saved", percent(found.steps_saved), "of failed runs' steps come after the alert"),
        ]
    items.append(
        ("Runs", f"{table.runs:,}", f"{table.failed_runs:,} failed; {table.tasks:,} tasks; {table.prefixes:,} prefixes")
    )
    return Facts(tuple(items))


def _name(text: str) -> str:
    return plain(text, 80)
