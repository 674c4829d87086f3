import math
from dataclasses import replace

import pytest

from prefixguard.alarm import Thresholds
from prefixguard.evaluation import AlertRow, RiskFigures
from prefixguard.evaluation.tables.verdict import verdict_of
from prefixguard.metrics import FirstAlerts

NAN = float("nan")


def figures(value, spread):
    intervals = {} if spread is None else {"outcome_auroc_at_remaining": spread}
    return RiskFigures(NAN, NAN, NAN, NAN, NAN, value, NAN, NAN, intervals)


def alerts(budget, early, interval, false_alarms=0.05, alerted=0.5, leads=()):
    found = FirstAlerts(0.7, false_alarms, false_alarms, alerted, early, 4, 3, 5, leads, 0.1, 0.0, {"early": interval})
    return AlertRow(budget, Thresholds(0.7, 0.3, 40, 1, 22, None), found)


GOOD = figures(0.75, (0.7, 0.8))


@pytest.mark.parametrize(
    ("outcome", "rows", "answers", "text"),
    [
        (
            figures(0.53, (0.48, 0.58)),
            [alerts(0.1, 0.9, (0.8, 1.0))],
            (False, False),
            "Not rankable. Of a failed and a successful run with equally many steps left it rates the failed one "
            "higher in 53.0 % of cases (AUROC .530 [.480, .580]; a coin has .500), which does not exclude chance. "
            "Allowed false alarms on 10 % of successful runs, it raises them on 5.0 % and alerts 50.0 % of failed "
            "runs, 90.0 % with more than 3 steps left.",
        ),
        (
            GOOD,
            [alerts(0.1, 0.08, (0.04, 0.12), 0.058, 0.1, leads=(3, 4, 5))],
            (True, False),
            "Rankable but not alarm-separable. Of a failed and a successful run with equally many steps left it rates "
            "the failed one higher in 75.0 % of cases (AUROC .750 [.700, .800]; a coin has .500). Allowed false alarms "
            "on 10 % of successful runs, it raises them on 5.8 % and alerts 10.0 % of failed runs, 8.0 % with more "
            "than 3 steps left; half of its alerts on failed runs come with at least 4 steps left.",
        ),
    ],
)
def test_both_questions_and_their_figures(outcome, rows, answers, text):
    verdict = verdict_of(outcome, rows, 3)
    assert (verdict.rankable, verdict.alarm_separable) == answers
    assert verdict.text == text
    assert verdict.as_json() == {"rankable": answers[0], "alarm_separable": answers[1], "text": text}


def test_alarm_separable():
    verdict = verdict_of(GOOD, [alerts(0.05, 0.2, (0.1, 0.3)), alerts(0.1, 0.41, (0.3, 0.5))], 3)
    assert (verdict.rankable, verdict.alarm_separable) == (True, True)
    assert verdict.headline == "Rankable and alarm-separable"
    assert "41.0 % with more than 3 steps left" in verdict.alarm


@pytest.mark.parametrize(
    "row",
    [
        alerts(0.1, 0.24, (0.2, 0.3)),  # too few
        alerts(0.1, 0.30, (0.04, 0.5)),  # not surely more than the false alarms
        alerts(0.1, NAN, (0.3, 0.5)),  # no failed run
    ],
)
def test_what_is_not_enough(row):
    assert verdict_of(GOOD, [row], 3).alarm_separable is False


def test_budgets_beyond_a_tenth_do_not_make_it_separable():
    verdict = verdict_of(GOOD, [alerts(0.1, 0.1, (0.0, 0.2)), alerts(0.5, 0.9, (0.8, 1.0))], 3)
    assert verdict.alarm_separable is False


def test_a_rule_without_a_budget_is_not_the_monitors_alarm():
    assert verdict_of(GOOD, [alerts(None, 0.9, (0.8, 1.0))], 3).alarm_separable is None


def test_refused_budgets_say_why():
    refused = AlertRow(0.1, Thresholds(None, 0.3, 9, 0, 22, "9 runs are too few."), None)
    verdict = verdict_of(GOOD, [refused], 3)
    assert verdict.alarm_separable is None
    assert verdict.text.endswith("Alarms cannot be judged: 9 runs are too few.")
    assert verdict_of(GOOD, [], 3).text.endswith("the monitor carries no alarm threshold.")


def test_nothing_to_say():
    verdict = verdict_of(figures(math.nan, None), [], 3)
    assert (verdict.rankable, verdict.alarm_separable) == (None, None)
    assert verdict.text.startswith("Nothing can be said about ranking")


def test_a_clock_that_does_as_well_is_named() -> None:
    verdict = verdict_of(GOOD, [], 3, figures(GOOD.outcome_auroc_at_remaining + 0.01, (0.5, 0.9)))
    assert "; counting steps does as well (.760)." in verdict.ranking
    assert (
        "counting steps"
        not in verdict_of(GOOD, [], 3, figures(GOOD.outcome_auroc_at_remaining - 0.01, (0.5, 0.9))).text
    )


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (1.0, "All runs failed, and ranking takes runs that succeeded too."),
        (0.0, "All runs succeeded, and ranking takes runs that failed too."),
    ],
)
def test_runs_of_one_outcome(share: float, said: str) -> None:
    verdict = verdict_of(replace(figures(math.nan, None), prevalence=share), [], 3)
    assert verdict.rankable is None and said in verdict.text
