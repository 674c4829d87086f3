"""RPNI: known machines are learned back; conflicts, too many strings and too many states are handled and told."""

from __future__ import annotations

import numpy as np
import pytest
from known_machine import MACHINES, all_words, copied, difference, marks, shuffled
from recovery import draw, random_machine
from words import strings_of

from prefixguard.automata.build import walk_training
from prefixguard.automata.learners import rpni
from prefixguard.automata.minimization import minimize
from prefixguard.bundle import UNSEEN
from prefixguard.errors import DataError


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_is_learned_back_from_all_words(name: str) -> None:
    strings = all_words(MACHINES[name], 6)
    found = rpni.learn(strings, max_states=64, seed=0)
    word = difference(MACHINES[name], found, marks(found, strings))
    assert word is None, f"they differ on {word}"
    assert found.notes == ()
    assert minimize(found, marks(found, strings).astype(np.int64)).n_states <= len(MACHINES[name][0])


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_runs_does_not_matter(seed: int) -> None:
    strings = draw(random_machine(2), 300, 3)
    found, other = (rpni.learn(s, max_states=20, seed=0) for s in (strings, shuffled(strings, seed)))
    assert found.next.tobytes() == other.next.tobytes()
    assert found.notes == other.notes


def test_the_caller_keeps_its_data() -> None:
    strings = draw(random_machine(2), 200, 3)
    before = copied(strings)
    rpni.learn(strings, max_states=20, seed=0)
    for one, two in zip(before, copied(strings), strict=True):
        np.testing.assert_array_equal(one, two)


def test_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    rpni.learn(draw(random_machine(2), 200, 3), max_states=20, seed=0)
    assert capsys.readouterr() == ("", "")


def test_conflicting_strings_keep_their_majority() -> None:
    clean = all_words(MACHINES["three 1 in a row"], 6)
    words = clean.words()
    failed = clean.failed.tolist()
    wrong = [(words[7], not failed[7]), (words[30], not failed[30])]
    right = [(words[7], failed[7]), (words[30], failed[30])]
    tied = [((1, 1, 1, 1, 0, 1, 1), True), ((1, 1, 1, 1, 0, 1, 1), False)]
    more = wrong + right + tied
    strings = strings_of([*words, *(w for w, _ in more)], 2, [*failed, *(f for _, f in more)])
    found = rpni.learn(strings, max_states=64, seed=0)
    assert found.notes == (
        "2 strings came more often with another outcome, which was kept",
        "2 strings were left out: the same came as often with another outcome",
    )
    assert found.next.tobytes() == rpni.learn(clean, max_states=64, seed=0).next.tobytes()


def test_noise_that_strings_share_is_outvoted() -> None:
    """Every word nine times, and one in ten labels flipped: majorities are right, and the machine comes back."""
    machine = MACHINES["a 0 comes after a 1"]
    clean = all_words(machine, 5, copies=9)
    flipped = np.random.default_rng(5).random(len(clean)) < 0.1
    strings = strings_of(clean.words(), 2, (clean.failed ^ flipped).tolist())
    found = rpni.learn(strings, max_states=64, seed=0)
    assert difference(machine, found, marks(found, strings)) is None
    assert found.notes == (f"{int(flipped.sum())} strings came more often with another outcome, which was kept",)


@pytest.mark.parametrize("max_states", [1, 2, 7, 20])
def test_the_budget_is_kept_and_what_it_cost_is_told(max_states: int) -> None:
    strings = draw(random_machine(2), 400, 3)
    free = rpni.learn(strings, max_states=1000, seed=0)
    assert free.n_states > 20
    found = rpni.learn(strings, max_states=max_states, seed=0)
    assert 1 <= found.n_states <= max_states
    assert found.next.max() < found.n_states
    assert (
        f"{free.n_states - max_states} states beyond the limit of {max_states} merged into the nearest that stayed"
        in (found.notes)
    )
    assert walk_training(found, strings).edges.sum() == len(strings.symbols)


def test_every_transition_that_a_run_takes_is_known() -> None:
    strings = draw(random_machine(2), 200, 3)
    found = rpni.learn(strings, max_states=1000, seed=0)
    assert not any("left open" in note for note in walk_training(found, strings).transitions.notes)


@pytest.mark.parametrize(("failed", "how"), [(True, "failed"), (False, "succeeded")])
def test_one_outcome_is_told(failed: bool, how: str) -> None:
    strings = strings_of([(0, 1), (1, 1, 0)], 2, [failed, failed])
    with pytest.raises(DataError, match=f"all 2 runs {how}: RPNI tells failed runs from successful ones"):
        rpni.learn(strings, max_states=4, seed=0)


def test_a_tree_that_would_be_too_large_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    strings = draw(random_machine(2), 400, 3)
    monkeypatch.setattr(rpni, "_MOST_NODES", 500)
    found, same = (rpni.learn(s, max_states=64, seed=0) for s in (strings, shuffled(strings, 1)))
    (note,) = [n for n in found.notes if "left out: their tree" in n]
    assert note.endswith("their tree has over 500 nodes")
    assert found.next.tobytes() == same.next.tobytes()
    other = rpni.learn(strings, max_states=64, seed=1)
    assert other.next.tobytes() != found.next.tobytes()


def test_a_contradiction_is_an_error_of_ours() -> None:
    with pytest.raises(DataError, match="two levels at once"):
        rpni._rpni([((0, 1), 0), ((0, 1), 1)], 2)


def test_states_are_numbered_breadth_first() -> None:
    found = rpni.learn(draw(random_machine(2), 300, 3), max_states=64, seed=0)
    met = [0]
    for state in met:
        met += [s for s in dict.fromkeys(found.next[state].tolist()) if s != UNSEEN and s not in met]
    assert found.start == 0
    assert met == list(range(found.n_states))
