import math
from dataclasses import replace

import pytest

from prefixguard.alarm import Thresholds
from prefixguard.evaluation import AlertRow, RiskFigures
from prefixguard.evaluation.verdict import judge
from prefixguard.metrics import FirstAlerts

NAN = float("nan")


def figures(value, spread):
    intervals = {} if spread is None else {"outcome_auroc_at_remaining": spread}
    return RiskFigures(NAN, NAN, NAN, NAN, NAN, value, NAN, NAN, intervals)


def alerts(budget, early, interval, false_alarms=0.05, alerted=0.5):
    found = FirstAlerts(0.7, false_alarms, false_alarms, alerted, early, 4, 3, 5, (), 0.1, 0.0, {"early": interval})
    return AlertRow(budget, Thresholds(0.7, 0.3, 40, 1, 22, None), found)


GOOD = figures(0.75, (0.7, 0.8))


def test_not_rankable():
    verdict = judge(figures(0.53, (0.48, 0.58)), [alerts(0.1, 0.9, (0.8, 1.0))], 3)
    assert (verdict.rankable, verdict.alarm_separable) == (False, False)
    assert verdict.text == (
        "Not rankable: outcome AUROC at matched remaining steps 0.530 [0.480, 0.580], which does not exclude chance."
    )


def test_rankable_but_not_alarm_separable():
    verdict = judge(GOOD, [alerts(0.1, 0.08, (0.04, 0.12), 0.058, 0.1)], 3)
    assert (verdict.rankable, verdict.alarm_separable) == (True, False)
    assert verdict.text == (
        "Rankable but not alarm-separable: outcome AUROC at matched remaining steps 0.750 [0.700, 0.800], but at a "
        "false-alarm budget of 10 % (achieved 5.8 %) 10 % of failed runs are alerted, 8 % with more than 3 steps left."
    )


def test_alarm_separable():
    verdict = judge(GOOD, [alerts(0.05, 0.2, (0.1, 0.3)), alerts(0.1, 0.41, (0.3, 0.5))], 3)
    assert (verdict.rankable, verdict.alarm_separable) == (True, True)
    assert verdict.text.startswith("Rankable and alarm-separable: ")
    assert "41 % with more than 3 steps left" in verdict.text


@pytest.mark.parametrize(
    "row",
    [
        alerts(0.1, 0.24, (0.2, 0.3)),  # too few
        alerts(0.1, 0.30, (0.04, 0.5)),  # not surely more than the false alarms
        alerts(0.1, NAN, (0.3, 0.5)),  # no failed run
    ],
)
def test_what_is_not_enough(row):
    assert judge(GOOD, [row], 3).alarm_separable is False


def test_budgets_beyond_a_tenth_do_not_make_it_separable():
    verdict = judge(GOOD, [alerts(0.1, 0.1, (0.0, 0.2)), alerts(0.5, 0.9, (0.8, 1.0))], 3)
    assert verdict.alarm_separable is False


def test_a_rule_without_a_budget_is_not_the_monitors_alarm():
    assert judge(GOOD, [alerts(None, 0.9, (0.8, 1.0))], 3).alarm_separable is None


def test_refused_budgets_say_why():
    refused = AlertRow(0.1, Thresholds(None, 0.3, 9, 0, 22, "9 runs are too few."), None)
    verdict = judge(GOOD, [refused], 3)
    assert verdict.alarm_separable is None
    assert verdict.text.endswith("Alarms cannot be judged: 9 runs are too few.")
    assert judge(GOOD, [], 3).text.endswith("the monitor carries no alarm threshold.")


def test_nothing_to_say():
    verdict = judge(figures(math.nan, None), [], 3)
    assert (verdict.rankable, verdict.alarm_separable) == (None, None)
    assert verdict.text.startswith("Nothing can be said about ranking")


def test_a_clock_that_does_as_well_is_named() -> None:
    verdict = judge(GOOD, [], 3, figures(GOOD.outcome_auroc_at_remaining + 0.01, (0.5, 0.9)))
    assert "no better than a clock: the step index alone has" in verdict.text
    assert "clock" not in judge(GOOD, [], 3, figures(GOOD.outcome_auroc_at_remaining - 0.01, (0.5, 0.9))).text


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (1.0, "all runs failed, and it takes runs that succeeded too"),
        (0.0, "all runs succeeded, and it takes runs that failed too"),
    ],
)
def test_runs_of_one_outcome(share: float, said: str) -> None:
    verdict = judge(replace(figures(math.nan, None), prevalence=share), [], 3)
    assert verdict.rankable is None and said in verdict.text
