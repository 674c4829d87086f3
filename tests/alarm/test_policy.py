import pytest

from prefixguard.alarm import AlarmPolicy
from prefixguard.errors import ConfigError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0.0}, "alarm budget 0 is not a share of runs"),
        ({"budget": 10.0}, "alarm budget 10 is not a share of runs"),
        ({"budget": float("nan")}, "alarm budget nan is not a share"),
        ({"confidence": 1.0}, "alarm confidence 1 is out of range"),
        ({"consecutive": 0}, "an alarm needs at least 1 step"),
        ({"release": 1.5}, "release is 1.5: it is a risk"),
        ({"release": float("nan")}, "release is nan: it is a risk"),
        ({"cooldown": -1}, "cooldown is -1: it counts steps"),
    ],
)
def test_values_outside_their_range_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        AlarmPolicy(**options)


def test_delta_is_free_of_rounding():
    assert AlarmPolicy(confidence=0.9).delta == 0.1
    assert AlarmPolicy(confidence=0.95).delta == 0.05
