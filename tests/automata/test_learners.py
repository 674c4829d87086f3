"""Learners: laws that all of them keep, machines that come back, and what each does where data are odd."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from known_machine import MACHINES, all_words, copied, difference, marks, shuffled
from recovery import accuracy, draw, random_machine
from words import strings_of

from prefixguard.automata import LEARNERS
from prefixguard.automata.build import minimize, walk_training
from prefixguard.automata.learners import direct, growth, merge, networks, rpni
from prefixguard.automata.learners.rollouts import Rollouts, eliminate, redirect
from prefixguard.automata.state_risk import fit_clock
from prefixguard.automata.strings import Strings, Transitions, log_odds, walk
from prefixguard.bundle import UNSEEN
from prefixguard.errors import DataError

Learn = Callable[..., Transitions]
SURE, PLAIN, COUNTING = (partial(merge.learn, setting=s) for s in (merge.SURE, merge.PLAIN, merge.COUNTING))


def bytes_of(found: Transitions) -> tuple[object, ...]:
    return found.start, found.next.tobytes(), found.notes


# Laws


@pytest.fixture(scope="module")
def noisy() -> Strings:
    """Strings of a machine of 20 states over 6 symbols, one outcome in ten flipped, and a teacher."""
    return draw(random_machine(2), 120, 3, teacher=True)


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_same_twice_and_nothing_of_the_caller_is_changed_or_printed(
    learner: str, noisy: Strings, capsys: pytest.CaptureFixture[str]
) -> None:
    before = copied(noisy)
    one, two = (LEARNERS[learner](noisy, max_states=10, seed=3) for _ in range(2))
    assert bytes_of(one) == bytes_of(two)
    for was, now in zip(before, copied(noisy), strict=True):
        np.testing.assert_array_equal(was, now)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("max_states", [2, 5, 16])
@pytest.mark.parametrize("learner", LEARNERS)
def test_the_limit_of_states_is_kept_and_all_that_runs_take_is_known(
    learner: str, max_states: int, noisy: Strings
) -> None:
    found = LEARNERS[learner](noisy, max_states=max_states, seed=0)
    assert 1 <= found.n_states <= max_states
    assert found.next.max() < found.n_states
    walked = walk_training(found, noisy)
    assert walked.edges.sum() == len(noisy.symbols)
    assert not any("left open" in note for note in walked.transitions.notes) or max_states < 16


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("learn", [SURE, PLAIN, COUNTING, merge.learn, rpni.learn, rpni.learn_distilled])
def test_the_order_of_runs_does_not_matter(learn: Learn, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "_SAMPLE", 20)  # as with many runs: of those that wait, a sample is looked at
    strings = draw(random_machine(2), 250, 3, teacher=True)
    found, other = (learn(s, max_states=24, seed=0) for s in (strings, shuffled(strings, seed)))
    assert bytes_of(found) == bytes_of(other)


@pytest.mark.parametrize("learner", ["merge", "clusters", "fsm"])
def test_no_runs_are_refused(learner: str) -> None:
    with pytest.raises(DataError, match="no runs to learn from"):
        LEARNERS[learner](strings_of([], 2, []), max_states=4, seed=0)


@pytest.mark.parametrize("learner", ["memoryless", "ladder", "grid", "merge", "clusters", "fsm"])
def test_one_run_of_one_step_is_enough(learner: str) -> None:
    found = LEARNERS[learner](strings_of([(1,)]), max_states=8, seed=0)
    assert found.next[found.start, 1] != UNSEEN and (found.next != UNSEEN).sum() == 1


@pytest.mark.parametrize("failed", [True, False])
@pytest.mark.parametrize("learn", [merge.learn, rpni.learn])
def test_one_outcome_is_no_hindrance_but_where_it_is_all_that_counts(learn: Learn, failed: bool) -> None:
    strings = strings_of([(0, 1), (1, 1, 0), (0,)] * 5, 2, [failed] * 15)
    if learn is rpni.learn:
        with pytest.raises(DataError, match=f"all 15 runs {'failed' if failed else 'succeeded'}: RPNI tells failed"):
            learn(strings, max_states=4, seed=0)
    else:
        found = learn(strings, max_states=4, seed=0)
        assert walk_training(found, strings).edges.sum() == len(strings.symbols)


# Known machines


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize(("learn", "longest", "copies"), [(rpni.learn, 6, 1), (SURE, 7, 8)], ids=["rpni", "merge"])
def test_a_machine_is_learned_back_from_all_words(learn: Learn, longest: int, copies: int, name: str) -> None:
    strings = all_words(MACHINES[name], longest, copies)
    found = learn(strings, max_states=64, seed=0)
    word = difference(MACHINES[name], found, marks(found, strings))
    assert word is None, f"they differ on {word}"
    assert found.notes == ()
    smallest = minimize(found, marks(found, strings).astype(np.int64))
    assert smallest.n_states <= len(MACHINES[name][0]) + (learn is SURE)  # and the start, which no string ends in


@pytest.mark.parametrize("seed", [1, 2])
def test_merge_finds_a_machine_under_noisy_labels(seed: int) -> None:
    """Eight states, three symbols, one label in ten flipped; settings chosen by itself."""
    machine = random_machine(seed, 8, 3)
    train, fresh = draw(machine, 6_000, seed), draw(machine, 4_000, seed + 50)
    found = merge.learn(train, max_states=64, seed=0)
    assert accuracy(found, train, fresh) > accuracy(machine.transitions, train, fresh) - 0.02
    assert accuracy(found, train, draw(machine, 4_000, seed + 60, noise=0.0)) > 0.98
    assert found.n_states <= 12


def recovered(found: Transitions, train: Strings, true: np.ndarray, other: Strings, other_true: np.ndarray) -> float:
    """How often a state, read as what most training steps in it are, is right on other runs."""
    walked = walk_training(found, train)
    votes = np.zeros((walked.transitions.n_states, int(true.max()) + 1))
    np.add.at(votes, (walked.states, true.astype(int)), 1)
    return float(np.mean(votes.argmax(axis=1)[walked.walk(other)[0]] == other_true))


def taught(strings: Strings, risk: np.ndarray) -> Strings:
    """With a teacher that says this of both risks."""
    return replace(strings, teacher=np.stack((risk, risk), axis=1).astype(np.float32))


def by_teacher(n_runs: int, seed: int) -> tuple[Strings, np.ndarray]:
    """Strings of a machine of six states. No run failed; the teacher knows the state."""
    machine = random_machine(3, 6, 3)
    strings = draw(machine, n_runs, seed)
    high = machine.fails[walk(0, machine.next, None, strings)[0]]
    return taught(replace(strings, labels=np.zeros_like(strings.labels)), np.where(high, 0.9, 0.1)), high


def two_errors(n_runs: int, seed: int) -> tuple[Strings, np.ndarray]:
    """Two errors (symbol 1) in a row: the risk is high until a recovery (symbol 2); runs that end in it failed."""
    rng = np.random.default_rng(seed)
    words = [tuple(rng.choice(3, p=[0.45, 0.35, 0.2], size=rng.integers(4, 13)).tolist()) for _ in range(n_runs)]
    strings = strings_of(words, 3)
    states, _ = walk(0, np.array([[0, 1, 0], [0, 2, 0], [2, 2, 0]], np.int32), None, strings)
    high = states == 2
    return taught(strings_of(words, 3, high[strings.first[1:] - 1].tolist()), np.where(high, 0.9, 0.1)), high


def capped(n_runs: int, seed: int) -> tuple[Strings, np.ndarray]:
    """Runs of symbols that mean nothing, which fail where they reach twelve steps: only a count can tell."""
    rng = np.random.default_rng(seed)
    lengths = np.where(rng.random(n_runs) < 0.5, 12, rng.integers(3, 12, n_runs))
    strings = strings_of([tuple(rng.integers(0, 2, n).tolist()) for n in lengths], 2, (lengths == 12).tolist())
    labels = strings.labels.copy()
    labels[:, 0] *= strings.index >= 10
    share = np.array([labels[strings.index == i].mean(axis=0) for i in range(1, 13)], dtype=np.float32)
    return replace(strings, labels=labels, teacher=share[strings.index - 1]), strings.index >= 10


def ladder_of_four(n_runs: int, seed: int) -> tuple[Strings, np.ndarray]:
    """Errors (symbol 1) raise a risk that only symbol 2 lets fall; symbol 0 leaves it. The teacher knows the level."""
    rng = np.random.default_rng(seed)
    strings = strings_of([tuple(rng.choice(3, p=[0.5, 0.35, 0.15], size=20).tolist()) for _ in range(n_runs)])
    up = np.minimum(np.arange(4) + 1, 3)
    levels, _ = walk(0, np.stack((np.arange(4), up, np.zeros(4, int)), axis=1).astype(np.int32), None, strings)
    return taught(strings, np.array([0.05, 0.2, 0.5, 0.9])[levels]), levels


@pytest.mark.parametrize(
    ("learn", "made", "max_states"),
    [
        (PLAIN, by_teacher, 32),
        (LEARNERS["clusters"], two_errors, 24),
        (LEARNERS["fsm"], two_errors, 24),
        (LEARNERS["clusters"], capped, 32),
        (LEARNERS["fsm"], capped, 32),
        (merge.learn, capped, 24),
        (LEARNERS["ladder"], ladder_of_four, 9),
    ],
    ids=["merge teacher", "clusters errors", "fsm errors", "clusters cap", "fsm cap", "merge cap", "ladder"],
)
def test_what_decides_the_risk_is_learned_and_holds_on_other_runs(
    learn: Learn, made: Callable[[int, int], tuple[Strings, np.ndarray]], max_states: int
) -> None:
    (train, true), (other, other_true) = made(400, 0), made(200, 1)
    assert recovered(learn(train, max_states=max_states, seed=0), train, true, other, other_true) > 0.97
    memoryless = LEARNERS["memoryless"](train, max_states=max_states, seed=0)
    assert recovered(memoryless, train, true, other, other_true) < 0.95


# Memoryless and ladder


def test_memoryless_is_the_last_symbol_and_the_rarest_share_a_state() -> None:
    strings = strings_of([(0,) * 9 + (1,) * 7 + (2,) * 5 + (3,) * 3 + (4,)], 5)
    found = LEARNERS["memoryless"](strings, max_states=4, seed=0)
    states, _ = walk(found.start, found.next, None, strings)
    of_symbol = [set(states[strings.symbols == k].tolist()) for k in range(5)]
    assert all(len(of) == 1 for of in of_symbol) and of_symbol[2] == of_symbol[3] == of_symbol[4]
    assert len(set.union(*of_symbol)) == 3
    assert found.notes == ("3 symbols share a state",)
    assert LEARNERS["memoryless"](strings, max_states=6, seed=0).notes == ()


@pytest.mark.parametrize("said", [0.3, 1.0])
def test_a_teacher_that_knows_nothing_leaves_a_ladder_of_one_level(said: float) -> None:
    flat = replace(strings_of([(0, 1), (1, 2, 0)]), teacher=np.full((5, 2), said, dtype=np.float32))
    assert LEARNERS["ladder"](flat, max_states=8, seed=0).n_states <= 3


# RPNI and distilled


def test_conflicting_strings_keep_their_majority() -> None:
    clean = all_words(MACHINES["three 1 in a row"], 6)
    words, failed = clean.words(), clean.failed.tolist()
    more = [(words[i], failed[i] ^ wrong) for wrong in (True, False) for i in (7, 30)]
    more += [((1, 1, 1, 1, 0, 1, 1), True), ((1, 1, 1, 1, 0, 1, 1), False)]
    strings = strings_of([*words, *(w for w, _ in more)], 2, [*failed, *(f for _, f in more)])
    found = rpni.learn(strings, max_states=64, seed=0)
    assert found.notes == (
        "2 strings came more often with another outcome, which was kept",
        "2 strings were left out: the same came as often with another outcome",
    )
    assert found.next.tobytes() == rpni.learn(clean, max_states=64, seed=0).next.tobytes()


@pytest.mark.parametrize("learn", [rpni.learn, rpni.learn_distilled])
@pytest.mark.parametrize("max_states", [1, 7, 20])
def test_what_the_limit_cost_is_said(learn: Learn, max_states: int) -> None:
    strings = draw(random_machine(2), 400, 3, teacher=True)
    free = learn(strings, max_states=1000, seed=0)
    found = learn(strings, max_states=max_states, seed=0)
    beyond = free.n_states - max_states
    assert beyond > 0 and found.n_states <= max_states
    assert f"{beyond} states beyond the limit of {max_states} merged into the nearest that stayed" in found.notes


def test_a_tree_that_would_be_too_large_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    strings = draw(random_machine(2), 400, 3)
    monkeypatch.setattr(rpni, "_MOST_NODES", 500)
    found, same = (rpni.learn(s, max_states=64, seed=0) for s in (strings, shuffled(strings, 1)))
    (note,) = [n for n in found.notes if "left out: their tree" in n]
    assert note.endswith("their tree has over 500 nodes")
    assert bytes_of(found) == bytes_of(same)
    assert rpni.learn(strings, max_states=64, seed=1).next.tobytes() != found.next.tobytes()


def test_a_contradiction_is_an_error_of_ours() -> None:
    with pytest.raises(DataError, match="two levels at once"):
        rpni._rpni([((0, 1), 0), ((0, 1), 1)], 2)


def rated_errors(n_runs: int = 400) -> tuple[Strings, np.ndarray]:
    """Errors (symbol 1) so far, at most two, are all that the teacher looks at; outcomes are drawn."""
    rng = np.random.default_rng(0)
    words = [tuple((rng.random(rng.integers(1, 14)) < 0.05).astype(int).tolist()) for _ in range(n_runs)]
    errors = np.concatenate([np.minimum(np.cumsum(word), 2) for word in words])
    strings = strings_of(words, 2, (rng.random(n_runs) < 0.5).tolist())
    return taught(strings, np.array([0.1, 0.5, 0.9])[errors]), errors


def test_the_teachers_levels_come_back_as_states_and_outcomes_play_no_part() -> None:
    strings, errors = rated_errors()
    found = rpni.learn_distilled(strings, max_states=16, seed=0)
    walked = walk_training(found, strings)
    for state in np.unique(walked.states):
        assert len(set(errors[walked.states == state].tolist())) == 1, state
    for failed in (~strings.failed, np.ones_like(strings.failed)):
        other = rpni.learn_distilled(replace(strings, failed=failed), max_states=16, seed=0)
        assert other.next.tobytes() == found.next.tobytes()


def test_a_teacher_that_says_the_same_of_all_is_refused() -> None:
    with pytest.raises(DataError, match="no step is clearly riskier than most"):
        rpni.learn_distilled(draw(random_machine(2), 100, 3), max_states=16, seed=0)


# Merge


@pytest.mark.parametrize("max_states", [1, 2, 9])
def test_merge_uses_the_states_that_it_may_and_says_what_the_limit_cost(max_states: int) -> None:
    strings = draw(random_machine(2), 2_000, 3, teacher=True)
    free = COUNTING(strings, max_states=200, seed=0)
    assert 9 < free.n_states < 200 and not any("without the limit" in note for note in free.notes)
    found = COUNTING(strings, max_states=max_states, seed=0)
    assert found.n_states == max_states
    (note,) = [n for n in found.notes if "without the limit" in n]
    assert note.endswith(f"would have led to new states without the limit of {max_states}")


def test_one_task_is_no_hindrance() -> None:
    strings = draw(random_machine(2, 4, 2), 100, 3)
    found = merge.learn(replace(strings, tasks=np.zeros(100, np.int64)), max_states=8, seed=0)
    assert 1 <= found.n_states <= 8


# Fsm, clusters and their roll-outs


@pytest.mark.parametrize("learner", ["fsm", "clusters"])
def test_of_too_many_runs_some_are_drawn_and_that_is_said(learner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    train, _ = two_errors(80, 0)
    monkeypatch.setattr(networks, "_MOST_STEPS", 200)
    found = LEARNERS[learner](train, max_states=10, seed=0)
    note = next(n for n in found.notes if "drawn by seed" in n)
    n = int(note.split()[2])
    assert note == f"learned from {n} of 80 runs, drawn by seed" and 10 < n < 40


def test_the_soft_automaton_says_how_far_it_was_from_its_argmax() -> None:
    off, moved = LEARNERS["fsm"](two_errors(80, 0)[0], max_states=10, seed=0).notes
    assert off.endswith("of the soft automaton's probability was off its argmax") and 0 < float(off.split("%")[0]) < 50
    assert moved.endswith("transitions redirected on the automaton's own roll-outs")


TRUE = Transitions(0, np.array([[0, 1], [0, 2], [0, 2]], np.int32))  # two 1 in a row


def rollouts_of(n_runs: int = 60, seed: int = 0) -> Rollouts:
    """Words of 0 and 1 of one to twelve steps; the risk that two 1 in a row bring."""
    rng = np.random.default_rng(seed)
    strings = strings_of([tuple(rng.integers(0, 2, rng.integers(1, 13)).tolist()) for _ in range(n_runs)], 2)
    high = np.where(walk(0, TRUE.next, None, strings)[0] == 2, 0.9, 0.1)
    return Rollouts.of(strings, np.stack((high, (high + 0.4) / 2), axis=1))


def loss_of(rollouts: Rollouts, machine: Transitions) -> float:
    _, states = rollouts.walk(machine)
    return rollouts.loss(states, rollouts.risks(states, machine.n_states))


def drawn(n: int, seed: int, start: int = 0) -> Transitions:
    return Transitions(start, np.random.default_rng(seed).integers(0, n, (n, 2)).astype(np.int32))


def test_costs_to_come_are_what_walking_on_costs() -> None:
    rollouts = rollouts_of(8)
    strings, machine, risks = rollouts.strings, drawn(4, 1), np.random.default_rng(1).uniform(0.1, 0.9, (4, 2))
    costs = rollouts.costs(machine, risks)
    for first, last in zip(strings.first[:-1].tolist(), (strings.first[1:] - 1).tolist(), strict=True):
        for step in range(first, last + 1):
            for begin in range(4):
                state, expected = begin, 0.0
                for at in range(step, last + 1):
                    state = state if at == step else int(machine.next[state, strings.symbols[at]])
                    p, t = risks[state], rollouts.target[at]
                    expected -= float((t * np.log(p) + (1 - t) * np.log(1 - p)) @ rollouts.importance)
                assert costs[step, begin] == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(4))
def test_redirecting_pays_and_leaves_a_finished_machine_alone(seed: int) -> None:
    rollouts, machine = rollouts_of(seed=seed), drawn(6, seed)
    assert loss_of(rollouts, redirect(rollouts, machine, 40, np.random.default_rng(0))) < loss_of(rollouts, machine)
    astray = Transitions(0, np.array([[0, 1], [1, 2], [0, 2]], np.int32))
    for begun in (TRUE, astray) if seed == 0 else (TRUE,):
        found = redirect(rollouts, begun, 40, np.random.default_rng(0))
        np.testing.assert_array_equal(found.next, TRUE.next)


def capped(n_runs: int, seed: int = 0) -> Strings:
    """Runs whose risk is high late, whatever they do, and after two 1 in a row."""
    rng = np.random.default_rng(seed)
    strings = strings_of([tuple(rng.integers(0, 2, rng.integers(4, 13)).tolist()) for _ in range(n_runs)], 2)
    high = (walk(0, TRUE.next, None, strings)[0] == 2) | (strings.index > 8)
    said = np.where(high, 0.9, 0.1).astype(np.float32)
    labels, teacher = (np.stack((of, of), axis=1).astype(np.float32) for of in (high, said))
    return replace(strings, tasks=np.arange(n_runs), labels=labels, teacher=teacher)


def test_with_a_clock_costs_are_those_of_state_and_column_and_no_state_counts_steps() -> None:
    strings = capped(200)
    clock = fit_clock(strings)
    assert clock
    rollouts = Rollouts.of(strings, strings.target, clock, groups=2)
    _, states = rollouts.walk(TRUE)
    risks = rollouts.risks(states, 3)
    assert risks.shape == (3 * (len(clock) + 1), 2)
    v, last = rollouts.costs(TRUE, risks), strings.first[1:] - 1
    at_end = risks[states[last] * (len(clock) + 1) + rollouts.column[last]]
    t = rollouts.target[last]
    expected = -(t * np.log(at_end) + (1 - t) * np.log1p(-at_end)) @ rollouts.importance
    np.testing.assert_allclose(v[last, states[last]], expected)
    blind = Rollouts.of(strings, strings.target)
    assert loss_of(rollouts, TRUE) < 0.7 * loss_of(blind, TRUE)
    np.testing.assert_array_equal(redirect(rollouts, TRUE, 40, np.random.default_rng(0)).next, TRUE.next)


def test_a_change_that_one_half_of_the_tasks_alone_gains_by_is_left() -> None:
    strings = capped(2)
    rollouts = Rollouts.of(strings, strings.target, groups=2)
    assert sorted(set(rollouts.group.tolist())) == [0, 1]
    keys, leads = np.zeros(len(strings.symbols), np.int64), np.zeros(1, np.int64)
    costs = np.zeros((len(keys), 2))
    costs[rollouts.group == 0] = [2.0, 1.0]
    for other, pays in (([1.0, 1.1], False), ([1.0, 0.9], True)):
        costs[rollouts.group == 1] = other
        found, least, gain, both = rollouts.gains(keys, costs, leads)
        assert (found.tolist(), least.tolist(), both.tolist()) == ([0], [1], [pays])
        assert gain[0] == pytest.approx(float((costs[:, 0] - costs[:, 1]).sum()))


def test_a_grid_is_no_worse_on_the_runs_it_learned_from_than_before_it_was_redirected() -> None:
    strings = capped(300, seed=5)
    found = LEARNERS["grid"](strings, max_states=10, seed=0)
    climbed = direct._climb(strings, log_odds(strings.teacher), (3, 3))
    rollouts = Rollouts.of(strings, strings.target, fit_clock(strings), groups=2)
    filled = Transitions(found.start, np.maximum(found.next, 0))  # no training run takes what is unseen
    assert loss_of(rollouts, filled) <= loss_of(rollouts, climbed) + 1e-6


def test_states_that_are_the_same_go_first_and_cost_nothing() -> None:
    rollouts, rng = rollouts_of(), np.random.default_rng(0)
    # Each state three times: whatever copy a run is in, what follows is the same.
    copies = Transitions(0, (np.tile(TRUE.next, (3, 1)) + 3 * rng.integers(0, 3, (9, 2))).astype(np.int32))
    fewer = eliminate(rollouts, copies, np.zeros(9, dtype=np.int64), 3)
    assert fewer.n_states == 3
    assert loss_of(rollouts, fewer) == pytest.approx(loss_of(rollouts, TRUE), abs=1e-3)


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_states_are_taken_away_to_the_limit(limit: int) -> None:
    fewer = eliminate(rollouts_of(), drawn(20, 0, start=3), np.random.default_rng(0).integers(0, 5, 20), limit)
    assert fewer.n_states <= limit and 0 <= fewer.start < fewer.n_states
    assert ((fewer.next >= 0) & (fewer.next < fewer.n_states)).all()
