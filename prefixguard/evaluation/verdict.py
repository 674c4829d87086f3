"""What the numbers say, in words.

A monitor can rank prefixes well and still give no alarm worth having. Two questions, answered from the outcome risk:

- *rankable*: does the risk tell failed from successful runs where equally many steps remain? Yes when the 95 %
  interval of that AUROC lies above one half. Where a clock does as well (failed runs are often longer), the verdict
  says so: then length, not content, may be all that ranks.
- *alarm-separable*: at the largest granted budget of at most 10 % of successful runs, is at least a quarter of the
  failed runs alerted with more than H steps left, and is that share, by its interval, above the false-alarm rate?

Source: PrefixGuard RQ4 has the notion; the rule is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prefixguard.evaluation.alerts import AlertRow
from prefixguard.evaluation.figures import RiskFigures

#: A budget beyond this is no low false-alarm rate any more.
MAX_BUDGET = 0.10
#: Share of failed runs that must be alerted early.
EARLY_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Verdict:
    """rankable, alarm_separable: None where the data cannot say. text: one or two sentences."""

    rankable: bool | None
    alarm_separable: bool | None
    text: str


def judge(outcome: RiskFigures, alerts: Sequence[AlertRow], horizon: int, clock: RiskFigures | None = None) -> Verdict:
    """The verdict over the monitor's outcome risk and its first alerts, `alerts` ascending by budget.

    clock: the figures of the step index on the same runs, if known.
    """
    value = outcome.outcome_auroc_at_remaining
    spread = outcome.intervals.get("outcome_auroc_at_remaining")
    if outcome.prevalence in (0.0, 1.0):
        one, other, rest = (
            ("failed", "succeeded", "What alerts would cost cannot be told either.")
            if outcome.prevalence
            else ("succeeded", "failed", "Of alarms only the false ones can be counted.")
        )
        return Verdict(
            None, None, f"Nothing can be said about ranking: all runs {one}, and it takes runs that {other} too. {rest}"
        )
    if spread is None:
        return Verdict(
            None,
            None,
            "Nothing can be said about ranking: the runs do not hold failures and successes, with equally many steps "
            "left, of more than one task.",
        )
    auroc = f"outcome AUROC at matched remaining steps {value:.3f} [{spread[0]:.3f}, {spread[1]:.3f}]"
    if clock is not None and clock.outcome_auroc_at_remaining >= value:
        auroc += f" (no better than a clock: the step index alone has {clock.outcome_auroc_at_remaining:.3f})"
    if spread[0] <= 0.5:
        return Verdict(False, False, f"Not rankable: {auroc}, which does not exclude chance.")
    usable = [
        (row.budget, row.alerts)
        for row in alerts
        if row.budget is not None and row.budget <= MAX_BUDGET and row.alerts is not None
    ]
    if not usable:
        reason = next((row.reason for row in alerts if row.reason), "the monitor carries no alarm threshold.")
        return Verdict(True, None, f"Rankable: {auroc}. Alarms cannot be judged: {reason}")
    # Who is alerted at a budget is alerted at every larger one, so the largest is the one with most to show.
    budget, found = usable[-1]
    low = found.intervals.get("early", (0.0, 0.0))[0]
    separable = found.early >= EARLY_SHARE and low > found.false_alarm_rate
    shares = (
        f"at a false-alarm budget of {100 * budget:g} % (achieved {100 * found.false_alarm_rate:.1f} %) "
        f"{100 * found.alerted:.0f} % of failed runs are alerted, {100 * found.early:.0f} % with more than {horizon} "
        "steps left"
    )
    if separable:
        return Verdict(True, True, f"Rankable and alarm-separable: {auroc}; {shares}.")
    return Verdict(True, False, f"Rankable but not alarm-separable: {auroc}, but {shares}.")
