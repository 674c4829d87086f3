"""Neighbouring spans of the clock are one where held-out runs do not tell them apart, and stay where they do."""

from __future__ import annotations

from itertools import groupby, pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from prefixguard.automata.span_pools import LabelledSteps, SpanRisk, pooled_risk


def steps_of(cells: list[list[tuple[int, int]]], states: int = 1) -> LabelledSteps:
    """Of each state and span so many runs, each one step, and so many of them failed; every run in one cell alone."""
    rows = [
        (state, span, k < failed)
        for state in range(states)
        for span, (n, failed) in enumerate(cells[state])
        for k in range(n)
    ]
    state, span, label = np.array(rows or np.empty((0, 3)), dtype=np.int64).reshape(-1, 3).T
    run = np.arange(len(state))
    return LabelledSteps(run, run, state, span, label.astype(np.float64))


NONE = LabelledSteps(*[np.empty(0, int)] * 4, np.empty(0))


def pooled(cells: list[tuple[int, int]], estimate: list[float]) -> SpanRisk:
    found = pooled_risk(steps_of([cells]), NONE, np.array([estimate]), np.full((1, len(cells)), 50.0))
    return SpanRisk(*(of[0] for of in found))


def test_spans_of_few_runs_do_not_zigzag() -> None:
    """Alike in truth, and with different luck: 75 runs, nearly all failed, say one thing."""
    found = pooled([(15, 15), (15, 14), (15, 15), (15, 14), (15, 15)], [0.95, 0.94, 0.96, 0.93, 0.95])
    assert len(set(found.risk.tolist())) == len(set(found.low.tolist())) == 1
    assert found.risk[0] == pytest.approx((73 + 20 * np.mean([0.95, 0.94, 0.96, 0.93, 0.95])) / 95)


def test_what_runs_tell_apart_stays_as_it_is() -> None:
    cells, estimate = [(400, 40), (400, 200), (400, 360)], [0.2, 0.5, 0.8]
    found = pooled(cells, estimate)
    expected = [(f + 20 * p) / (n + 20) for (n, f), p in zip(cells, estimate, strict=True)]
    np.testing.assert_allclose(found.risk, expected)


def test_a_span_without_runs_is_that_of_a_neighbour() -> None:
    """No risk rests on training runs alone where the same state has held-out ones beside it."""
    found = pooled([(40, 12), (0, 0), (1, 1), (0, 0)], [0.3, 0.9, 0.9, 0.95])
    assert len(set(found.risk.tolist())) == 1 and found.risk[0] < 0.62


def test_a_run_in_several_spans_of_a_pool_is_one_run() -> None:
    run = np.repeat(np.arange(12), 3)
    one = LabelledSteps(run, run, np.zeros(36, int), np.tile([0, 1, 2], 12), np.ones(36))
    found = pooled_risk(one, NONE, np.full((1, 3), 0.5), np.ones((1, 3)))
    np.testing.assert_allclose(found.risk, found.low)  # 22 / 32 lies below the interval of 12 of 12
    assert 0.68 < found.low[0, 0] < 0.9 and (found.high == 1).all()


def test_training_runs_tell_spans_apart_and_set_no_level() -> None:
    few, estimate, weight = steps_of([[(1, 0), (1, 1)]]), np.array([[0.2, 0.9]]), np.full((1, 2), 50.0)
    train = steps_of([[(90, 9), (90, 81)]])
    assert len(set(pooled_risk(few, NONE, estimate, weight).risk[0])) == 1
    kept = pooled_risk(few, train, estimate, weight)
    np.testing.assert_allclose(kept.risk, [[20 * 0.2 / 21, (1 + 20 * 0.9) / 21]])
    np.testing.assert_allclose(pooled_risk(few, NONE, estimate, weight, pool=False), kept)


def test_runs_of_a_task_that_all_fail_alike_are_one_run() -> None:
    """Ten tasks of five runs each say as much as ten runs; were each run of a task of its own, as much as fifty."""
    fails = np.repeat(np.arange(10) < 4, 5)
    alike = steps_of([[(50, 20)]])._replace(task=np.repeat(np.arange(10), 5), label=fails.astype(np.float64))
    estimate, weight = np.array([[0.3]]), np.ones((1, 1))
    found = pooled_risk(alike, NONE, estimate, weight)
    few = pooled_risk(steps_of([[(10, 4)]]), NONE, estimate, weight)
    np.testing.assert_allclose(found, few)
    apart = pooled_risk(alike._replace(task=alike.run), NONE, estimate, weight)
    assert apart.high[0, 0] - apart.low[0, 0] < 0.6 * (found.high[0, 0] - found.low[0, 0])


