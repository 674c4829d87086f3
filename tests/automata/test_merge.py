"""Merge: known machines come back, with noise and from a teacher alone; it counts where that pays; its limits hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from known_machine import MACHINES, all_words, copied, difference, marks, shuffled
from recovery import accuracy, draw, random_machine
from words import strings_of

from prefixguard.automata.build import walk_training
from prefixguard.automata.learners import growth, merge
from prefixguard.automata.learners.evidence import gather
from prefixguard.automata.strings import Strings, walk
from prefixguard.bundle import UNSEEN
from prefixguard.errors import DataError


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_is_learned_back_from_all_words(name: str) -> None:
    strings = all_words(MACHINES[name], 7, copies=8)
    found = merge.learn(strings, max_states=64, seed=0, setting=merge.SURE)
    word = difference(MACHINES[name], found, marks(found, strings))
    assert word is None, f"they differ on {word}"
    assert found.n_states <= len(MACHINES[name][0]) + 1  # and the start, which no string ends in
    assert found.notes == ()


@pytest.mark.parametrize("seed", [1, 2])
def test_a_machine_comes_back_from_noisy_labels(seed: int) -> None:
    """Eight states, three symbols, one label in ten flipped; settings chosen by itself."""
    machine = random_machine(seed, 8, 3)
    train, fresh = draw(machine, 6_000, seed), draw(machine, 4_000, seed + 50)
    found = merge.learn(train, max_states=64, seed=0)
    assert accuracy(found, train, fresh) > accuracy(machine.transitions, train, fresh) - 0.02
    clean = draw(machine, 4_000, seed + 60, noise=0.0)
    assert accuracy(found, train, clean) > 0.98
    assert found.n_states <= 12


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_a_machine_comes_back_from_the_teacher_alone(seed: int) -> None:
    """No run failed; the teacher knows the state. What is learned must hold on other runs."""
    machine = random_machine(seed, 6, 3)

    def told(n: int, draws: int) -> tuple[Strings, np.ndarray]:
        strings = draw(machine, n, draws)
        after = walk(0, machine.next, np.full(3, UNSEEN, dtype=np.int32), strings)[0]
        risk = np.where(machine.fails, 0.9, 0.1)[after].astype(np.float32)
        nothing = np.zeros_like(strings.labels)
        return replace(strings, labels=nothing, teacher=np.stack((risk, risk), axis=1)), machine.fails[after]

    (train, _), (other, high) = told(600, 1), told(300, 2)
    found = merge.learn(train, max_states=32, seed=0, setting=merge.PLAIN)
    walked = walk_training(found, train)
    mean = np.bincount(walked.states, weights=train.teacher[:, 0]) / np.maximum(np.bincount(walked.states), 1)
    states, _ = walked.walk(other)
    assert np.mean((mean[states] > 0.5) == high) > 0.99


def capped(n_runs: int, seed: int, cap: int = 9) -> Strings:
    """Runs of two symbols that mean nothing; who is not done after `cap` steps has failed."""
    rng = np.random.default_rng(seed)
    lengths = np.minimum(rng.geometric(0.12, n_runs), cap)
    failed = lengths == cap
    strings = strings_of([tuple(rng.integers(0, 2, n).tolist()) for n in lengths], 2, failed.tolist())
    left = np.repeat(strings.first[1:], strings.lengths) - 1 - np.arange(len(strings.symbols))
    labels = strings.labels.copy()
    labels[:, 0] *= left <= 3
    return replace(strings, labels=labels, teacher=np.tile(labels.mean(axis=0), (len(labels), 1)))


def test_it_counts_steps_where_a_cap_makes_runs_fail() -> None:
    """Untimed, and symbols say nothing: only states that count can tell the last steps before the cap."""
    train, other = capped(800, 1), capped(400, 2)
    walked = walk_training(merge.learn(train, max_states=24, seed=0), train)
    risk = np.bincount(walked.states, weights=train.labels[:, 0]) / np.maximum(np.bincount(walked.states), 1)
    states, _ = walked.walk(other)
    late = other.index > 5
    assert risk[states[late]].min() > 0.3
    assert risk[states[~late]].max() < 0.2


@pytest.mark.parametrize("setting", [merge.SURE, merge.PLAIN, merge.COUNTING, None])
def test_the_order_of_runs_does_not_matter(setting: growth.Setting | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "_SAMPLE", 20)  # as with many runs: of those that wait, a sample is looked at
    strings = draw(random_machine(2), 250, 3, teacher=True)
    found = merge.learn(strings, max_states=24, seed=0, setting=setting)
    for seed in range(2):
        other = merge.learn(shuffled(strings, seed), max_states=24, seed=0, setting=setting)
        assert found.next.tobytes() == other.next.tobytes()
        assert found.notes == other.notes


def test_the_caller_keeps_its_data() -> None:
    strings = draw(random_machine(2), 300, 3, teacher=True)
    before = copied(strings)
    merge.learn(strings, max_states=20, seed=0)
    for one, two in zip(before, copied(strings), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("max_states", [1, 2, 9])
def test_the_budget_is_kept_and_what_it_cost_is_told(max_states: int) -> None:
    strings = draw(random_machine(2), 2_000, 3, teacher=True)
    free = merge.learn(strings, max_states=200, seed=0, setting=merge.COUNTING)
    assert 9 < free.n_states < 200
    assert not any("without the limit" in note for note in free.notes)
    found = merge.learn(strings, max_states=max_states, seed=0, setting=merge.COUNTING)
    assert found.n_states == max_states
    (note,) = [n for n in found.notes if "without the limit" in n]
    assert note.endswith(f"would have led to new states without the limit of {max_states}")


def test_all_that_runs_take_is_decided() -> None:
    strings = draw(random_machine(2), 300, 3, teacher=True)
    found = merge.learn(strings, max_states=20, seed=0)
    walked = walk_training(found, strings)
    assert not any("left open" in note for note in walked.transitions.notes)
    assert walked.transitions.n_states == found.n_states
    assert (walked.edges > 0).sum() == (found.next != UNSEEN).sum()


@pytest.mark.parametrize("failed", [True, False])
def test_one_outcome_is_no_hindrance(failed: bool) -> None:
    strings = strings_of([(0, 1), (1, 1, 0), (0,)] * 5, 2, [failed] * 15)
    found = merge.learn(strings, max_states=4, seed=0)
    assert walk_training(found, strings).edges.sum() == len(strings.symbols)


def test_one_task_is_no_hindrance() -> None:
    strings = draw(random_machine(2, 4, 2), 100, 3)
    found = merge.learn(replace(strings, tasks=np.zeros(100, np.int64)), max_states=8, seed=0)
    assert 1 <= found.n_states <= 8


def test_no_runs_are_told() -> None:
    with pytest.raises(DataError, match="no runs to learn from"):
        merge.learn(strings_of([], 2, []), max_states=4, seed=0)


def test_evidence_of_a_step_by_hand() -> None:
    """Two runs, 0 1 1 (fails) and 0 (ends well): futures, words and ends as counted with a pencil."""
    strings = strings_of([(0, 1, 1), (0,)], 2, [True, False])
    one = replace(
        strings,
        labels=np.array([[0, 1], [1, 1], [1, 1], [0, 0]], np.float32),
        teacher=np.array([[0.2, 0.6], [0.6, 0.6], [1, 1], [0, 0.2]], np.float32),
    )
    found = gather(one, risk=1.0, clock=0.0)
    risk = np.array([0.1, 0.8, 1.0, 0.0])
    near = 3 * 0.2 * np.array([0.1 + 0.8 * (0.8 + 0.8), 0.8 + 0.8, 1.0, 0.0])
    np.testing.assert_allclose(found.values[0], risk - risk.mean(), atol=1e-6)
    np.testing.assert_allclose(found.values[2], near - near.mean(), atol=1e-6)
    assert found.ends.tolist() == [0, 0, 2, 1]
    # 0 and 1 follow twice each, runs' openings among them; then 0 1 and 1 1 once each
    assert found.words[0].tolist()[2:] == [-1, -1]
    assert found.words[0, 0] == found.words[0, 1]
    assert found.words[1].tolist()[1:] == [-1, -1, -1]
    assert found.opening[0, 0] == found.opening[0, 1] != found.words[0, 0]
    assert found.opening[1, 1] == -1
    np.testing.assert_allclose(found.noise, np.square(found.values).mean(axis=1).sum())


def test_the_clock_says_how_risk_goes_by_index_alone() -> None:
    strings = capped(300, 3)
    values = gather(strings, risk=1.0, clock=10.0).values
    plain = gather(strings, risk=1.0, clock=0.0).values
    assert len(values) == len(plain) + 2
    course = values[len(plain) :]
    for index in range(1, 10):
        at = strings.index == index
        assert np.ptp(course[:, at], axis=1).max() < 1e-9
    assert np.ptp(course, axis=1).max() > 1
