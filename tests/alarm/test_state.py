import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.alarm import AlarmPolicy, AlarmState, Level, Thresholds, first_alert, run_maximum

#: A coarse grid, so that risks, thresholds and marks tie often.
grid = st.integers(0, 10).map(lambda i: i / 10)
risk_lists = st.lists(grid | st.just(math.nan), max_size=25)
policies = st.builds(
    AlarmPolicy,
    consecutive=st.integers(1, 4),
    release=st.none() | grid,
    cooldown=st.integers(0, 4),
)


def thresholds(alarm, watch=0.3):
    return Thresholds(alarm, watch, 100, 5, 22, None)


def levels(risks, policy, alarm, watch=0.3):
    state = AlarmState(policy, thresholds(alarm, watch))
    return [state.step(risk) for risk in risks]


@given(risk_lists, grid, policies)
def test_a_run_alarms_exactly_when_its_maximum_exceeds_the_threshold(risks, theta, policy):
    """Strictly: at a threshold equal to the maximum there is no alarm."""
    assert (first_alert(risks, theta, policy) is not None) == (run_maximum(risks, policy) > theta)


@given(risk_lists, grid, policies)
def test_step_by_step_and_whole_run_agree_on_the_first_alert(risks, theta, policy):
    online = levels(risks, policy, theta)
    first = first_alert(risks, theta, policy)
    assert (online.index(Level.ALARM) + 1 if Level.ALARM in online else None) == first


@given(risk_lists, grid, grid, policies)
def test_a_lower_threshold_never_alarms_later(risks, one, other, policy):
    low, high = sorted((one, other))
    late, early = first_alert(risks, high, policy), first_alert(risks, low, policy)
    if late is not None:
        assert early is not None
        assert early <= late


@given(risk_lists, policies)
def test_the_maximum_is_that_of_the_definition(risks, policy):
    """Max over windows of the min, in plain Python."""
    judged = [risk for risk in risks if not math.isnan(risk)]
    k = policy.consecutive
    windows = [min(judged[i : i + k]) for i in range(len(judged) - k + 1)]
    assert run_maximum(risks, policy) == max(windows, default=-math.inf)


@given(risk_lists, policies, grid)
def test_steps_that_cannot_be_judged_change_nothing(risks, policy, theta):
    judged = [risk for risk in risks if not math.isnan(risk)]
    with_gaps = [level for level in levels(risks, policy, theta) if level != Level.UNKNOWN]
    assert with_gaps == levels(judged, policy, theta)
    assert run_maximum(risks, policy) == run_maximum(judged, policy)


@given(risk_lists, policies)
def test_without_a_threshold_nothing_alarms(risks, policy):
    assert Level.ALARM not in levels(risks, policy, None)
    assert first_alert(risks, None, policy) is None


@given(risk_lists, policies, grid, grid)
def test_watch_is_every_step_over_the_mark_that_does_not_alarm(risks, policy, theta, watch):
    for risk, level in zip(risks, levels(risks, policy, theta, watch), strict=True):
        if math.isnan(risk):
            assert level == Level.UNKNOWN
        elif level != Level.ALARM:
            assert level == (Level.WATCH if risk > min(watch, theta) else Level.OK)


def test_an_alarm_stays_without_release():
    assert levels([0.9, 0.0, 0.0], AlarmPolicy(), 0.5) == [Level.ALARM] * 3


def test_release_stops_the_alarm_and_cooldown_holds_the_next():
    policy = AlarmPolicy(release=0.2, cooldown=2)
    online = levels([0.9, 0.2, 0.1, 0.9, 0.9, 0.9], policy, 0.5)
    assert online == [Level.ALARM, Level.ALARM, Level.OK, Level.WATCH, Level.WATCH, Level.ALARM]


def test_steps_of_the_cooldown_do_not_count_as_consecutive():
    policy = AlarmPolicy(release=0.2, cooldown=1, consecutive=2)
    online = levels([0.9, 0.9, 0.0, 0.9, 0.9, 0.9], policy, 0.5)
    assert online == [Level.WATCH, Level.ALARM, Level.OK, Level.WATCH, Level.WATCH, Level.ALARM]


def test_a_release_above_the_threshold_does_not_make_the_alarm_flicker():
    assert levels([0.6, 0.6, 0.6, 0.4], AlarmPolicy(release=0.9), 0.5) == [Level.ALARM] * 3 + [Level.WATCH]


def test_risks_are_not_changed():
    risks = np.array([0.3, np.nan, 0.9])
    run_maximum(risks, AlarmPolicy())
    first_alert(risks, 0.5, AlarmPolicy())
    np.testing.assert_array_equal(risks, [0.3, np.nan, 0.9])