@pytest.mark.parametrize("concentration", [0.5, 2.0, 1e6])
def test_intervals_hold_the_true_risk_of_tasks_however_alike_their_runs_are(concentration: float) -> None:
    """Of 400 states with 15 tasks of 10 runs each; taken for runs of different tasks, they do not."""
    rng, states, tasks, runs = np.random.default_rng(8), 400, 15, 10
    true = rng.uniform(0.2, 0.8, states)
    of_task = rng.beta(concentration * true, concentration * (1 - true), (tasks, states))
    label = (rng.random((runs, tasks, states)) < of_task).astype(np.float64)
    _, task, state = (of.ravel() for of in np.indices(label.shape))
    steps = LabelledSteps(np.arange(label.size), task, state, np.zeros_like(state), label.ravel())
    estimate, weight = true[:, None], np.ones((states, 1))

    def held(of: LabelledSteps) -> float:
        found = pooled_risk(of, NONE, np.full_like(estimate, 0.5), weight)
        return float(((found.low <= estimate) & (estimate <= found.high)).mean())

    assert 0.86 <= held(steps) <= 0.95
    if concentration < 10:
        assert held(steps._replace(task=steps.run)) < 0.75


@given(st.lists(st.tuples(st.integers(0, 60), st.floats(0, 1)), min_size=1, max_size=4), st.data())
@settings(deadline=None)
def test_intervals_are_of_the_runs_alone(cells: list[tuple[int, float]], data: st.DataObject) -> None:
    """Whatever training says, an interval is that of so many failures of so many runs."""
    counted = [(n, round(n * part)) for n, part in cells]
    for _ in range(2):
        estimate = np.array([[data.draw(st.floats(0.001, 0.999)) for _ in cells]])
        found = pooled_risk(steps_of([counted]), NONE, estimate, np.ones(estimate.shape), pool=False)
        for (n, f), low, high in zip(counted, found.low[0], found.high[0], strict=True):
            ends = beta.ppf([0.05, 0.95], f + 0.5, n - f + 0.5)
            assert low == pytest.approx(ends[0] if f else 0) and high == pytest.approx(ends[1] if f < n else 1)


def test_three_failures_of_three_runs_are_thin_evidence() -> None:
    found = pooled([(3, 3)], [0.999])
    assert 0.4 < found.low[0] < 0.6 and found.high[0] == 1 and found.risk[0] > 0.99


CELLS = st.integers(1, 6).flatmap(
    lambda spans: st.lists(
        st.lists(
            st.tuples(st.integers(0, 60), st.floats(0, 1), st.floats(0.01, 0.99), st.sampled_from([0.0, 3.0, 400.0])),
            min_size=spans,
            max_size=spans,
        ),
        min_size=1,
        max_size=3,
    )
)


@given(CELLS)
@example([[(2, 1.0, 0.5, 0.0), (1, 0.0, 0.75, 0.0), (2, 1.0, 0.5, 0.0), (1, 0.0, 0.5, 0.0)]])
@settings(deadline=None)
def test_neighbours_are_one_or_each_beyond_the_others_interval(
    cells: list[list[tuple[int, float, float, float]]],
) -> None:
    """And a state's spans are its own affair: no other state changes them."""
    estimate, weight = (np.array([[cell[k] for cell in row] for row in cells]) for k in (2, 3))
    counted = [[(n, round(n * share)) for n, share, _, _ in row] for row in cells]
    found = pooled_risk(steps_of(counted, len(cells)), NONE, estimate, weight)
    for state in range(len(cells)):
        risks = list(zip(*(of[state].tolist() for of in found), strict=True))
        pools = [list(pool) for _, pool in groupby(enumerate(risks), key=lambda one: one[1])]  # of neighbours
        ends = []
        for pool in pools:
            n, f = (sum(counted[state][k][i] for k, _ in pool) for i in (0, 1))
            ends.append(((f + 0.5) / (n + 1), *beta.ppf([0.05, 0.95], f + 0.5, n - f + 0.5), n))
        for a, b in pairwise(ends):
            assert a[3] and b[3] and not (a[1] <= b[0] <= a[2] or b[1] <= a[0] <= b[2])
        alone = pooled_risk(steps_of(counted[state : state + 1]), NONE, estimate[[state]], weight[[state]])
        np.testing.assert_allclose(alone.risk[0], found.risk[state], atol=1e-12)


def test_with_enough_runs_any_difference_is_kept() -> None:
    rng = np.random.default_rng(3)
    risk = np.sort(rng.random(8)) * 0.8 + 0.1 * np.arange(8) / 8
    found = pooled([(200_000, int(200_000 * r)) for r in risk], [0.5] * 8)
    np.testing.assert_allclose(found.risk, risk, atol=1e-3)
