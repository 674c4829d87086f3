"""States that one symbol only swaps: one state where they say the same, and two where they do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from words import strings_of

from prefixguard.automata.build import Walked
from prefixguard.automata.parity import without_parity
from prefixguard.automata.strings import Strings, Transitions
from prefixguard.bundle import UNSEEN

#: Symbol 0 swaps the two states, symbol 1 leaves a run where it is.
SWAPS = Transitions(0, np.array([[1, 0], [0, 1]], dtype=np.int32))


def runs(by_state: tuple[float, float], n: int = 200, seed: int = 1) -> Strings:
    """Runs over both symbols that fail as often as the state in which they end says."""
    rng = np.random.default_rng(seed)
    words = [(0,) * int(rng.integers(0, 4)) + (1,) * 9 for _ in range(n)]
    failed = [bool(rng.random() < by_state[word.count(0) % 2]) for word in words]
    found = strings_of(words, 2, failed)
    risk = np.repeat([by_state[word.count(0) % 2] for word in words], found.lengths).astype(np.float32)
    return replace(found, teacher=np.stack((risk, risk), axis=1))


def merged(transitions: Transitions, strings: Strings, clock: tuple[int, ...] = ()) -> Walked:
    return without_parity(Walked.of(transitions, strings), strings, strings, clock)


@pytest.mark.parametrize("clock", [(), (4,)])
def test_a_parity_on_which_nothing_hangs_is_one_state(clock: tuple[int, ...]) -> None:
    strings = runs((0.4, 0.4))
    found = merged(SWAPS, strings, clock)
    assert found.transitions.next.tolist() == [[0, 0]]
    assert found.transitions.notes == ("1 pair of states that one symbol only swaps, with equal risks: merged",)
    assert found.edges.sum() == len(strings.symbols)
    assert set(found.states.tolist()) == {0}


def test_a_parity_that_tells_the_risk_stays() -> None:
    """So that the test before this one can fail."""
    found = merged(SWAPS, runs((0.1, 0.8)))
    assert found.transitions.n_states == 2 and found.transitions.notes == ()


def test_states_that_another_symbol_tells_apart_stay() -> None:
    """From state 0 symbol 1 leads to a third state, from state 1 it does not."""
    three = Transitions(0, np.array([[1, 2], [0, 1], [2, 2]], dtype=np.int32))
    assert merged(three, runs((0.4, 0.4))).transitions.n_states == 3


def test_a_transition_that_only_one_of_them_has_is_kept() -> None:
    strings = strings_of([(0, 0, 0, 1), (0, 0, 0), (0, 1, 0)] * 40, 2, [True, False, False] * 40)
    strings = replace(strings, teacher=np.full_like(strings.teacher, 0.3))
    one_sided = Transitions(0, np.array([[1, UNSEEN], [0, 1]], dtype=np.int32))
    found = merged(one_sided, strings)
    assert found.transitions.next.tolist() == [[0, 0]]
