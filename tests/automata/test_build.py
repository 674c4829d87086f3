"""Whatever a learner leaves, the automaton holds exactly the transitions that training runs took."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from words import strings_of

from prefixguard.automata.build import build, walk_training
from prefixguard.automata.learners import LEARNERS
from prefixguard.automata.minimization import reachable
from prefixguard.automata.strings import Strings, Transitions
from prefixguard.bundle import UNSEEN, TypedMap, automaton_from_bytes, automaton_to_bytes

WORDS = [(0, 1, 1), (2,), (0, 2, 0, 1, 2), (0, 1, 0)]


def drawn(seed: int, n_states: int, n_symbols: int, unseen: float) -> Transitions:
    rng = np.random.default_rng(seed)
    following = rng.integers(0, n_states, (n_states, n_symbols)).astype(np.int32)
    following[rng.random(following.shape) < unseen] = UNSEEN
    return Transitions(int(rng.integers(0, n_states)), following)


def test_reachable_renumbers_breadth_first_and_tells_what_is_gone() -> None:
    found = reachable(Transitions(2, np.array([[UNSEEN, 1], [3, 0], [0, 0], [3, UNSEEN]], np.int32), ("before",)))
    # 2 is the start; it leads to 0, that to 1, that to 3
    assert found.start == 0
    assert found.next.tolist() == [[1, 1], [UNSEEN, 2], [3, 1], [3, UNSEEN]]
    assert found.notes == ("before",)
    lonely = reachable(Transitions(0, np.array([[0, UNSEEN], [0, 0], [1, 1]], np.int32)))
    assert lonely.next.tolist() == [[0, UNSEEN]]
    assert lonely.notes == ("2 states that no training run reaches: dropped",)


def alike(words: list[tuple[int, ...]]) -> Strings:
    """Strings of which no step fails."""
    found = strings_of(words, 3)
    return replace(found, labels=np.zeros_like(found.labels), teacher=np.full_like(found.teacher, 0.1))


def test_states_that_say_the_same_are_merged() -> None:
    """Two ways to the same place: equal risks in training, the same transitions from there."""
    train = alike([(0, 2), (1, 2)] * 5)
    twins = Transitions(0, np.array([[1, 2, UNSEEN], [UNSEEN, UNSEEN, 0], [UNSEEN, UNSEEN, 0]], dtype=np.int32))
    walked = walk_training(twins, train)
    assert walked.transitions.next.tolist() == [[1, 1, UNSEEN], [UNSEEN, UNSEEN, 0]]
    assert walked.transitions.notes == ("1 state merged into equivalent ones",)
    assert walked.edges.tolist() == [[5, 5, 0], [0, 0, 10]]
    assert walked.states.tolist() == [1, 0] * 10


def test_states_of_different_risk_are_not_merged() -> None:
    """The strings through one of them fail."""
    train = alike([(0, 2), (1, 2)] * 5)
    labels = train.labels.copy()
    labels[0::4] = 1.0  # after symbol 0
    twins = Transitions(0, np.array([[1, 2, UNSEEN], [UNSEEN, UNSEEN, 0], [UNSEEN, UNSEEN, 0]], dtype=np.int32))
    assert walk_training(twins, replace(train, labels=labels)).transitions.n_states == 3


@settings(deadline=None, max_examples=80)
@given(
    seed=st.integers(0, 1000),
    unseen=st.sampled_from([0.0, 0.3, 0.9, 1.0]),
    words=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=8).map(tuple), min_size=1, max_size=6),
)
def test_edges_visits_and_steps_add_up(seed: int, unseen: float, words: list[tuple[int, ...]]) -> None:
    """For any transitions at all: sparse, cut off, or such as no string takes."""
    train = strings_of(words, 4)
    walked = walk_training(drawn(seed, 5, 4, unseen), train)
    following, edges = walked.transitions.next, walked.edges
    assert ((edges > 0) == (following != UNSEEN)).all()
    assert edges.sum() == len(train.symbols)
    visits = np.bincount(walked.states, minlength=walked.transitions.n_states)
    into = np.zeros_like(visits)
    np.add.at(into, following[following != UNSEEN], edges[following != UNSEEN])
    np.testing.assert_array_equal(into, visits)
    assert (visits[1:] > 0).all()  # only the start may be a state that no step ends in
    states, missing = walked.walk(train)
    np.testing.assert_array_equal(states, walked.states)
    assert not missing.any()


def test_a_transition_that_the_learner_left_open_follows_the_rule() -> None:
    """Symbol 0 most often leads to state 0, and so it does from state 1; symbol 2 leads nowhere, and the run stays."""
    open_ends = Transitions(0, np.array([[0, 1, UNSEEN], [UNSEEN, 1, UNSEEN]], np.int32))
    walked = walk_training(open_ends, strings_of(WORDS))
    assert walked.transitions.next.tolist() == [[0, 1, 0], [0, 1, 1]]
    assert walked.transitions.notes == ("3 transitions that the learner left open: filled by rule",)
    assert walked.edges.tolist() == [[4, 3, 2], [1, 1, 1]]


def test_a_transition_that_no_run_takes_is_unseen() -> None:
    full = Transitions(0, np.array([[1, 0, 0], [1, 1, 1]], np.int32))
    walked = walk_training(full, strings_of([(0, 1), (0, 0)]))
    assert walked.transitions.next.tolist() == [[1, UNSEEN, UNSEEN], [1, 1, UNSEEN]]
    assert walked.fallback.tolist() == [1, 1, UNSEEN]
    states, unseen = walked.walk(strings_of([(2, 1, 1)]))
    assert (states.tolist(), unseen.tolist()) == ([0, 1, 1], [True, True, False])


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_built_automaton_is_one_that_a_bundle_takes(learner: str) -> None:
    rng = np.random.default_rng(4)
    words = [tuple(rng.integers(0, 8, rng.integers(1, 30)).tolist()) for _ in range(150)]
    train, held_out = strings_of(words[:100], 8), strings_of(words[100:], 8)
    found = LEARNERS[learner](train, max_states=6, seed=0)
    walked = walk_training(found, train)
    automaton = build(walked, train, held_out, (3, 7))
    assert 1 <= automaton.n_states <= 6
    assert automaton.edges.sum() == automaton.visits.sum() == len(train.symbols)
    assert automaton.evidence.sum() == len(held_out.symbols)
    typed = TypedMap(("one",))
    data = automaton_to_bytes(automaton, typed, ("",) * 8)
    read, _, _ = automaton_from_bytes(data)
    for name in ("transitions", "risk", "interval", "edges", "visits", "evidence", "evidence_runs", "stand_in"):
        np.testing.assert_array_equal(getattr(read, name), getattr(automaton, name))
