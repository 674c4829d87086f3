"""Distilled: what the teacher is clear about becomes a machine; outcomes play no part."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from known_machine import copied, shuffled
from recovery import draw, random_machine
from words import strings_of

from prefixguard.automata.build import walk_training
from prefixguard.automata.learners import rpni
from prefixguard.automata.strings import Strings
from prefixguard.errors import DataError

RISKS = np.array([0.1, 0.5, 0.9], dtype=np.float32)


def counted(n_runs: int = 400, seed: int = 0) -> tuple[Strings, np.ndarray]:
    """Errors (symbol 1) so far, at most two, are all that the teacher looks at; outcomes are drawn."""
    rng = np.random.default_rng(seed)
    words = [tuple((rng.random(rng.integers(1, 14)) < 0.05).astype(int).tolist()) for _ in range(n_runs)]
    errors = np.concatenate([np.minimum(np.cumsum(word), 2) for word in words])
    strings = strings_of(words, 2, (rng.random(n_runs) < 0.5).tolist())
    risk = RISKS[errors]
    return replace(strings, teacher=np.stack((risk, risk), axis=1)), errors


def test_the_teachers_levels_come_back_as_states() -> None:
    strings, errors = counted()
    risk = strings.teacher[:, 0]
    # all three levels are clear: half of the steps and more are low, those of the marks are in the middle and high
    assert np.quantile(risk, [0.5, 0.85, 0.95, 0.97], method="lower").tolist() == RISKS[[0, 1, 1, 2]].tolist()
    walked = walk_training(rpni.learn_distilled(strings, max_states=16, seed=0), strings)
    for state in np.unique(walked.states):
        assert len(set(errors[walked.states == state].tolist())) == 1, state


def test_outcomes_play_no_part() -> None:
    strings, _ = counted()
    other = replace(strings, failed=~strings.failed)
    assert rpni.learn_distilled(strings, max_states=64, seed=0).next.tobytes() == (
        rpni.learn_distilled(other, max_states=64, seed=0).next.tobytes()
    )


def test_each_run_gives_a_string_a_level_up_to_its_last_step() -> None:
    strings = strings_of([(0, 1, 0, 1), (1, 1), (0, 0)], 2)
    risk = np.array([0.1, 0.9, 0.1, 0.5, 0.1, 0.1, 0.1, 0.1], dtype=np.float32)
    cut = rpni._examples(replace(strings, teacher=np.stack((risk, risk), axis=1)))
    low = [((0, 1, 0), 0), ((1, 1), 0), ((0, 0), 0)]
    assert [c for c in cut if c[1] == 0] == low
    assert ((0, 1, 0, 1), 1) in cut or ((0, 1), 2) in cut


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_runs_does_not_matter(seed: int) -> None:
    strings = draw(random_machine(2), 300, 3, teacher=True)
    found, other = (rpni.learn_distilled(s, max_states=20, seed=0) for s in (strings, shuffled(strings, seed)))
    assert found.next.tobytes() == other.next.tobytes()
    assert found.notes == other.notes


def test_the_caller_keeps_its_data() -> None:
    strings = draw(random_machine(2), 200, 3, teacher=True)
    before = copied(strings)
    rpni.learn_distilled(strings, max_states=20, seed=0)
    for one, two in zip(before, copied(strings), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("max_states", [1, 5, 16])
def test_the_budget_is_kept(max_states: int) -> None:
    strings = draw(random_machine(2), 400, 3, teacher=True)
    found = rpni.learn_distilled(strings, max_states=max_states, seed=0)
    assert 1 <= found.n_states <= max_states
    assert any(f"beyond the limit of {max_states} merged" in note for note in found.notes)


def test_strings_on_which_levels_differ_keep_the_majority() -> None:
    strings = draw(random_machine(2), 400, 3, teacher=True)
    notes = rpni.learn_distilled(strings, max_states=1000, seed=0).notes
    assert any(note.endswith("strings came more often with another level, which was kept") for note in notes)


def test_one_outcome_is_no_hindrance() -> None:
    strings, _ = counted()
    found = rpni.learn_distilled(replace(strings, failed=np.ones_like(strings.failed)), max_states=16, seed=0)
    assert found.n_states > 1


def test_a_teacher_that_says_the_same_of_all_is_told() -> None:
    strings = draw(random_machine(2), 100, 3)
    with pytest.raises(DataError, match="no step is clearly riskier than most"):
        rpni.learn_distilled(strings, max_states=16, seed=0)
