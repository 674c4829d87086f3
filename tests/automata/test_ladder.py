"""Ladder and memoryless: a budget that is kept, and machines that are found again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from words import strings_of

from prefixguard.automata.build import walk_training
from prefixguard.automata.learners import LEARNERS, ladder, memoryless
from prefixguard.automata.strings import Strings
from prefixguard.bundle import UNSEEN


def counted(n_runs: int = 300, seed: int = 0) -> tuple[Strings, np.ndarray]:
    """Errors (symbol 1) raise a risk that only symbol 2 lets fall; symbol 0 leaves it. The level before each step's
    end, 0 to 3, is what the teacher knows."""
    rng = np.random.default_rng(seed)
    words = [tuple(rng.choice(3, p=[0.5, 0.35, 0.15], size=20).tolist()) for _ in range(n_runs)]
    levels = []
    for word in words:
        level = 0
        for symbol in word:
            level = min(level + 1, 3) if symbol == 1 else 0 if symbol == 2 else level
            levels.append(level)
    strings = strings_of(words)
    risk = np.array([0.05, 0.2, 0.5, 0.9], dtype=np.float32)[levels]
    return replace(strings, teacher=np.stack((risk, risk), axis=1)), np.array(levels)


def test_a_ladder_of_four_levels_is_learned_back() -> None:
    strings, levels = counted()
    walked = walk_training(ladder.learn(strings, max_states=9, seed=0), strings)
    # Levels that a state stands for: each state one level, but for the start, where no run ends.
    for state in np.unique(walked.states):
        inside = np.bincount(levels[walked.states == state], minlength=4)
        assert inside.max() / inside.sum() > 0.97, (state, inside)
    assert {int(np.bincount(levels[walked.states == s]).argmax()) for s in np.unique(walked.states)} == {0, 1, 2, 3}


def test_what_it_learned_holds_on_other_runs() -> None:
    strings, levels = counted()
    other, other_levels = counted(100, seed=1)
    walked = walk_training(ladder.learn(strings, max_states=9, seed=0), strings)
    level_of = {s: int(np.bincount(levels[walked.states == s]).argmax()) for s in np.unique(walked.states).tolist()}
    states, _ = walked.walk(other)
    assert np.mean([level_of[s] == level for s, level in zip(states.tolist(), other_levels, strict=True)]) > 0.97


@pytest.mark.parametrize("max_states", [2, 3, 5, 16])
@pytest.mark.parametrize("learner", ["memoryless", "ladder"])
def test_the_budget_is_kept(learner: str, max_states: int) -> None:
    rng = np.random.default_rng(2)
    strings = strings_of([tuple(rng.integers(0, 9, 12).tolist()) for _ in range(60)], 9)
    found = LEARNERS[learner](strings, max_states=max_states, seed=0)
    assert 2 <= found.n_states <= max_states
    assert found.next.max() < found.n_states
    assert walk_training(found, strings).transitions.n_states <= max_states


def test_only_transitions_that_runs_took() -> None:
    strings, _ = counted(5)
    found = ladder.learn(strings, max_states=40, seed=0)
    walked = walk_training(found, strings)
    assert (found.next != UNSEEN).sum() == (walked.edges > 0).sum()


def test_a_teacher_that_knows_nothing_leaves_one_level() -> None:
    strings = strings_of([(0, 1), (1, 2, 0)])
    flat = replace(strings, teacher=np.full((5, 2), 0.3, dtype=np.float32))
    assert ladder.learn(flat, max_states=8, seed=0).n_states <= 3
    sure = replace(strings, teacher=np.ones((5, 2), dtype=np.float32))
    assert np.isfinite(ladder.learn(sure, max_states=8, seed=0).next).all()


def test_memoryless_is_the_last_symbol() -> None:
    strings, _ = counted(20)
    walked = walk_training(memoryless.learn(strings, max_states=9, seed=0), strings)
    of_symbol = {k: set(walked.states[strings.symbols == k].tolist()) for k in range(3)}
    assert all(len(states) == 1 for states in of_symbol.values())
    assert len(set.union(*of_symbol.values())) == 3


def test_memoryless_lets_the_rarest_symbols_share_a_state_and_says_how_many() -> None:
    words = [(0,) * 9 + (1,) * 7 + (2,) * 5 + (3,) * 3 + (4,)]
    strings = strings_of(words, 5)
    found = memoryless.learn(strings, max_states=4, seed=0)
    walked = walk_training(found, strings)
    states = [int(walked.states[strings.symbols == k][0]) for k in range(5)]
    assert len({states[0], states[1]}) == 2 and states[2] == states[3] == states[4]
    assert states[2] not in states[:2]
    assert found.notes == ("3 symbols share a state",)
    assert memoryless.learn(strings, max_states=6, seed=0).notes == ()


@pytest.mark.parametrize("learner", ["memoryless", "ladder"])
def test_same_strings_same_transitions(learner: str) -> None:
    one, other = (LEARNERS[learner](counted(50)[0], max_states=9, seed=s) for s in (0, 0))
    np.testing.assert_array_equal(one.next, other.next)
    assert (one.start, one.notes) == (other.start, other.notes)
