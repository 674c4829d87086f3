"""A policy says at once what is wrong with it."""

from dataclasses import replace
from typing import Any

import pytest

from prefixguard.errors import ConfigError
from prefixguard.escalate.policy import EscalationPolicy


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"mark": 0.0}, "it is a risk above 0 and at most 1"),
        ({"mark": 1.5}, "it is a risk above 0 and at most 1"),
        ({"mark": float("nan")}, "it is a risk above 0 and at most 1"),
        ({"risk": "both"}, "risk 'both': one of outcome, imminent."),
        ({"mode": "sync"}, "mode 'sync': one of async, block."),
        ({"intervention": "kill"}, "intervention 'kill': one of warn, nudge, stop."),
        ({"on_alarm": "clear"}, "on_alarm 'clear': one of note, confirm, raise."),
        ({"rising": False, "every": None}, "nothing would ever be asked"),
        ({"every": 0}, "every 0: it counts steps"),
        ({"gap": 0}, "gap 0: it counts steps"),
        ({"gap": True}, "gap True: it counts steps"),
        ({"gap": 1.5}, "gap 1.5: it counts steps"),
        ({"clear_steps": -1}, "clear_steps -1: it counts steps"),
        ({"calls_a_run": -1}, "calls_a_run -1: it is a budget"),
        ({"tokens_a_minute": 7999}, "tokens_a_minute 7999 is less than one question is held to take (8000)"),
        ({"money_a_run": float("inf")}, "money_a_run inf: it is an amount of money"),
        ({"money_a_minute": -1.0}, "money_a_minute -1.0: it is an amount of money"),
        ({"question_tokens": 0}, "question_tokens 0: it counts tokens"),
        ({"queue": 0}, "queue 0: it counts questions"),
        ({"keep_texts": 10}, "keep_texts 10: it counts bytes"),
        ({"deadline": 0.0}, "deadline 0.0: seconds, more than 0."),
        ({"seconds": float("nan")}, "seconds nan: seconds, more than 0."),
        ({"seconds": float("inf")}, "seconds inf: seconds, more than 0. At most 1,000,000."),
        ({"deadline": 1e300}, "deadline 1e+300: seconds, more than 0. At most 1,000,000."),
    ],
)
def test_a_value_outside_its_range_is_told(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as told:
        EscalationPolicy(**wrong)
    assert sentence in str(told.value)


def test_what_a_policy_does_by_default_is_mild() -> None:
    """Nobody waits, nothing is stopped, no alarm is hidden, no run is asked about without end."""
    policy = EscalationPolicy()
    assert (policy.mode, policy.intervention, policy.may_clear_alarm) == ("async", "warn", False)
    assert policy.calls_a_run is not None and policy.calls_a_minute is not None


def test_limits_that_ask_nothing_are_allowed() -> None:
    EscalationPolicy(calls_a_run=0, tokens_a_run=0, money_a_minute=0.0, mark=1.0)


def test_the_older_word_is_taken_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="say intervention"):
        policy = EscalationPolicy(rung="stop")
    assert policy == EscalationPolicy(intervention="stop") == replace(policy, gap=2)
