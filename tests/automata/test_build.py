"""Strings, and walks over transitions that are the runtime's; whatever a learner leaves, the automaton
holds exactly the transitions that training runs took; making it smaller changes no answer, or says what it changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tiny_automaton
from hypothesis import given, settings
from hypothesis import strategies as st
from words import strings_of

from prefixguard.automata.build import build, minimize, reachable, walk_training, within_budget
from prefixguard.automata.learners import LEARNERS
from prefixguard.automata.strings import Strings, Transitions, before, fallback_of, walk
from prefixguard.bundle import UNSEEN, TypedMap, automaton_from_bytes, automaton_to_bytes
from prefixguard.errors import ConfigError, DataError

WORDS = [(0, 1, 1), (2,), (0, 2, 0, 1, 2), (0, 1, 0)]
#: Of three runs.
SOME = [(0, 1, 1), (2,), (0, 2, 0, 1, 2)]


def drawn(seed: int, n_states: int = 9, n_symbols: int = 3, unseen: float = 0.2) -> Transitions:
    rng = np.random.default_rng(seed)
    following = rng.integers(0, n_states, (n_states, n_symbols)).astype(np.int32)
    following[rng.random(following.shape) < unseen] = UNSEEN
    return Transitions(int(rng.integers(0, n_states)), following, ("before",))


def test_lengths_indices_and_words() -> None:
    strings = strings_of(SOME)
    assert (len(strings), strings.lengths.tolist()) == (3, [3, 1, 5])
    assert strings.index.tolist() == [1, 2, 3, 1, 1, 2, 3, 4, 5]
    assert strings.words() == SOME


def test_weights_make_every_run_count_alike() -> None:
    strings = strings_of(SOME)
    each = [strings.weights[a:b].sum() for a, b in zip(strings.first[:-1], strings.first[1:], strict=True)]
    assert each == pytest.approx([3, 3, 3])
    assert strings.weights.mean() == pytest.approx(1)


def test_some_runs_in_another_order_keep_what_is_theirs() -> None:
    strings = strings_of(SOME)
    some = strings.of(np.array([2, 0], dtype=np.int64))
    assert some.words() == [SOME[2], SOME[0]]
    assert some.failed.tolist() == [False, False] and some.tasks.tolist() == [2, 0]
    np.testing.assert_array_equal(some.teacher, np.concatenate((strings.teacher[4:], strings.teacher[:3])))
    np.testing.assert_array_equal(some.labels, np.concatenate((strings.labels[4:], strings.labels[:3])))


def test_no_run_at_all() -> None:
    none = strings_of(SOME).of(np.empty(0, dtype=np.int64))
    assert (len(none), none.words(), len(none.index), len(none.weights)) == (0, [], 0, 0)
    states, unseen = walk(0, np.zeros((1, 3), np.int32), np.zeros(3, np.int32), none)
    assert len(states) == len(unseen) == 0


def test_before_begins_at_the_start_in_every_run() -> None:
    strings = strings_of(SOME)
    states = np.arange(10, 19, dtype=np.int32)
    assert before(strings, states, 7).tolist() == [7, 10, 11, 7, 7, 14, 15, 16, 17]
    assert states[0] == 10  # the caller's array stays as it is


def test_fallback_is_where_a_symbol_most_often_leads() -> None:
    next_states = np.array([[1, 2, UNSEEN], [2, 1, UNSEEN], [2, UNSEEN, UNSEEN]], np.int32)
    edges = np.array([[5, 4, 0], [3, 4, 0], [3, 0, 0]], np.int64)
    # symbol 0: state 1 five times, state 2 six times; symbol 1: a tie, to the lower state; symbol 2: never met
    assert fallback_of(edges, next_states).tolist() == [2, 1, UNSEEN]


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 50),
    words=st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=9).map(tuple), min_size=1, max_size=8),
)
def test_walk_is_the_automatons_own_step(seed: int, words: list[tuple[int, ...]]) -> None:
    """Side by side for all runs, or symbol by symbol for each: the same states, the same transitions unseen."""
    automaton = tiny_automaton.by_seed(seed, 6, 5)
    states, unseen = walk(automaton.start, automaton.transitions, automaton.fallback, strings_of(words, 5))
    expected: list[tuple[int, bool]] = []
    for word in words:
        state = automaton.start
        for symbol in word:
            state, missing = automaton.follow(state, symbol)
            expected.append((state, missing))
    assert list(zip(states.tolist(), unseen.tolist(), strict=True)) == expected


# What training runs took


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


# Smaller machines


def answers(transitions: Transitions, classes: np.ndarray, word: list[int]) -> list[int]:
    """The class after each symbol; -1 from the first unseen transition on."""
    state, said = transitions.start, []
    for symbol in word:
        state = int(transitions.next[state, symbol]) if state != UNSEEN else UNSEEN
        said.append(int(classes[state]) if state != UNSEEN else UNSEEN)
    return said


def classes_after(before: Transitions, classes: np.ndarray, after: Transitions) -> np.ndarray:
    """The class of each state of the smaller machine, by walking both side by side."""
    pairs, out = [(before.start, after.start)], {after.start: int(classes[before.start])}
    for old, new in pairs:
        for k in range(before.next.shape[1]):
            pair = int(before.next[old, k]), int(after.next[new, k])
            assert (pair[0] == UNSEEN) == (pair[1] == UNSEEN)
            if pair[0] != UNSEEN and pair not in pairs:
                pairs.append(pair)
                assert out.setdefault(pair[1], int(classes[pair[0]])) == int(classes[pair[0]])
    return np.array([out[s] for s in range(after.n_states)])


@given(seed=st.integers(0, 10_000))
@settings(deadline=None, max_examples=60)
def test_reachable_drops_only_what_no_string_reaches(seed: int) -> None:
    one = drawn(seed, unseen=0.6)
    found = reachable(one)
    classes_after(one, np.arange(9), found)  # walks both, and holds that they agree
    assert found.n_states == len(set(classes_after(one, np.arange(9), found).tolist()))
    assert reachable(found).next.tobytes() == found.next.tobytes()
    lost = 9 - found.n_states
    said = f"{lost} state{'s' if lost > 1 else ''} that no training run reaches: dropped"
    assert found.notes == (("before", said) if lost else ("before",))


@given(seed=st.integers(0, 10_000), word=st.lists(st.integers(0, 2), max_size=12))
@settings(deadline=None, max_examples=120)
def test_a_minimal_machine_says_the_same_and_has_no_twins(seed: int, word: list[int]) -> None:
    one = drawn(seed)
    classes = np.random.default_rng(seed).integers(0, 2, 9)
    found = minimize(one, classes)
    smaller = classes_after(one, classes, found)
    assert answers(found, smaller, word) == answers(one, classes, word)
    again = minimize(found, smaller)
    assert again.next.tobytes() == found.next.tobytes()
    # no two states agree on all words of up to as many symbols as there are states
    block = smaller.copy()
    for _ in range(found.n_states):
        rows = np.concatenate((block[:, None], np.where(found.next == UNSEEN, UNSEEN, block[found.next])), axis=1)
        block = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    assert len(set(block.tolist())) == found.n_states


def test_minimising_tells_how_many_were_merged() -> None:
    twins = Transitions(0, np.array([[1, 2], [0, 1], [0, 2]], np.int32), ("before",))
    found = minimize(twins, np.array([0, 1, 1]))
    assert found.next.tolist() == [[1, 1], [0, 1]]
    assert found.notes == ("before", "1 state merged into equivalent ones")
    kept = minimize(twins, np.array([0, 1, 2]))
    assert (kept.n_states, kept.notes) == (3, ("before",))


def test_an_unseen_transition_is_a_difference() -> None:
    one = Transitions(0, np.array([[1, 2], [0, UNSEEN], [0, 0]], np.int32))
    assert minimize(one, np.array([0, 1, 1])).n_states == 3


def test_one_class_a_state_is_asked_for() -> None:
    with pytest.raises(DataError, match="give one class a state"):
        minimize(drawn(0), np.zeros(3, dtype=np.int64))


def test_the_most_visited_stay_and_others_lead_to_the_nearest() -> None:
    chain = Transitions(0, np.array([[1], [2], [3], [0]], np.int32))
    visits = np.array([0, 50, 3, 40])
    risks = np.array([[0.0, 0.0], [0.1, 0.1], [0.7, 0.5], [0.9, 0.6]])
    found = within_budget(chain, visits, risks, 3)
    # 0 is the start and stays; 2 has few visits: whoever went there goes to 3 now
    assert found.next.tolist() == [[1], [2], [0]]
    assert found.notes == ("1 state beyond the limit of 3 merged into the nearest that stayed",)


@given(seed=st.integers(0, 10_000), max_states=st.integers(1, 12))
@settings(deadline=None, max_examples=60)
def test_the_budget_is_kept_whatever_the_machine(seed: int, max_states: int) -> None:
    one, rng = drawn(seed), np.random.default_rng(seed)
    found = within_budget(one, rng.integers(0, 5, 9), rng.random((9, 2)), max_states)
    assert found.n_states <= max_states
    assert found.start == 0
    assert found.next.max() < found.n_states
    if max_states >= 9:
        assert found.next.tobytes() == reachable(one).next.tobytes()
    else:
        assert any(f"beyond the limit of {max_states}" in note for note in found.notes)


def test_a_budget_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_states is 0"):
        within_budget(drawn(0), np.ones(9, np.int64), np.ones((9, 2)), 0)


def test_inputs_are_left_alone() -> None:
    one, strings, nowhere = drawn(3), strings_of(SOME), np.full(3, UNSEEN, np.int32)
    classes, visits, risks = np.zeros(9, np.int64), np.arange(9), np.random.default_rng(0).random((9, 2))
    given = (one.next, strings.symbols, nowhere, classes, visits, risks)
    before = [array.copy() for array in given]
    reachable(one)
    minimize(one, classes)
    within_budget(one, visits, risks, 2)
    walk(one.start, one.next, nowhere, strings)
    for was, now in zip(before, given, strict=True):
        np.testing.assert_array_equal(was, now)
