"""The learners `fsm` and `clusters`: known machines come back, runs are counted, limits hold, the same bytes twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from words import strings_of

from prefixguard.automata.build import walk_training
from prefixguard.automata.learners import Learner, clusters, fsm, memoryless, sequences
from prefixguard.automata.strings import Strings, Transitions, before, walk
from prefixguard.bundle import UNSEEN
from prefixguard.errors import DataError

LEARNERS = pytest.mark.parametrize("learn", [fsm.learn, clusters.learn], ids=["fsm", "clusters"])


def two_errors(n_runs: int = 400, seed: int = 0) -> tuple[Strings, np.ndarray]:
    """Two errors (symbol 1) in a row: the risk is high until a recovery (symbol 2). The teacher knows; runs that end
    in it failed. Of every step, whether the risk is high."""
    rng = np.random.default_rng(seed)
    words = [tuple(rng.choice(3, p=[0.45, 0.35, 0.2], size=rng.integers(4, 13)).tolist()) for _ in range(n_runs)]
    high, ends = [], []
    for word in words:
        last, now = 0, False
        for symbol in word:
            now = symbol != 2 and (now or (symbol == 1 and last == 1))
            last = symbol
            high.append(now)
        ends.append(now)
    strings = strings_of(words, 3, ends)
    risk = np.where(high, 0.9, 0.1).astype(np.float32)
    return replace(strings, teacher=np.stack((risk, risk), axis=1)), np.array(high)


def capped(n_runs: int = 300, seed: int = 0) -> tuple[Strings, np.ndarray]:
    """Runs that reach twelve steps fail there; others end before. Of every step, whether at most two remain to fail."""
    rng = np.random.default_rng(seed)
    lengths = np.where(rng.random(n_runs) < 0.5, 12, rng.integers(3, 12, n_runs))
    strings = strings_of([tuple(rng.integers(0, 2, n).tolist()) for n in lengths], 2, (lengths == 12).tolist())
    ends = np.repeat(lengths == 12, lengths) & (strings.index >= 10)
    labels = np.stack((ends, np.repeat(lengths == 12, lengths)), axis=1).astype(np.float32)
    share = np.array([labels[strings.index == i].mean(axis=0) for i in range(1, 13)], dtype=np.float32)
    return replace(strings, labels=labels, teacher=share[strings.index - 1]), strings.index >= 10


def agreement(found: Transitions, train: Strings, high: np.ndarray, other: Strings, other_high: np.ndarray) -> float:
    """How often a state, read as what most training steps in it are, is right on other runs."""
    walked = walk_training(found, train)
    marks = np.bincount(walked.states, high, found.n_states) * 2 > np.bincount(walked.states, minlength=found.n_states)
    return float(np.mean(marks[walked.walk(other)[0]] == other_high))


@LEARNERS
def test_two_errors_in_a_row_are_learned_back(learn: Learner) -> None:
    (train, high), (other, other_high) = two_errors(), two_errors(200, 1)
    found = learn(train, max_states=24, seed=0)
    assert agreement(found, train, high, other, other_high) > 0.97
    without_memory = memoryless.learn(train, max_states=24, seed=0)
    assert agreement(without_memory, train, high, other, other_high) < 0.9


@LEARNERS
def test_steps_are_counted_where_a_cap_on_them_decides(learn: Learner) -> None:
    (train, late), (other, other_late) = capped(), capped(200, 1)
    found = learn(train, max_states=32, seed=0)
    assert agreement(found, train, late, other, other_late) > 0.97


@LEARNERS
@pytest.mark.parametrize("budget", [1, 2, 7])
def test_a_budget_is_kept_and_transitions_are_those_that_runs_took(learn: Learner, budget: int) -> None:
    train, _ = two_errors(80)
    found = learn(train, max_states=budget, seed=0)
    assert found.n_states <= budget
    states, unseen = walk(found.start, found.next, np.full(3, UNSEEN, dtype=np.int32), train)
    met = np.zeros(found.next.shape, dtype=np.bool_)
    met[before(train, states, found.start), train.symbols] = True
    np.testing.assert_array_equal(found.next != UNSEEN, met)
    assert not unseen.any()


@LEARNERS
def test_the_same_twice_and_nothing_given_is_changed(learn: Learner) -> None:
    train, _ = two_errors(80)
    given = [x.copy() for x in (train.symbols, train.labels, train.teacher, train.first)]
    one, two = (learn(train, max_states=10, seed=3) for _ in range(2))
    assert one.next.tobytes() == two.next.tobytes() and (one.start, one.notes) == (two.start, two.notes)
    for was, now in zip(given, (train.symbols, train.labels, train.teacher, train.first), strict=True):
        np.testing.assert_array_equal(was, now)
    assert learn(train, max_states=10, seed=4).next.tobytes() != one.next.tobytes()


@LEARNERS
def test_one_run_of_one_step_is_enough(learn: Learner) -> None:
    found = learn(strings_of([(1,)]), max_states=8, seed=0)
    assert found.next[found.start, 1] != UNSEEN and (found.next != UNSEEN).sum() == 1


@LEARNERS
def test_no_runs_are_refused(learn: Learner) -> None:
    with pytest.raises(DataError, match="no runs to learn from"):
        learn(strings_of([]), max_states=8, seed=0)


@LEARNERS
def test_of_too_many_runs_some_are_drawn_and_that_is_said(learn: Learner, monkeypatch: pytest.MonkeyPatch) -> None:
    train, _ = two_errors(80)
    monkeypatch.setattr(sequences, "_MOST_STEPS", 200)
    found = learn(train, max_states=10, seed=0)
    note = next(n for n in found.notes if "drawn by seed" in n)
    n = int(note.split()[2])
    assert note == f"learned from {n} of 80 runs, drawn by seed" and 10 < n < 40


def test_the_soft_automaton_says_how_far_it_was_from_its_argmax() -> None:
    train, _ = two_errors(80)
    notes = fsm.learn(train, max_states=10, seed=0).notes
    share = float(notes[0].split("%")[0])
    assert notes[0].endswith("of the soft automaton's probability was off its argmax") and 0 < share < 50
    assert notes[1].endswith("transitions redirected on the automaton's own roll-outs")
