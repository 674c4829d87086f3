import numpy as np
import pytest

from prefixguard.alarm import AlarmPolicy
from prefixguard.errors import DataError
from prefixguard.metrics import Resamples, first_alerts

TASKS = np.array([0, 0, 1, 1, 2])
SCORES = [
    [0.1, 0.9, 0.1, 0.1, 0.1, 0.1, 0.1],  # failed, alerted at 2, 5 left: early
    [0.1, 0.1, 0.9],  # failed, alerted at the last step
    [0.1, 0.1],  # failed, missed
    [0.2, 0.9, 0.1, 0.1],  # success, false alarm, 2 steps lost
    [0.2, 0.2],  # success
]
FAILED = [True, True, True, False, False]


def test_the_figures_of_a_small_set_by_hand():
    found = first_alerts(SCORES, FAILED, TASKS, 0.5, AlarmPolicy(), horizon=3)
    assert found.false_alarm_rate == 0.5
    assert found.false_alarm_rate_by_task == 0.5
    assert found.alerted == pytest.approx(2 / 3)
    assert found.early == pytest.approx(1 / 3)
    assert found.leads == (0, 5)
    assert (found.lead_low, found.lead_median, found.lead_high) == (1.25, 2.5, 3.75)
    assert found.steps_saved == pytest.approx(5 / 12)
    assert found.steps_lost == pytest.approx(2 / 6)


def test_early_means_more_steps_left_than_the_horizon():
    assert first_alerts(SCORES, FAILED, TASKS, 0.5, AlarmPolicy(), horizon=4).early == pytest.approx(1 / 3)
    assert first_alerts(SCORES, FAILED, TASKS, 0.5, AlarmPolicy(), horizon=5).early == 0.0


def test_the_threshold_is_passed_strictly_and_in_a_row():
    assert first_alerts(SCORES, FAILED, TASKS, 0.9, AlarmPolicy(), horizon=3).alerted == 0.0
    assert first_alerts(SCORES, FAILED, TASKS, 0.5, AlarmPolicy(consecutive=2), horizon=3).alerted == 0.0


def test_tasks_are_weighted_alike_in_the_rate_that_the_bound_speaks_of():
    scores = [[0.9], [0.9], [0.9], [0.1]]
    found = first_alerts(scores, [False] * 4, np.array([0, 0, 0, 1]), 0.5, AlarmPolicy(), horizon=3)
    assert found.false_alarm_rate == 0.75
    assert found.false_alarm_rate_by_task == 0.5
    assert np.isnan(found.alerted)
    assert np.isnan(found.lead_median)


def test_intervals_come_from_the_resamples():
    rng = np.random.default_rng(0)
    scores = [rng.random(10) for _ in range(200)]
    failed = rng.random(200) < 0.3
    tasks = np.arange(200) // 4
    resamples = Resamples.draw(50, n=400, seed=0)
    found = first_alerts(scores, failed, tasks, 0.9, AlarmPolicy(), horizon=3, resamples=resamples)
    for name in ("false_alarm_rate", "false_alarm_rate_by_task", "alerted", "early", "steps_saved", "steps_lost"):
        low, high = found.intervals[name]
        assert low < getattr(found, name) < high


def test_steps_that_were_not_judged_never_alarm():
    found = first_alerts(
        [[np.nan, np.nan], [np.nan, 0.9]], [True, True], np.array([0, 1]), 0.5, AlarmPolicy(), horizon=0
    )
    assert found.alerted == 0.5


def test_no_runs():
    found = first_alerts([], [], np.array([], dtype=np.int64), 0.5, AlarmPolicy(), horizon=3)
    assert np.isnan(found.false_alarm_rate)
    with pytest.raises(DataError, match="1 runs with 0 outcomes"):
        first_alerts([[0.1]], [], np.array([], dtype=np.int64), 0.5, AlarmPolicy(), horizon=3)


@pytest.mark.parametrize("alarms", [0, 1, 2, 4])
def test_one_alarm_more_does_not_make_the_interval_much_narrower(alarms: int) -> None:
    """Of 100 runs of 15 tasks: runs of a task may alarm together, whether none does or one."""
    scores = [np.ones(3) * (i < alarms) for i in range(100)]
    tasks, resamples = np.arange(100) % 15, Resamples.draw(15, n=200)
    found = first_alerts(scores, [False] * 100, tasks, 0.5, AlarmPolicy(), horizon=3, resamples=resamples)
    low, high = found.intervals["false_alarm_rate"]
    assert low <= alarms / 100 < 0.2 < high < 0.32


def test_nothing_counted_is_not_certainty() -> None:
    """No false alarm in 21 tasks does not exclude one in seven."""
    quiet = [np.zeros(5)] * 42
    failed, tasks = [i >= 21 for i in range(42)], np.arange(42)
    found = first_alerts(quiet, failed, tasks, 0.5, AlarmPolicy(), horizon=3, resamples=Resamples.draw(42, n=50))
    assert (found.false_alarm_rate, found.alerted) == (0.0, 0.0)
    for name in ("false_alarm_rate", "false_alarm_rate_by_task", "alerted", "early"):
        low, high = found.intervals[name]
        assert low == 0.0 and high == pytest.approx(1 - 0.025 ** (1 / 21))
    loud = first_alerts(
        [np.ones(9)] * 42, failed, tasks, 0.5, AlarmPolicy(), horizon=3, resamples=Resamples.draw(42, n=9)
    )
    assert loud.intervals["alerted"] == (pytest.approx(0.025 ** (1 / 21)), 1.0)
