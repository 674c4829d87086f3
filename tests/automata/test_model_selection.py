"""The choice is made on the pool alone, and prefers fewer states where nothing is lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from lab_export import material_of
from sklearn.metrics import average_precision_score

from prefixguard.automata.alphabets import ALPHABETS, Alphabet
from prefixguard.automata.learners import LEARNERS
from prefixguard.automata.material import Material
from prefixguard.automata.model_selection import (
    DEFAULT_ALPHABETS,
    DEFAULT_LEARNERS,
    Candidate,
    CandidateTrial,
    choices,
    choose,
    sizes,
    soft_average_precision,
    table,
    try_choices,
)
from prefixguard.errors import ConfigError
from prefixguard.learn import steps_of

CANDIDATES = choices(("tree-context", "typed"), ("memoryless", "ladder"), 8, (False, True))


@pytest.fixture(scope="module")
def material(lab_file: Path, lab_bundle: Path) -> Material:
    return material_of(lab_file, lab_bundle)


@pytest.fixture(scope="module")
def trials(material: Material) -> tuple[CandidateTrial, ...]:
    return try_choices(material, CANDIDATES)


def trial(score: float, states: int, **choice: object) -> CandidateTrial:
    named = Candidate(**({"alphabet": "typed", "learner": "ladder", "max_states": 64, "clock": False} | choice))  # type: ignore[arg-type]
    return CandidateTrial(named, states, 12, score, score, score, 0.01, 0.0, 0.6, 0.6, 0.6, 0.9, 10.0 * states)


def test_all_combinations_at_a_third_of_the_budget_and_at_all_of_it() -> None:
    found = choices(("tree-context", "typed"), ("ladder",), 64, (False, True))
    assert len(found) == len(set(found)) == 2 * 2 * 2
    assert {c.max_states for c in found} == {21, 64}
    assert choices(["typed", "typed"], ["ladder"], 4, [True]) == (Candidate("typed", "ladder", 4, True),)
    assert (sizes(15), sizes(16), sizes(2)) == ((15,), (5, 16), (2,))


def test_names_that_are_not_known_are_told_with_those_that_are() -> None:
    with pytest.raises(ConfigError) as told:
        choices(("words",), ("ladder",), 8, (True,))
    assert str(told.value) == f"alphabet 'words': choose one of {', '.join(ALPHABETS)}."
    with pytest.raises(ConfigError) as told:
        choices(("typed",), ("guess",), 8, (True,))
    assert str(told.value) == f"learner 'guess': choose one of {', '.join(LEARNERS)}."
    for nothing in (((), ("ladder",)), (("typed",), ())):
        with pytest.raises(ConfigError, match=r"^no (alphabet|learner) is named: choose from \w"):
            choices(*nothing, 8, (True,))


def test_the_default_choice_is_among_what_there_is() -> None:
    assert set(DEFAULT_ALPHABETS) <= set(ALPHABETS)
    assert set(DEFAULT_LEARNERS) <= set(LEARNERS)


def test_every_candidate_is_tried_and_the_best_comes_first(trials: tuple[CandidateTrial, ...]) -> None:
    assert {t.choice for t in trials} == set(CANDIDATES)
    assert [round(t.score, 6) for t in trials] == sorted((round(t.score, 6) for t in trials), reverse=True)
    for t in trials:
        assert 1 <= t.states <= t.choice.max_states
        assert t.score == t.soft
        assert 0 < t.soft < 1
        assert 0 <= t.unseen_share < 0.5
        assert min(t.imminent, t.outcome) >= -1 and max(t.imminent, t.outcome, t.kappa) <= 1
        assert 0 <= t.coverage <= 1 or t.coverage != t.coverage
        assert t.length > t.states


def test_only_the_pool_is_looked_at(material: Material, trials: tuple[CandidateTrial, ...]) -> None:
    """Outcomes of calibration, alarm and test runs shuffled, their teacher made up: the same trials to the last bit."""
    others = np.concatenate((material.held_out, material.alarm, material.test))
    steps = steps_of(material.corpus, others)
    rng = np.random.default_rng(3)
    failed, labels, teacher = material.corpus.failed.copy(), material.labels.copy(), material.teacher.copy()
    failed[others] = rng.permutation(~failed[others])
    labels[steps], teacher[steps] = rng.random((len(steps), 2)), rng.random((len(steps), 2))
    changed = replace(material, corpus=replace(material.corpus, failed=failed), labels=labels, teacher=teacher)
    assert repr(try_choices(changed, CANDIDATES)) == repr(trials)


def test_what_the_pool_says_matters(material: Material, trials: tuple[CandidateTrial, ...]) -> None:
    """So that the test before this one can fail."""
    steps = steps_of(material.corpus, material.pool)
    teacher = material.teacher.copy()
    teacher[steps] = 1 - teacher[steps]
    assert try_choices(replace(material, teacher=teacher), CANDIDATES) != trials


def test_no_task_is_scored_by_what_its_own_runs_taught(material: Material) -> None:
    """Nine tasks, each with a tool and an end of its own: known by heart, and worth nothing on a new task."""
    task = np.arange(len(material.corpus)) % 9
    failed = task < 4
    by_step = np.repeat(task, material.corpus.lengths)
    labels = np.repeat(failed, material.corpus.lengths).astype(np.float32)[:, None].repeat(2, axis=1)
    known = replace(
        material,
        corpus=replace(material.corpus, task_ids=[f"task {t}" for t in task.tolist()], failed=failed),
        labels=labels,
        teacher=labels,
        tools=[f"tool {t}" for t in by_step.tolist()],
    )
    (found,) = try_choices(known, choices(("typed",), ("memoryless",), 64, (False,))[:1])
    assert (found.rem, found.unseen_share) == (0.5, 1.0)


def test_progress_names_what_is_tried(material: Material) -> None:
    said: list[str] = []
    try_choices(material, choices(("typed",), ("ladder",), 4, (False,)), on_trial=said.append)
    assert said == [f"fold {i} of 3: typed, ladder" for i in (1, 2, 3)]


def test_a_pool_that_cannot_be_folded_has_no_trials(material: Material) -> None:
    (task, *_) = {material.corpus.task_ids[r] for r in material.pool.tolist()}
    one_task = np.array([r for r in material.pool.tolist() if material.corpus.task_ids[r] == task], dtype=np.int64)
    assert try_choices(replace(material, pool=one_task), CANDIDATES) == ()
    failed = np.ones_like(material.corpus.failed)
    assert try_choices(replace(material, corpus=replace(material.corpus, failed=failed)), CANDIDATES) == ()


def test_a_shorter_description_where_the_figures_are_as_good() -> None:
    best, close, far = trial(0.500, 40), trial(0.497, 9, clock=True), trial(0.460, 2, learner="memoryless")
    assert choose((best, close, far)) == close.choice
    assert choose((best, far)) == best.choice, "too far from the best, however short"
    assert choose((best, replace(close, kappa=close.kappa - 0.2))) == best.choice
    low, lower, lowest = trial(0.100, 40), trial(0.091, 9, clock=True), trial(0.085, 2, learner="memoryless")
    assert choose((low, lower, lowest)) == lower.choice, "of a small score a tenth counts"


@pytest.mark.parametrize("figure", ["soft", "imminent", "outcome", "kappa"])
def test_each_figure_counts(figure: str) -> None:
    one, other = trial(0.500, 9), trial(0.500, 9, clock=True)
    better = replace(other, **{figure: getattr(other, figure) + 0.02})  # type: ignore[arg-type]
    first = (better, one) if figure == "soft" else (one, better)
    assert (choose((one, other)), choose(first)) == (one.choice, better.choice)


def test_intervals_are_to_cover_nine_in_ten_neither_more_nor_less() -> None:
    one, other = trial(0.500, 9), trial(0.500, 9, clock=True)
    for coverage, closer in ((0.99, 0.92), (0.70, 0.85)):
        assert choose((replace(one, coverage=coverage), replace(other, coverage=closer))) == other.choice


def test_a_figure_that_is_not_defined_counts_as_nothing() -> None:
    nan = float("nan")
    one, other = replace(trial(0.500, 9), kappa=nan, coverage=nan), trial(0.500, 9, clock=True)
    assert choose((one, other)) == other.choice


def test_behaviours_are_chosen_wherever_they_are_near_the_best() -> None:
    best, over, far = trial(0.500, 9), trial(0.451, 40, alphabet="behaviours"), trial(0.449, 9, alphabet="behaviours")
    assert choose((best, over, far)) == over.choice
    assert choose((best, far)) == best.choice
    mute = replace(over, top_share=0.3)
    assert choose((best, mute)) == best.choice
    assert choose((replace(best, top_share=0.3), mute)) == mute.choice, "where none can alarm, it is their AUPRC alone"
    taught = replace(best, soft=0.9)
    assert choose((taught, over)) == over.choice, "what a teacher thinks of them does not count"


def test_an_automaton_that_can_alarm_is_worth_a_little_score() -> None:
    mute = replace(trial(0.500, 9), top_share=0.3)
    loud, weak = trial(0.480, 12, learner="merge"), trial(0.460, 12, learner="rpni")
    assert choose((mute, loud)) == loud.choice
    assert choose((mute, weak)) == mute.choice
    assert choose((mute, loud), budget=0.7) == mute.choice


def test_the_share_that_reaches_the_top_is_of_successful_runs(
    material: Material, trials: tuple[CandidateTrial, ...]
) -> None:
    assert all(0 <= t.top_share <= 1 for t in trials)
    always = np.ones_like(material.labels)
    flat = replace(material, labels=always, teacher=always)
    (one, *_) = try_choices(flat, choices(("typed",), ("memoryless",), 4, (False,)))
    assert one.top_share > 0.2, "where every risk is the same, every run reaches the highest"


def test_a_score_that_is_not_defined_comes_last() -> None:
    nan = float("nan")
    assert CandidateTrial(trial(0, 1).choice, 3, 3, nan, 0.7, 0.7, 0.0).score == -1


def test_soft_average_precision_is_the_hard_one_where_degrees_are_hard() -> None:
    rng = np.random.default_rng(1)
    labels, scores = (rng.random(200) < 0.2).astype(np.float64), rng.integers(0, 20, 200).astype(np.float64)
    assert soft_average_precision(labels, scores) == pytest.approx(average_precision_score(labels, scores))


def test_soft_average_precision_weighs_a_step_by_its_degree() -> None:
    """As if every step stood there ten times, as often positive as its degree says."""
    rng = np.random.default_rng(2)
    degrees, scores = rng.integers(0, 11, 50) / 10, rng.integers(0, 9, 50).astype(np.float64)
    many = [int(i < round(10 * d)) for d in degrees for i in range(10)]
    assert soft_average_precision(degrees, scores) == pytest.approx(
        average_precision_score(many, np.repeat(scores, 10))
    )
    assert np.isnan(soft_average_precision(np.zeros(3), np.arange(3.0)))


def test_figures_of_a_perfect_and_a_blind_score(material: Material) -> None:
    perfect = material.labels[steps_of(material.corpus, material.test)].astype(np.float64)
    test = Alphabet.of_model("gumbel", np.zeros(len(material.labels), np.int32), 1).strings(material, material.test)
    auprc, rem = test.figures(perfect)
    assert (auprc, rem) == (1.0, 1.0)
    _, rem = test.figures(np.zeros_like(perfect))
    assert rem == 0.5


def test_the_table_shows_every_trial_and_marks_the_chosen_one(trials: tuple[CandidateTrial, ...]) -> None:
    chosen = choose(trials)
    lines = table(trials, chosen).splitlines()
    assert len(lines) == 2 + len(trials)
    assert len({line.count("|") for line in lines}) == 1
    marked = [line for line in lines if "**chosen**" in line]
    assert len(marked) == 1
    cells = [cell.strip() for cell in marked[0].split("|")]
    assert cells[2:6] == [chosen.alphabet, chosen.learner, "yes" if chosen.clock else "no", str(chosen.max_states)]
