"""What the numbers say, in words: does the monitor rank, and does its alarm warn?

A monitor can rank prefixes well and still give no alarm worth having. Two questions, answered from the outcome risk:

- *rankable*: does the risk tell failed from successful runs where equally many steps have passed? Yes when the 95 %
  interval of that AUROC lies above one half, which is what any clock has there. How much better than a clock it
  forecasts, its skill says. The AUROC where equally many steps remain stands beside them and is no aim: a longer run
  stands at a later step there, and failed runs are often longer, so that a bare clock ranks well by a number that
  nobody knows while a run goes on. The best possible forecast at a step need not reach that clock.
- *alarm-separable*: at the largest granted budget of at most 10 % of successful runs, is at least a quarter of the
  failed runs alerted with more than H steps left, and is that share, by its interval, above the false-alarm rate?

Source: PrefixGuard RQ4 has the notion; the rule is ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from prefixguard.evaluation.tables.alerts import AlertRow, budget_of
from prefixguard.evaluation.tables.figures import RiskFigures
from prefixguard.metrics import FirstAlerts
from prefixguard.results import number, percent, spread

#: A budget beyond this is no low false-alarm rate any more.
MAX_BUDGET = 0.10
#: Share of failed runs that must be alerted early.
EARLY_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class EvaluationVerdict:
    """rankable, alarm_separable: None where the data cannot say. headline: both in words. ranking, alarm: a sentence
    on each, with its figures.
    """

    rankable: bool | None
    alarm_separable: bool | None
    headline: str
    ranking: str
    alarm: str

    @property
    def text(self) -> str:
        """All of it in words."""
        return f"{self.headline}. {self.ranking} {self.alarm}"

    def as_json(self) -> dict[str, Any]:
        """Both answers and the text."""
        return {"rankable": self.rankable, "alarm_separable": self.alarm_separable, "text": self.text}


def verdict_of(
    outcome: RiskFigures, alerts: Sequence[AlertRow], horizon: int, clock: RiskFigures | None = None
) -> EvaluationVerdict:
    """The verdict over the monitor's outcome risk and its first alerts, `alerts` ascending by budget.

    clock: the figures of the step index on the same runs, if known.
    """
    rankable, ranking = _ranking(outcome, clock)
    row = working_alert(alerts)
    alarm = _alarm(row, alerts, horizon, outcome.prevalence)
    separable = None
    if rankable is None:
        headline = "Nothing can be said about ranking"
    elif not rankable:
        headline, separable = "Not rankable", False
    elif row is None or row.alerts is None:
        headline = "Rankable; alarms cannot be judged"
    else:
        separable = _warns(row.alerts) and not _breaks(row, row.alerts)
        headline = f"Rankable {'and' if separable else 'but not'} alarm-separable"
    return EvaluationVerdict(rankable, separable, headline, ranking, alarm)


def working_alert(alerts: Sequence[AlertRow]) -> AlertRow | None:
    """First alerts at the largest budget of at most 10 % that was granted: what the verdict goes by.

    Who is alerted at a budget is alerted at every larger one, so the largest is the one with most to show.
    """
    granted = [row for row in alerts if row.budget is not None and row.budget <= MAX_BUDGET and row.alerts is not None]
    return granted[-1] if granted else None


def _warns(found: FirstAlerts) -> bool:
    low = found.intervals.get("early", (0.0, 0.0))[0]
    return found.early >= EARLY_SHARE and low > found.false_alarm_rate


def _breaks(row: AlertRow, found: FirstAlerts) -> bool:
    """Are false alarms over the budget by more than chance explains?"""
    return row.budget is not None and found.intervals.get("false_alarm_rate", (0.0, 1.0))[0] > row.budget


def _ranking(outcome: RiskFigures, clock: RiskFigures | None) -> tuple[bool | None, str]:
    ends = outcome.intervals.get("outcome_auroc_at_index")
    if outcome.prevalence in (0.0, 1.0):
        one, other = ("failed", "succeeded") if outcome.prevalence else ("succeeded", "failed")
        return None, f"All runs {one}, and ranking takes runs that {other} too."
    if ends is None:
        return None, "Ranking takes failures and successes with equally many steps behind them, of more than one task."
    value = outcome.outcome_auroc_at_index
    said = (
        f"Of a failed and a successful run with equally many steps behind them it rates the failed one higher in "
        f"{100 * value:.1f} % of cases (AUROC {number(value)} {spread(ends)}; a clock has .500)"
    )
    if ends[0] <= 0.5:
        said += ", which does not exclude chance"
    return ends[0] > 0.5, f"{said}. {_skill(outcome)}{_at_remaining(outcome, clock)}"


def _skill(outcome: RiskFigures) -> str:
    """How it forecasts beside a clock; empty where there is none."""
    if math.isnan(outcome.skill):
        return ""
    than = f"{percent(abs(outcome.skill))} {'less' if outcome.skill >= 0 else 'more'} than that of a clock fitted on"
    ends = outcome.intervals.get("skill")
    said = f"Its log-loss is {than} training runs (skill {f'{number(outcome.skill)} {spread(ends)}'.rstrip()})"
    if ends is not None and ends[1] < 0:
        return f"{said}: a clock forecasts better. "
    if ends is None or ends[0] <= 0:
        return f"{said}, which does not exclude that a clock forecasts as well. "
    return f"{said}. "


def _at_remaining(outcome: RiskFigures, clock: RiskFigures | None) -> str:
    """The AUROC at equally many steps left, and why it is no aim."""
    counting = "" if clock is None else f", and counting steps has {number(clock.outcome_auroc_at_remaining)} there"
    return (
        f"With equally many steps left the AUROC is {number(outcome.outcome_auroc_at_remaining)}{counting}; nobody "
        "knows the steps left while a run goes on, and a longer run stands at a later step, so that is no aim."
    )


def _alarm(row: AlertRow | None, alerts: Sequence[AlertRow], horizon: int, failing: float) -> str:
    """failing: share of prefixes that are of failed runs."""
    if row is None or row.alerts is None:
        refused = [one for one in alerts if one.reason and (one.budget or 0.0) <= MAX_BUDGET]
        easiest = max(refused, key=lambda one: one.budget or 0.0, default=None)
        reason = "the monitor carries no alarm threshold." if easiest is None else easiest.reason
        return f"Alarms cannot be judged: {reason}"
    found = row.alerts
    caught = f"{percent(found.alerted)} of failed runs, {percent(found.early)} with more than {horizon} steps left"
    if failing == 1.0:
        return (
            f"With a budget of {budget_of(row)} of successful runs it alerts {caught}; how many successful runs that "
            "costs cannot be told."
        )
    said = (
        f"Allowed false alarms on {budget_of(row)} of successful runs, it raises them on "
        f"{percent(found.false_alarm_rate)}"
    )
    if row.budget is not None and found.false_alarm_rate > row.budget:
        said += f", which chance {'does not explain' if _breaks(row, found) else 'explains'},"
    if failing == 0.0:
        return f"{said}; what it would alert of failed runs cannot be told."
    said += f" and alerts {caught}"
    if found.leads:
        left = "step" if found.lead_median == 1 else "steps"
        said += f"; half of its alerts on failed runs come with at least {found.lead_median:g} {left} left"
    return f"{said}."
