"""When a question is wanted."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.alarm import Level
from prefixguard.errors import ConfigError
from prefixguard.escalate.policy import Asking, EscalationPolicy

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
