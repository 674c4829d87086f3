"""A policy says at once what is wrong with it."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.alarm import Level
from prefixguard.errors import ConfigError
from prefixguard.escalate.policy import Asking, EscalationPolicy


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


risks = st.lists(st.one_of(st.none(), st.just(math.nan), st.sampled_from([0.0, 0.2, 0.5, 0.50001, 0.8, 1.0])))
policies = st.builds(
    EscalationPolicy,
    mark=st.sampled_from([0.1, 0.5, 0.9, 1.0]),
    rising=st.just(True),
    every=st.one_of(st.none(), st.integers(1, 6)),
    gap=st.integers(1, 6),
) | st.builds(
    EscalationPolicy,
    mark=st.sampled_from([0.1, 0.5, 0.9]),
    rising=st.just(False),
    every=st.integers(1, 6),
    gap=st.integers(1, 6),
)


def asked(policy: EscalationPolicy, told: list[float | None]) -> dict[int, str]:
    asking = Asking(policy)
    found = {step: asking.wants(step, risk) for step, risk in enumerate(told, 1)}
    return {step: why for step, why in found.items() if why is not None}


def is_above(policy: EscalationPolicy, risk: float | None) -> bool:
    return risk is not None and policy.mark is not None and risk > policy.mark


@given(policies, risks)
def test_nothing_is_asked_below_the_mark_nor_within_the_gap(policy: EscalationPolicy, told: list[float | None]) -> None:
    steps = list(asked(policy, told))
    assert all(is_above(policy, told[step - 1]) for step in steps)
    assert all(later - earlier >= policy.gap for earlier, later in pairwise(steps))


@given(policies, risks)
def test_a_rise_is_asked_about_at_once_where_the_gap_is_over(
    policy: EscalationPolicy, told: list[float | None]
) -> None:
    found = asked(policy, told)
    last, above = -math.inf, False
    for step, risk in enumerate(told, 1):
        if risk is None or risk != risk:
            continue
        rises, above = not above and is_above(policy, risk), is_above(policy, risk)
        if policy.rising and rises and step - last >= policy.gap:
            assert found.get(step) == "rising"
        last = step if step in found else last


@given(policies, risks)
def test_while_the_risk_stays_above_no_stretch_is_longer_than_stated(
    policy: EscalationPolicy, told: list[float | None]
) -> None:
    """Of steps that are judged and above: never more than max(every, gap) without a question."""
    if policy.every is None:
        return
    found = asked(policy, told)
    since, above = 0, False
    for step, risk in enumerate(told, 1):
        if risk is None or risk != risk:
            continue
        if not is_above(policy, risk):
            above = False
            continue
        since = step if not above or step in found else since
        above = True
        assert step - since <= max(policy.every, policy.gap)


@given(policies, risks)
def test_a_step_that_was_not_judged_changes_nothing_but_the_count(
    policy: EscalationPolicy, told: list[float | None]
) -> None:
    one, other = Asking(policy), Asking(policy)
    for step, risk in enumerate(told, 1):
        if risk is None or risk != risk:
            assert one.wants(step, risk) is None
            assert one.wants(step, 1.0, Level.UNKNOWN) is None
        else:
            assert one.wants(step, risk, Level.OK) == other.wants(step, risk)


def test_each_rise_once_without_every() -> None:
    policy = EscalationPolicy(mark=0.5, every=None, gap=1)
    assert asked(policy, [0.6, 0.7, 0.9, 0.4, 0.51, 0.5, 0.6]) == {1: "rising", 5: "rising", 7: "rising"}


def test_a_rise_within_the_gap_is_asked_about_when_it_is_over() -> None:
    policy = EscalationPolicy(mark=0.5, every=None, gap=4)
    assert asked(policy, [0.6, 0.4, 0.6, 0.6, 0.6, 0.6]) == {1: "rising", 5: "rising"}
    assert asked(policy, [0.6, 0.4, 0.6, 0.4, 0.4, 0.4]) == {1: "rising"}


def test_without_rises_every_counts_from_where_the_risk_came_above() -> None:
    policy = EscalationPolicy(mark=0.5, rising=False, every=2, gap=1)
    assert asked(policy, [0.6] * 6) == {3: "every", 5: "every"}


def test_the_mark_of_the_policy_goes_first() -> None:
    policy = EscalationPolicy(mark=0.5)
    assert Asking(policy, 0.9).mark == 0.5
    assert Asking(replace(policy, mark=None), 0.9).mark == 0.9
    with pytest.raises(ConfigError, match="no escalation mark"):
        Asking(replace(policy, mark=None))
