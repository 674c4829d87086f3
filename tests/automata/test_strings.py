"""Strings of symbols, and walks over transitions: the workshop's walk is the runtime's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tiny_automaton
from hypothesis import given, settings
from hypothesis import strategies as st
from words import strings_of

from prefixguard.automata.strings import Transitions, before, fallback_of, walk
from prefixguard.bundle import UNSEEN

WORDS = [(0, 1, 1), (2,), (0, 2, 0, 1, 2)]


def test_lengths_indices_and_words() -> None:
    strings = strings_of(WORDS)
    assert (len(strings), strings.lengths.tolist()) == (3, [3, 1, 5])
    assert strings.index.tolist() == [1, 2, 3, 1, 1, 2, 3, 4, 5]
    assert strings.words() == WORDS


def test_weights_make_every_run_count_alike() -> None:
    strings = strings_of(WORDS)
    each = [strings.weights[a:b].sum() for a, b in zip(strings.first[:-1], strings.first[1:], strict=True)]
    assert each == pytest.approx([3, 3, 3])
    assert strings.weights.mean() == pytest.approx(1)


def test_some_runs_in_another_order_keep_what_is_theirs() -> None:
    strings = strings_of(WORDS)
    some = strings.of(np.array([2, 0], dtype=np.int64))
    assert some.words() == [WORDS[2], WORDS[0]]
    assert some.failed.tolist() == [False, False] and some.tasks.tolist() == [2, 0]
    np.testing.assert_array_equal(some.teacher, np.concatenate((strings.teacher[4:], strings.teacher[:3])))
    np.testing.assert_array_equal(some.labels, np.concatenate((strings.labels[4:], strings.labels[:3])))


def test_no_run_at_all() -> None:
    none = strings_of(WORDS).of(np.empty(0, dtype=np.int64))
    assert (len(none), none.words(), len(none.index), len(none.weights)) == (0, [], 0, 0)
    states, unseen = walk(0, np.zeros((1, 3), np.int32), np.zeros(3, np.int32), none)
    assert len(states) == len(unseen) == 0


def test_before_begins_at_the_start_in_every_run() -> None:
    strings = strings_of(WORDS)
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


def test_walk_changes_nothing_of_its_callers() -> None:
    automaton = tiny_automaton.by_seed(3, 4, 3, unseen=0.6)
    given_arrays: dict[str, Any] = {"next": automaton.transitions.copy(), "fallback": automaton.fallback.copy()}
    strings = strings_of(WORDS)
    symbols = strings.symbols.copy()
    walk(automaton.start, automaton.transitions, automaton.fallback, strings)
    np.testing.assert_array_equal(automaton.transitions, given_arrays["next"])
    np.testing.assert_array_equal(automaton.fallback, given_arrays["fallback"])
    np.testing.assert_array_equal(strings.symbols, symbols)


def test_states_of_transitions() -> None:
    assert Transitions(0, np.zeros((4, 2), np.int32)).n_states == 4
    assert replace(Transitions(0, np.zeros((4, 2), np.int32)), notes=("cut short",)).notes == ("cut short",)
