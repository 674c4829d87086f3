"""How proposers and verifiers vote: laws of the vote, and what is read of replies."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.factory.candidates import (
    CRITERIA,
    CandidateCheck,
    CandidateVote,
    ProposedStep,
    merged,
    read_candidates,
    read_check,
    winner,
)
from prefixguard.stepview import StepRecord


def record(index: int, agent: str = "Coder", actor: str = "agent") -> StepRecord:
    return StepRecord(index, actor, agent, "respond", "", "", "text", "", "ok")


RECORDS = (record(1, "Planner"), record(2), record(3), record(4, "", "user"), record(5))


def check(*failed: str, confidence: float = 0.5) -> CandidateCheck:
    return CandidateCheck({name: name not in failed for name in CRITERIA}, confidence)


def vote(step: int, proposers: int, *checks: CandidateCheck) -> CandidateVote:
    return CandidateVote(ProposedStep(step, "Coder", tuple(range(proposers)), ""), checks)


YES, NO = check(), check("decisive")
checks = st.builds(
    lambda held, sure: CandidateCheck(dict(zip(CRITERIA, held, strict=True)), sure),
    st.tuples(*[st.booleans()] * 4),
    st.sampled_from([0.1, 0.5, 0.9]),
)
votes = st.lists(
    st.builds(vote, st.integers(1, 20), st.integers(1, 5), checks, checks, checks),
    max_size=5,
    unique_by=lambda one: one.candidate.step,
)


@given(votes=votes, needed=st.integers(1, 3), order=st.randoms(use_true_random=False))
def test_the_winner_is_admitted_and_order_does_not_matter(votes: list, needed: int, order: random.Random) -> None:
    best, why = winner(votes, needed)
    assert (best is None) == bool(why) == (not any(one.passes >= needed for one in votes))
    if best is not None:
        assert best.passes >= needed
        assert all(
            len(one.candidate.proposers) <= len(best.candidate.proposers) for one in votes if one.passes >= needed
        )
    shuffled = [CandidateVote(one.candidate, tuple(order.sample(one.checks, 3))) for one in votes]
    order.shuffle(shuffled)
    again, said = winner(shuffled, needed)
    assert (again and again.candidate, said) == (best and best.candidate, why)


@given(votes=votes, criterion=st.sampled_from(CRITERIA))
def test_one_that_always_says_yes_admits_nobody(votes: list, criterion: str) -> None:
    """With two of three needed; nor is one that always says no enough to keep a candidate out."""
    one_yes = [CandidateVote(one.candidate, (YES, check(criterion), check(criterion))) for one in votes]
    assert winner(one_yes, 2)[0] is None
    one_no = [CandidateVote(one.candidate, (YES, YES, check(criterion))) for one in votes]
    assert (winner(one_no, 2)[0] is None) == (not votes)


@pytest.mark.parametrize(
    ("votes", "step", "why"),
    [
        ([], None, "no candidate was proposed"),
        ([vote(2, 5, YES, NO, NO)], None, "no candidate was admitted"),
        ([vote(2, 5, YES), vote(3, 1)], None, "too few verifiers answered"),
        ([vote(2, 1, YES, YES, NO), vote(3, 4, YES, NO, NO)], 2, ""),  # more proposers, and not admitted
        ([vote(2, 2, YES, YES, YES), vote(5, 3, YES, YES, NO)], 5, ""),  # most proposers
        ([vote(2, 2, YES, YES), vote(5, 2, check(confidence=0.9), YES)], 5, ""),  # a tie: confidence
        ([vote(5, 2, YES, YES), vote(3, 2, YES, YES)], 3, ""),  # a tie in both: the earliest
        ([vote(2, 1, YES, YES)], 2, ""),  # one verifier without an answer
    ],
)
def test_threshold_ties_and_abstention(votes: list, step: int | None, why: str) -> None:
    best, said = winner(votes, 2)
    assert (best and best.candidate.step, said) == (step, why)


def test_what_is_read_of_a_proposal() -> None:
    said = {
        "candidates": [
            {"step": 2, "agent": "coder", "reason": "It is\n wrong."},
            {"step": 2, "reason": "again"},
            {"step": 4, "reason": "the user"},
            {"step": 9},
            {"step": "3"},
            "3",
            {"step": 3, "agent": "Planner"},
            {"step": True},
            {"step": 3},
            {"step": 5, "reason": 7},
            {"step": 1},
        ]
    }
    found, problems = read_candidates(said, RECORDS)
    assert found == [(2, "It is wrong."), (3, ""), (5, "")]
    assert sorted(problems) == [
        "a proposed agent that did not act at the step",
        *["a proposed step at which no agent acts"] * 5,
        "a step that one proposer names twice",
        "candidates beyond the first 3 of a proposer",
    ]
    assert read_candidates({"step": 2}, RECORDS) == ([], ["a proposal outside the form"])
    assert read_candidates({"candidates": []}, RECORDS) == ([], [])


def test_proposals_are_merged_by_step() -> None:
    found = merged({1: [(3, ""), (1, "x")], 0: [(3, "first")], 2: []}, RECORDS)
    assert found == [ProposedStep(1, "Planner", (1,), "x"), ProposedStep(3, "Coder", (0, 1), "first")]


def test_what_is_read_of_a_verification() -> None:
    held = dict.fromkeys(CRITERIA, True)
    assert read_check({**held, "confidence": 0.8}) == check(confidence=0.8)
    assert read_check({**held, "earliest": "No"}) == check("earliest")
    assert read_check({**held, "exists": "YES", "confidence": 7}) == check()
    for odd in ({}, {**held, "exists": None}, {**held, "decisive": "perhaps"}, {**held, "decisive": 1.5}):
        assert read_check(odd) is None
