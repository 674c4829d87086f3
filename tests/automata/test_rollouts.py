"""What an automaton costs on its own roll-outs: the pass backwards is what walking says, and changes pay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from words import strings_of

from prefixguard.automata.learners.rollouts import RolloutMachine, Rollouts, complete, eliminate, redirect, taken
from prefixguard.automata.strings import Strings
from prefixguard.bundle import UNSEEN

TRUE = RolloutMachine(0, np.array([[0, 1], [0, 2], [0, 2]]))  # two 1 in a row


def drawn(n_runs: int = 60, seed: int = 0) -> tuple[Strings, np.ndarray]:
    """Words of 0 and 1 of one to twelve steps; the risk that two 1 in a row bring."""
    rng = np.random.default_rng(seed)
    strings = strings_of([tuple(rng.integers(0, 2, rng.integers(1, 13)).tolist()) for _ in range(n_runs)], 2)
    _, states = Rollouts.of(strings, np.full((len(strings.symbols), 2), 0.5)).walk(TRUE)
    high = np.where(states == 2, 0.9, 0.1)
    return strings, np.stack((high, (high + 0.4) / 2), axis=1)


def rollouts_of(n_runs: int = 60, seed: int = 0) -> Rollouts:
    return Rollouts.of(*drawn(n_runs, seed))


def loss_of(rollouts: Rollouts, machine: RolloutMachine) -> float:
    _, states = rollouts.walk(machine)
    return rollouts.loss(states, rollouts.risks(states, machine.n_states))


def test_costs_to_come_are_what_walking_on_costs() -> None:
    strings, target = drawn(8)
    rollouts = Rollouts.of(strings, target)
    rng = np.random.default_rng(1)
    machine, risks = RolloutMachine(0, rng.integers(0, 4, (4, 2))), rng.uniform(0.1, 0.9, (4, 2))
    costs = rollouts.costs(machine, risks)
    for run in range(len(strings)):
        last = int(strings.first[run + 1]) - 1
        for step in range(int(strings.first[run]), last + 1):
            for begin in range(4):
                state, expected = begin, 0.0
                for at in range(step, last + 1):
                    state = state if at == step else int(machine.next[state, strings.symbols[at]])
                    p, t = risks[state], target[at]
                    expected -= float((t * np.log(p) + (1 - t) * np.log(1 - p)) @ rollouts.importance)
                assert costs[step, begin] == pytest.approx(expected)


def test_the_rarer_risk_counts_more() -> None:
    strings, target = drawn()
    rare = np.stack((target[:, 0] / 10, np.full(len(target), 0.5)), axis=1)
    importance = Rollouts.of(strings, rare).importance
    assert importance[1] == 1.0 and importance[0] > 2.0


def test_a_transition_led_astray_is_led_back() -> None:
    rollouts = rollouts_of()
    astray = RolloutMachine(0, np.array([[0, 1], [1, 2], [0, 2]]))
    mended = redirect(rollouts, astray, 20, np.random.default_rng(0))
    assert loss_of(rollouts, mended) < loss_of(rollouts, astray)
    assert loss_of(rollouts, mended) == pytest.approx(loss_of(rollouts, TRUE))
    np.testing.assert_array_equal(mended.next, TRUE.next)


@pytest.mark.parametrize("seed", range(4))
def test_redirecting_never_costs_and_a_finished_machine_stays(seed: int) -> None:
    rollouts, rng = rollouts_of(seed=seed), np.random.default_rng(seed)
    machine = RolloutMachine(0, rng.integers(0, 6, (6, 2)))
    found = redirect(rollouts, machine, 40, np.random.default_rng(0))
    assert loss_of(rollouts, found) < loss_of(rollouts, machine)
    np.testing.assert_array_equal(redirect(rollouts, TRUE, 40, np.random.default_rng(0)).next, TRUE.next)


def test_states_that_are_the_same_go_first_and_cost_nothing() -> None:
    rollouts = rollouts_of()
    # Each state three times: whatever copy a run is in, what follows is the same.
    rng = np.random.default_rng(0)
    copies = RolloutMachine(0, np.tile(TRUE.next, (3, 1)) + 3 * rng.integers(0, 3, (9, 2)))
    fewer = eliminate(rollouts, copies, np.zeros(9, dtype=np.int64), 3)
    assert fewer.n_states == 3
    assert loss_of(rollouts, fewer) == pytest.approx(loss_of(rollouts, TRUE), abs=1e-3)


def test_states_of_one_depth_stand_in_for_each_other_before_others_do() -> None:
    """A machine that counts to six in two tracks keeps its count when half of its states go."""
    strings = strings_of([(int(i), *[0] * 6) for i in np.random.default_rng(0).integers(0, 2, 50)], 2)
    late = np.where(strings.index >= 6, 0.8, 0.02)
    rollouts = Rollouts.of(strings, np.stack((late, late), axis=1))
    after = np.minimum(np.arange(15) // 2 + 1, 7)  # state 0; then two a layer
    following = np.stack((2 * after - 1, 2 * after), axis=1)
    following[0] = (1, 2)
    for track in (1, 2):
        for layer in range(1, 7):
            following[2 * (layer - 1) + track] = 2 * layer + track
    depth = np.array([0, *np.repeat(np.arange(1, 8), 2)])
    fewer = eliminate(rollouts, RolloutMachine(0, following), depth, 8)
    assert fewer.n_states == 8
    _, states = rollouts.walk(fewer)
    for index in range(1, 8):
        assert len(set(states[strings.index == index].tolist())) == 1


@pytest.mark.parametrize("budget", [1, 2, 5])
def test_a_budget_is_kept(budget: int) -> None:
    rollouts, rng = rollouts_of(), np.random.default_rng(0)
    machine = RolloutMachine(3, rng.integers(0, 20, (20, 2)))
    fewer = eliminate(rollouts, machine, rng.integers(0, 5, 20), budget)
    assert fewer.n_states <= budget and 0 <= fewer.start < fewer.n_states
    assert ((fewer.next >= 0) & (fewer.next < fewer.n_states)).all()


def test_the_majority_decides_and_what_no_run_met_follows_the_symbol() -> None:
    strings = strings_of([(0, 1), (0, 1), (0, 1), (1, 0)], 3)
    rollouts = Rollouts.of(strings, np.full((8, 2), 0.5))
    machine = complete(rollouts, np.array([1, 2, 1, 2, 1, 3, 3, 1]), 0, 4)
    assert machine.next.tolist() == [[1, 3, 0], [1, 2, 0], [1, 2, 0], [1, 2, 0]]
    kept = taken(machine, rollouts, ("noted",))
    assert kept.notes == ("noted",)
    assert kept.next.tolist() == [[1, 3, UNSEEN], [UNSEEN, 2, UNSEEN], [UNSEEN] * 3, [1, UNSEEN, UNSEEN]]


def test_the_order_of_runs_does_not_change_what_changes_pay() -> None:
    strings, target = drawn()
    turned = np.arange(len(strings))[::-1]
    steps = np.concatenate([np.arange(strings.first[r], strings.first[r + 1]) for r in turned.tolist()])
    other = Rollouts.of(replace(strings.of(turned)), target[steps])
    machine = RolloutMachine(0, np.random.default_rng(2).integers(0, 5, (5, 2)))
    one = redirect(Rollouts.of(strings, target), machine, 20, np.random.default_rng(0))
    two = redirect(other, machine, 20, np.random.default_rng(0))
    np.testing.assert_array_equal(one.next, two.next)
