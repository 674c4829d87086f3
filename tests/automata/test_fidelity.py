"""What an automaton is worth beside its teacher, by plain computations; a sentence for every threshold missed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab_automaton import Learned, lab_material, learned
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, roc_auc_score
from tiny_automaton import by_hand

from prefixguard.alarm import Level
from prefixguard.automata.strings import Strings
from prefixguard.automata.summary import Fidelity
from prefixguard.automata.summary.fidelity import Walks, _care, measure_fidelity, rank_correlation
from prefixguard.bundle import Automaton
from prefixguard.errors import DataError


@pytest.fixture(scope="module")
def lab(lab_file: Path) -> Learned:
    return learned(lab_material(lab_file), "memoryless")


def sound() -> Automaton:
    """An automaton none of whose states rests on thin evidence."""
    automaton = by_hand(())
    return replace(automaton, stand_in=np.arange(3, dtype=np.int32), evidence_runs=np.full((3, 1), 40, np.int64))


def drawn(n_runs: int = 60, length: int = 8, failed: float = 0.5) -> tuple[Strings, np.ndarray]:
    """Runs of one length, their steps' labels, and a teacher that knows something: float (steps, 2)."""
    rng = np.random.default_rng(4)
    fails = np.arange(n_runs) < failed * n_runs
    outcome = np.repeat(fails, length)
    imminent = outcome & np.tile(np.arange(length) >= length - 4, n_runs)
    labels = np.stack([imminent, outcome], axis=1).astype(np.float32)
    strings = Strings(
        symbols=np.zeros(n_runs * length, np.int32),
        n_symbols=1,
        first=np.arange(n_runs + 1, dtype=np.int64) * length,
        failed=fails,
        tasks=np.arange(n_runs, dtype=np.int64) // 2,
        labels=labels,
        teacher=np.zeros_like(labels),
    )
    return strings, np.clip(0.25 + 0.4 * labels + rng.normal(0, 0.15, labels.shape), 0.01, 0.99)


def walks_of(
    strings: Strings,
    risks: np.ndarray,
    teacher: np.ndarray,
    unseen: float = 0.0,
    levels: Sequence[Level] | None = None,
    teacher_levels: Sequence[Level] | None = None,
) -> Walks:
    n = len(strings.symbols)
    silent = [Level.UNKNOWN] * n
    missing = np.arange(n) < unseen * n
    return Walks(strings, strings.symbols, missing, risks, levels or silent, teacher, teacher_levels or silent)


def measured(strings: Strings, risks: np.ndarray, teacher: np.ndarray, **other: Any) -> Fidelity:
    return measure_fidelity(sound(), walks_of(strings, risks, teacher, **other))


def test_figures_of_the_lab(lab: Learned) -> None:
    """Figures that scikit-learn and scipy compute too; the teacher's are those of labels blurred by seed."""
    n = len(lab.test.symbols)
    teacher = np.clip(0.6 * lab.test.labels + np.random.default_rng(0).random((n, 2)) * 0.4, 0, 1)
    walks = replace(walks_of(lab.test, lab.risks, teacher), unseen=lab.unseen)
    found = measure_fidelity(lab.automaton, walks)
    assert (found.runs, found.steps) == (len(lab.test), n)
    assert found.runs > 30
    assert found.agreement == pytest.approx(spearmanr(lab.risks[:, 1], teacher[:, 1]).statistic)
    assert found.auprc == pytest.approx(average_precision_score(lab.test.labels[:, 0], lab.risks[:, 0]))
    assert found.teacher_auprc == pytest.approx(average_precision_score(lab.test.labels[:, 0], teacher[:, 0]))
    remaining = np.repeat(lab.test.lengths, lab.test.lengths) - lab.test.index
    by_place = []
    for place in range(11):
        at = remaining == place
        fails = lab.test.labels[at, 1]
        if 0 < fails.sum() < len(fails):
            by_place.append((roc_auc_score(fails, lab.risks[at, 1]), len(fails)))
    assert found.rem == pytest.approx(np.average([a for a, _ in by_place], weights=[n for _, n in by_place]))
    assert found.unseen_share == lab.unseen.mean()
    assert any("imminent AUPRC" in sentence for sentence in found.care)
    assert found == measure_fidelity(lab.automaton, walks)
    ours = np.split(lab.risks[:, 1], lab.test.first[1:-1])
    flat = [np.full(len(run), 0.5) for run in ours]
    assert measure_fidelity(lab.automaton, walks, {"agent": ours, "domain": flat}).groups == (
        ("agent", found.rem),
        ("domain", 0.5),
    )


def test_the_teacher_itself_needs_no_care() -> None:
    strings, teacher = drawn()
    found = measured(strings, teacher, teacher)
    assert found.agreement == 1.0
    assert (found.auprc, found.rem) == (found.teacher_auprc, found.teacher_rem)
    assert found.care == ()


def test_a_monotone_change_of_risks_changes_nothing() -> None:
    strings, teacher = drawn()
    one, other = measured(strings, teacher, teacher), measured(strings, teacher**3, teacher)
    assert replace(one, agreement=None) == replace(other, agreement=None)
    assert other.agreement == pytest.approx(1)


