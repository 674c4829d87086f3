"""What a reply is worth: the tables by hand, and laws over all verdicts."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from prefixguard.auditor import HypothesisAnswer, HypothesisLabel
from prefixguard.errors import ConfigError
from prefixguard.escalate import Verdict, VerdictOutcome
from prefixguard.factory.rewards import RewardConstants, hypothesis, is_valid, multi_granular, three_axis

SAFE, UNSURE = Verdict(VerdictOutcome.SAFE), Verdict(VerdictOutcome.ABSTAIN)
ERROR = Verdict(VerdictOutcome.ERROR, fault="no-verdict")
NEAR = math.exp(-0.5)


def alarm(step: int, agent: str | None = "Coder") -> Verdict:
    return Verdict(VerdictOutcome.ALARM, step=step, agent=agent)


INVALID = st.one_of(st.just(ERROR), st.builds(alarm, st.integers(1, 30), st.none()))
VERDICTS = st.one_of(
    st.sampled_from([SAFE, UNSURE]), st.builds(alarm, st.integers(1, 30), st.sampled_from(["Coder", "Tester"]))
)
GOLD = st.tuples(st.integers(1, 30), st.sampled_from(["Coder", "Tester", None]))


@pytest.mark.parametrize(
    ("verdict", "on_unsafe", "on_safe", "of_failed"),
    [
        (alarm(4), 1.0, -1.0, 1.0),
        (alarm(5), 0.5 * NEAR + 0.5, -1.0, 0.5 * NEAR + 0.5),
        (alarm(4, "Tester"), 0.5, -1.0, 0.5),
        (alarm(6, "Tester"), 0.5 * math.exp(-2), -1.0, 0.5 * math.exp(-2)),
        (alarm(4, None), -1.2, -1.2, 0.0),  # an alarm that blames no agent of the run is no verdict
        (SAFE, -1.0, 1.0, 0.0),
        (UNSURE, 0.0, 0.0, 0.0),
        (ERROR, -1.2, -1.2, 0.0),
    ],
)
def test_the_table_by_hand(verdict: Verdict, on_unsafe: float, on_safe: float, of_failed: float) -> None:
    assert three_axis(verdict, 4, "Coder") == pytest.approx(on_unsafe)
    assert three_axis(verdict, None, None) == pytest.approx(on_safe)
    assert multi_granular(verdict, 4, "Coder") == pytest.approx(of_failed)


@given(INVALID, VERDICTS, GOLD)
def test_what_is_no_verdict_is_worth_no_more_than_any_verdict(one: Verdict, other: Verdict, gold) -> None:
    assert not is_valid(one) and is_valid(other)
    assert three_axis(one, *gold) < three_axis(other, *gold)
    assert three_axis(one, None, None) < three_axis(other, None, None)
    assert multi_granular(one, *gold) <= multi_granular(other, *gold)


@given(st.integers(1, 60), st.integers(1, 60), GOLD)
def test_a_nearer_step_is_worth_no_less(one: int, other: int, gold) -> None:
    assume(abs(one - gold[0]) <= abs(other - gold[0]))
    for reward in (three_axis, multi_granular):
        assert reward(alarm(one), *gold) >= reward(alarm(other), *gold)


@given(GOLD)
def test_unsure_lies_between_a_wrong_and_the_right_verdict(gold) -> None:
    constants = RewardConstants(unsure=0.25)
    assert three_axis(SAFE, *gold, constants) < three_axis(UNSURE, *gold, constants)
    assert three_axis(UNSURE, *gold, constants) < three_axis(alarm(gold[0], gold[1] or "Coder"), *gold, constants) == 1


def answer(label: HypothesisLabel, *agents: str) -> HypothesisAnswer:
    return HypothesisAnswer("FM-1.1", label, label, agents)


ENTAIL, NEUTRAL, CONTRADICT = HypothesisLabel.ENTAIL, HypothesisLabel.NEUTRAL, HypothesisLabel.CONTRADICT


@pytest.mark.parametrize(
    ("said", "gold", "agents", "worth"),
    [
        (answer(ENTAIL, "Coder"), ENTAIL, ("Coder",), 1.0),
        (answer(ENTAIL, "Coder", "Tester"), ENTAIL, ("Coder",), 0.5 + 0.5 * 2 / 3),
        (answer(ENTAIL), ENTAIL, ("Coder",), 0.5),
        (answer(ENTAIL, "Coder"), NEUTRAL, (), -1.0),
        (answer(CONTRADICT), ENTAIL, ("Coder",), -1.0),
        (answer(CONTRADICT), NEUTRAL, (), 0.0),
        (answer(CONTRADICT), CONTRADICT, (), 1.0),
        (answer(HypothesisLabel.ERROR), CONTRADICT, (), -1.2),
    ],
)
def test_the_table_of_hypotheses(said: HypothesisAnswer, gold: HypothesisLabel, agents, worth: float) -> None:
    assert hypothesis(said, gold, agents) == pytest.approx(worth)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"invalid": 0.5}, "invalid 0.5: 1 or more, or a broken reply is worth more than a wrong one."),
        ({"step": 0.7}, "step 0.7 and agent 0.5: weights of 0 or more that add up to 1."),
        ({"sigma": 0.0}, "sigma 0.0: steps, above 0."),
        ({"unsure": -1.0}, "unsure -1.0: between -1, a wrong verdict, and 1, a right one."),
    ],
)
def test_constants_that_would_teach_the_wrong_thing_are_refused(given, sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        RewardConstants(**given)
    assert str(refused.value) == sentence


def test_a_reward_without_a_safe_class_refuses_safe_rows() -> None:
    with pytest.raises(ConfigError, match="knows failed runs only"):
        multi_granular(SAFE, None, None)
