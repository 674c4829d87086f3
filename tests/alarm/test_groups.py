import numpy as np
import pytest

from prefixguard.alarm import AlarmPolicy, Thresholds, alarm_threshold, group_thresholds, watched


def test_every_value_has_the_threshold_of_its_own_runs():
    policy = AlarmPolicy()
    calm, wild = np.linspace(0.0, 0.4, 30), np.linspace(0.3, 0.9, 40)
    groups = group_thresholds("tier", {"wild": wild, "calm": calm}, policy, watch=0.5)
    assert groups.by == "tier" and list(groups.of) == ["calm", "wild"]
    assert groups.of["calm"].alarm == alarm_threshold(calm, policy).alarm
    assert groups.of["wild"].alarm == alarm_threshold(wild, policy).alarm
    assert groups.of["calm"].watch == groups.of["calm"].alarm, "the watch mark never lies above the alarm"
    assert groups.of["wild"].watch == 0.5


def test_a_value_with_too_few_runs_says_so_and_goes_by_the_common_threshold():
    groups = group_thresholds("tier", {"new": np.full(21, 0.5), "old": np.full(22, 0.5)}, AlarmPolicy())
    common = Thresholds(0.7, 0.3, 43, 1, 22, None)
    assert groups.of["new"].alarm is None and groups.of["new"].needed == 22
    assert "21 successful calibration runs" in groups.of["new"].reason
    assert groups.pick("new", common) is common
    assert groups.pick("old", common) is groups.of["old"]
    assert groups.pick("never seen", common) is common and groups.pick(None, common) is common


@pytest.mark.parametrize(("alarm", "mark", "expected"), [(None, 0.9, 0.9), (0.5, 0.9, 0.5), (0.5, 0.2, 0.2)])
def test_watch_marks(alarm, mark, expected):
    assert watched(Thresholds(alarm, 1.0, 5, 0, 22, None), mark).watch == expected