def test_each_threshold_that_is_missed_has_its_sentence() -> None:
    strings, teacher = drawn()
    rng = np.random.default_rng(9)
    noise = np.clip(teacher + rng.normal(0, 0.25, teacher.shape), 0, 1)
    outcome_only, imminent_only = teacher.copy(), teacher.copy()
    outcome_only[:, 1], imminent_only[:, 0] = noise[:, 1], noise[:, 0]

    found = measured(strings, outcome_only, teacher)
    assert found.agreement is not None and found.agreement < 0.8
    assert [s.split(":")[0] for s in found.care] == [
        "The automaton often ranks steps otherwise than its teacher",
        "It tells runs that fail from runs that succeed less well than its teacher",
    ]
    assert f"is {found.agreement:.2f}".replace("0.", ".") in found.care[0] and "below .80" in found.care[0]

    (sentence,) = measured(strings, imminent_only, teacher).care
    assert sentence.startswith("It sees failures that are near less well") and "below 90 %" in sentence

    (sentence,) = measured(strings, teacher, teacher, unseen=0.06).care
    assert "6.0 % of the transitions of test runs were never taken in training" in sentence
    assert measured(strings, teacher, teacher, unseen=0.05).care == ()

    few, few_teacher = drawn(20)
    (sentence,) = measured(few, few_teacher, few_teacher).care
    assert "20 test runs, fewer than 30" in sentence


@pytest.mark.parametrize(
    ("visits", "said"), [((50, 20, 30), "30 % of training steps end in 1 state"), ((70, 20, 10), None)]
)
def test_thin_states_count_by_the_steps_that_end_there(visits: tuple[int, ...], said: str | None) -> None:
    """A state that few training steps end in is not to be held against an automaton."""
    strings, teacher = drawn()
    automaton = replace(by_hand(()), visits=np.array(visits, np.int64))
    care = measure_fidelity(automaton, walks_of(strings, teacher, teacher)).care
    assert len(care) == (said is not None)
    assert said is None or (said in care[0] and "more than 25 %" in care[0])


@pytest.mark.parametrize(
    ("alone", "said"),
    [
        (0.7, "The agent alone tells runs that fail from runs that succeed better: outcome AUROC at matched remaining "
         "steps .70 against .60."),
        (0.6, "better than the agent alone (.60): its outcome AUROC at matched remaining steps is .60, 95 % interval "
         ".55–.65."),
        (0.56, "better than the agent alone (.56): its outcome AUROC"),
        (0.54, ""),
    ],
)  # fmt: skip
def test_what_knows_as_much_is_said_where_the_interval_holds_it(alone: float, said: str) -> None:
    found = Fidelity(0.9, 0.6, 0.6, 0.6, 0.6, 0.0, 99, 999, (), (0.55, 0.65), (None, 0.5), (("agent", alone),))
    care = list(_care(found, by_hand(())))
    assert len(care) == bool(said) and all(said in one for one in care)


@pytest.mark.parametrize("failed", [0.0, 1.0])
def test_one_outcome_leaves_no_figure_and_is_said(failed: float) -> None:
    strings, teacher = drawn(failed=failed)
    found = measured(strings, teacher, teacher)
    assert (found.rem, found.teacher_rem, found.agreement) == (None, None, 1.0)
    assert (found.auprc is None) == (failed == 0.0)
    assert found.care == (
        "The test runs hold too little of one outcome to measure how well failures are told from successes.",
    )


def test_no_test_run_is_said_and_nothing_is_measured(lab: Learned) -> None:
    none = lab.alphabet.strings(lab.material, np.empty(0, np.int64))
    nothing = np.empty((0, 2))
    found = measured(none, nothing, nothing, levels=(), teacher_levels=())
    assert replace(found, care=()) == Fidelity(None, None, None, None, None, 0.0, 0, 0, ())
    assert found.care == ("There was no test run: how far the automaton agrees with its teacher is not known.",)


def test_a_constant_risk_agrees_with_nothing() -> None:
    strings, teacher = drawn()
    found = measured(strings, np.full_like(teacher, 0.4), teacher)
    assert (found.agreement, found.rem) == (None, 0.5)
    assert "the same at every step" in found.care[0]


def test_sides_of_different_lengths_are_refused() -> None:
    strings, teacher = drawn()
    with pytest.raises(DataError, match=r"480 steps of test runs with .* give one each"):
        measured(strings, teacher[1:], teacher)
    with pytest.raises(DataError, match="give one each"):
        measured(strings, teacher, teacher, levels=[Level.OK])


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=30))
def test_rank_correlation_is_spearmans_with_ties(pairs: list[tuple[int, int]]) -> None:
    a, b = (np.array([pair[i] for pair in pairs], dtype=np.float64) for i in (0, 1))
    found = rank_correlation(a, b)
    if len(set(a)) < 2 or len(set(b)) < 2:
        assert found is None
    else:
        assert found == pytest.approx(spearmanr(a, b).statistic, abs=1e-9)
