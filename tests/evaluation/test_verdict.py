import math
from dataclasses import replace

import pytest

from prefixguard.alarm import Thresholds
from prefixguard.evaluation import AlertRow, RiskFigures
from prefixguard.evaluation.tables.verdict import verdict_of
from prefixguard.metrics import FirstAlerts

NAN = float("nan")


def figures(value, spread):
    intervals = {} if spread is None else {"outcome_auroc_at_index": spread}
    return RiskFigures(NAN, NAN, NAN, NAN, NAN, 0.61, value, NAN, NAN, intervals)


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
            "Not rankable. Of a failed and a successful run with equally many steps behind them it rates the "
            "failed one higher in 53.0 % of cases (AUROC .530 [.480, .580]; a clock has .500), which does not "
            "exclude chance. With equally many steps left the AUROC is .610; nobody knows the steps left while a "
            "run goes on, and a longer run stands at a later step, so that is no aim. Allowed false alarms on 10 "
            "% of successful runs, it raises them on 5.0 % and alerts 50.0 % of failed runs, 90.0 % with more "
            "than 3 steps left.",
        ),
        (
            GOOD,
            [alerts(0.1, 0.08, (0.04, 0.12), 0.058, 0.1, leads=(3, 4, 5))],
            (True, False),
            "Rankable but not alarm-separable. Of a failed and a successful run with equally many steps behind "
            "them it rates the failed one higher in 75.0 % of cases (AUROC .750 [.700, .800]; a clock has .500). "
            "With equally many steps left the AUROC is .610; nobody knows the steps left while a run goes on, and"
            " a longer run stands at a later step, so that is no aim. Allowed false alarms on 10 % of successful "
            "runs, it raises them on 5.8 % and alerts 10.0 % of failed runs, 8.0 % with more than 3 steps left; "
            "half of its alerts on failed runs come with at least 4 steps left.",
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


@pytest.mark.parametrize(
    ("spread", "separable", "text"),
    [
        ((0.09, 0.30), True, "it raises them on 17.8 %, which chance explains, and alerts"),
        ((0.12, 0.30), False, "it raises them on 17.8 %, which chance does not explain, and alerts"),
    ],
)
def test_a_budget_that_test_runs_break(spread, separable, text):
    row = alerts(0.1, 0.7, (0.6, 0.8), 0.178)
    row = replace(row, alerts=replace(row.alerts, intervals={"early": (0.6, 0.8), "false_alarm_rate": spread}))
    verdict = verdict_of(GOOD, [row], 3)
    assert verdict.alarm_separable is separable and text in verdict.alarm


def test_budgets_beyond_a_tenth_do_not_make_it_separable():
    verdict = verdict_of(GOOD, [alerts(0.1, 0.1, (0.0, 0.2)), alerts(0.5, 0.9, (0.8, 1.0))], 3)
    assert verdict.alarm_separable is False


def test_a_rule_without_a_budget_is_not_the_monitors_alarm():
    assert verdict_of(GOOD, [alerts(None, 0.9, (0.8, 1.0))], 3).alarm_separable is None


def test_refused_budgets_say_why():
    refused = AlertRow(0.1, Thresholds(None, 0.3, 9, 0, 22, "9 runs are too few."), None)
    harder = AlertRow(0.01, Thresholds(None, 0.3, 9, 0, 230, "221 more are needed."), None)
    for rows in ([refused], [harder, refused]):  # the budget that the fewest runs can support
        verdict = verdict_of(GOOD, rows, 3)
        assert verdict.alarm_separable is None
        assert verdict.text.endswith("Alarms cannot be judged: 9 runs are too few.")
    assert verdict_of(GOOD, [], 3).text.endswith("the monitor carries no alarm threshold.")


def test_nothing_to_say():
    verdict = verdict_of(figures(math.nan, None), [], 3)
    assert (verdict.rankable, verdict.alarm_separable) == (None, None)
    assert verdict.text.startswith("Nothing can be said about ranking")


def test_what_the_clock_has_at_equal_steps_left_is_said() -> None:
    verdict = verdict_of(GOOD, [], 3, figures(0.5, (0.5, 0.9)))
    assert "the AUROC is .610, and counting steps has .610 there; nobody knows the steps left" in verdict.ranking


@pytest.mark.parametrize(
    ("skill", "spread", "said"),
    [
        (0.12, (0.05, 0.2), "12.0 % less than that of a clock fitted on training runs (skill .120 [.050, .200]). With"),
        (0.02, (-0.05, 0.1), "(skill .020 [-.050, .100]), which does not exclude that a clock forecasts as well. With"),
        (-0.3, (-0.5, -0.1), "30.0 % more than that of a clock fitted on training runs (skill -.300 [-.500, -.100])"),
        (NAN, None, "a clock has .500). With equally"),
    ],
)  # fmt: skip
def test_the_skill_over_a_clock(skill: float, spread: tuple[float, float] | None, said: str) -> None:
    more = {} if spread is None else {"skill": spread}
    verdict = verdict_of(replace(GOOD, skill=skill, intervals={**GOOD.intervals, **more}), [], 3)
    assert said in verdict.ranking and verdict.rankable is True


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
