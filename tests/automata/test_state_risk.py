"""Risks of states: counted by runs, calibrated on held-out runs, with intervals; back-off where evidence is thin; and
the clock's columns, which begin where the risk changes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from words import strings_of

from prefixguard.automata.state_risk import FEW, calibrate, columns_of, fit_clock, training_risk
from prefixguard.automata.strings import Strings
from prefixguard.learn import fit_platt


def seen(runs: list[tuple[list[int], bool]], teacher: list[float] | None = None) -> tuple[Strings, np.ndarray]:
    """Runs given by the state after each of their steps and how they ended; the teacher says so of each state."""
    strings = strings_of([tuple(states) for states, _ in runs], 9, [failed for _, failed in runs])
    states = strings.symbols.copy()
    said = strings.labels[:, 1] if teacher is None else np.array(teacher, dtype=np.float32)[states]
    labels = strings.labels.copy()
    labels[:, 0] *= np.isin(np.arange(len(states)), strings.first[1:] - 1)  # imminent: at the last step alone
    return replace(strings, labels=labels, teacher=np.stack((said / 2, said), axis=1).astype(np.float32)), states


def mixed(n: int, states: list[int], failing: float) -> list[tuple[list[int], bool]]:
    return [(states, i < round(failing * n)) for i in range(n)]


TRAIN = mixed(60, [0, 1], 0.2) + mixed(60, [0, 2, 2], 0.7)
TEACHER = [0.4, 0.2, 0.7]


def test_training_risk_is_the_mean_of_labels_and_teacher_shrunk_to_the_base_rate() -> None:
    strings, states = seen(TRAIN, TEACHER)
    of_state, of_cell = training_risk(strings, states, 3, ())
    target = (strings.labels.astype(float) + strings.teacher) / 2
    base = (strings.weights[:, None] * target).sum(axis=0) / strings.weights.sum()
    for s in range(3):
        mine = states == s
        mass = strings.weights[mine].sum()
        total = (strings.weights[mine, None] * target[mine]).sum(axis=0)
        assert of_state[s] == pytest.approx((total + 5 * base) / (mass + 5), abs=1e-5)
        assert of_cell[s, 0] == pytest.approx((total + 200 * of_state[s]) / (mass + 200), abs=1e-5)


def test_a_cell_without_steps_says_what_state_and_column_say() -> None:
    """State 2 is risky, and so is late: both together, though no run was there, more than each alone."""
    runs = mixed(80, [1] * 6, 0.1) + mixed(80, [1] * 12, 0.5) + mixed(80, [2] * 5, 0.6)
    strings, states = seen(runs)
    of_state, of_cell = training_risk(strings, states, 3, (7,))
    assert not ((states == 2) & (columns_of((7,), strings) == 1)).any()
    assert of_cell[2, 1, 1] > max(of_state[2, 1], of_cell[1, 1, 1])
    assert of_cell[1, 0, 1] < of_cell[1, 1, 1]


def plain_risks(
    train: Strings, states: np.ndarray, held_out: Strings, held_states: np.ndarray, stand_in: list[int]
) -> np.ndarray:
    """The head of the file, by loops, without a clock. stand_in: by state, whose estimate is taken."""
    n = len(stand_in)
    estimate = training_risk(train, states, n, ())[1][stand_in]
    out = np.empty((n, 2))
    for i in range(2):
        logit = np.log(estimate[:, 0, i] / (1 - estimate[:, 0, i]))
        platt = fit_platt(logit[held_states], held_out.labels[:, i].astype(float))
        for s in range(n):
            f, count = 0.0, 0
            for a, b in zip(held_out.first[:-1], held_out.first[1:], strict=True):
                there = held_states[a:b] == s
                if there.any():
                    count += 1
                    f += float(held_out.labels[a:b, i][there].mean())
            p = 1 / (1 + np.exp(-(platt.a * logit[s] + platt.b)))
            out[s, i] = (f + 20 * p) / (count + 20)
    out[:, 0] = out.min(axis=1)
    return out[stand_in]


def test_risks_are_those_of_the_stated_formula() -> None:
    train, states = seen(TRAIN, TEACHER)
    held_out, held_states = seen(mixed(30, [0, 1, 1], 0.3) + mixed(20, [0, 2], 0.5))
    found = calibrate(train, states, held_out, held_states, 3, ())
    expected = plain_risks(train, states, held_out, held_states, [0, 1, 2])
    np.testing.assert_allclose(found.risk[:, 0], expected, atol=1e-9)
    assert found.evidence[:, 0].tolist() == [50, 60, 20]
    assert found.evidence_runs[:, 0].tolist() == [50, 30, 20]
    assert found.stand_in.tolist() == [0, 1, 2]


def test_runs_are_counted_not_steps() -> None:
    """A run that stays in a state for a hundred steps says no more there than one that was there once."""
    train, states = seen(TRAIN, TEACHER)
    once = mixed(20, [1], 0.5) + mixed(10, [2], 0.5)
    often = [(([s[0]] * 100) if i == 0 else s, failed) for i, (s, failed) in enumerate(once)]
    few, many = (calibrate(train, states, *seen(runs), 3, ()) for runs in (once, often))
    assert many.evidence[1, 0] == few.evidence[1, 0] + 99
    np.testing.assert_array_equal(many.evidence_runs, few.evidence_runs)
    # The map that all cells share counts steps; what a cell knows of its own, and so how sure it is, counts runs.
    wide, narrow = (found.interval[1, 0, :, 1] - found.interval[1, 0, :, 0] for found in (few, many))
    assert (narrow > 0.85 * wide).all()


@pytest.mark.parametrize("clock", [(), (2,), (2, 3)])
def test_intervals_widen_with_less_evidence(clock: tuple[int, ...]) -> None:
    train, states = seen(TRAIN, TEACHER)
    widths = []
    for n in (5, 20, 80, 320):
        held_out = seen(mixed(n, [0, 1, 1], 0.2) + mixed(n, [0, 2, 2], 0.6))
        found = calibrate(train, states, *held_out, 3, clock)
        low, high = found.interval[..., 0], found.interval[..., 1]
        assert (low >= 0).all() and (high <= 1).all()
        there = found.evidence > 0
        widths.append((high - low)[there])
    for wide, narrow in pairwise(widths):
        assert (wide > narrow).all()


def test_the_interval_is_of_the_runs_where_they_contradict_training() -> None:
    """All of eight failed where training said calm: the interval is that of 8 of 8, and the risk is its lower end."""
    train, states = seen(TRAIN, TEACHER)
    held_out = seen(mixed(60, [2], 0.7) + mixed(200, [0], 0.4) + mixed(8, [1], 1.0))
    found = calibrate(train, states, *held_out, 3, ())
    low, high = found.interval[1, 0, 1]
    assert found.risk[1, 0, 1] == low and 0.6 < low < 0.85 and high == 1
    assert ((found.interval[..., 0] <= found.risk) & (found.risk <= found.interval[..., 1])).all()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("clock", [(), (2, 4)])
def test_a_failure_that_is_near_is_a_failure(seed: int, clock: tuple[int, ...]) -> None:
    """In no state and no span is the imminent risk above that of the outcome, whatever the teacher says; nor an end."""
    rng = np.random.default_rng(seed)
    runs = [(rng.integers(0, 4, rng.integers(1, 7)).tolist(), bool(rng.random() < 0.9)) for _ in range(90)]
    near = [(replace(one, labels=one.labels[:, [1, 1]]), at) for one, at in (seen(runs[:60]), seen(runs[60:]))]
    (train, states), held_out = near  # all of a failed run is near its end
    said = rng.random((len(states), 2)).astype(np.float32)
    found = calibrate(replace(train, teacher=said), states, *held_out, 4, clock)
    assert (found.risk[..., 0] <= found.risk[..., 1]).all()
    assert (found.interval[..., 0, :] <= found.interval[..., 1, :]).all()
    assert (found.interval[..., 0] <= found.interval[..., 1]).all()


def test_no_held_out_run_in_a_cell_leaves_the_widest_interval_there() -> None:
    train, states = seen(TRAIN, TEACHER)
    found = calibrate(train, states, *seen(mixed(40, [0, 1], 0.3)), 3, ())
    assert found.evidence[2, 0] == found.evidence_runs[2, 0] == 0
    width = found.interval[:, 0, 1, 1] - found.interval[:, 0, 1, 0]
    assert width[2] > 0.6 > width[1]
    assert found.risk[2, 0, 1] > found.risk[1, 0, 1]  # what training said of it, mapped


def test_no_held_out_run_at_all_leaves_what_training_said() -> None:
    train, states = seen(TRAIN, TEACHER)
    held_out, held_states = seen(mixed(4, [0], 0.5))
    none = held_out.of(np.empty(0, dtype=np.int64))
    found = calibrate(train, states, none, held_states[:0], 3, ())
    np.testing.assert_allclose(found.risk, training_risk(train, states, 3, ())[1], atol=1e-9)
    assert found.evidence.sum() == 0


def test_thin_states_stand_on_the_nearest_with_enough() -> None:
    """States 3 and 4 were met by fewer than ten runs: one is as risky as 2, the other as calm as 1."""
    train, states = seen(TRAIN + mixed(FEW - 2, [0, 3], 0.7) + mixed(FEW - 2, [0, 4], 0.2), [*TEACHER, 0.75, 0.15])
    held_out, held_states = seen(mixed(30, [0, 1], 0.3) + mixed(30, [0, 2], 0.6) + mixed(1, [3, 4], 0.0))
    found = calibrate(train, states, held_out, held_states, 5, (2,))
    assert found.stand_in.tolist() == [0, 1, 2, 2, 1]
    for thin, solid in ((3, 2), (4, 1)):
        np.testing.assert_array_equal(found.risk[thin], found.risk[solid])
        np.testing.assert_array_equal(found.interval[thin], found.interval[solid])
    assert found.evidence_runs[3].tolist() == [1, 0]  # its own evidence is told as it is
    found = calibrate(train, states, held_out, held_states, 5, ())
    expected = plain_risks(train, states, held_out, held_states, [0, 1, 2, 2, 1])
    np.testing.assert_allclose(found.risk[:, 0], expected, atol=1e-9)


def test_ten_runs_in_training_and_held_out_together_are_enough() -> None:
    def stand_in(held: int) -> int:
        train, states = seen(TRAIN + mixed(5, [3], 0.4), [*TEACHER, 0.5])
        found = calibrate(train, states, *seen(mixed(20, [0, 1, 2], 0.5) + mixed(held, [3], 0.4)), 4, ())
        return int(found.stand_in[3])

    assert stand_in(5) == 3
    assert stand_in(4) != 3


def test_where_no_state_has_enough_each_stands_on_its_own() -> None:
    train, states = seen(mixed(4, [0, 1], 0.5))
    found = calibrate(train, states, *seen(mixed(3, [0, 1], 0.34)), 2, ())
    assert found.stand_in.tolist() == [0, 1]


def test_ties_go_to_the_lower_state() -> None:
    train, states = seen(mixed(20, [0], 0.5) + mixed(20, [1], 0.5) + mixed(2, [2], 0.5))
    found = calibrate(train, states, *seen(mixed(20, [0, 1], 0.5)), 3, ())
    assert found.stand_in.tolist() == [0, 1, 0]


def test_outcomes_that_states_tell_for_sure_leave_numbers_that_are_finite() -> None:
    """States that differ by next to nothing in training and by everything in held-out runs: a very steep map."""
    train, states = seen(mixed(50, [0], 0.02) + mixed(50, [1], 0.04) + mixed(50, [2], 1.0))
    held_out, held_states = seen(mixed(2000, [0], 0.0) + mixed(2000, [1], 1.0))
    found = calibrate(train, states, held_out, held_states, 3, ())
    assert np.isfinite(found.interval).all()
    assert (found.risk > 0).all() and (found.risk < 1).all()
    assert (found.interval[..., 0] <= found.interval[..., 1]).all()


# The clock


def runs_of(lengths: list[int], risk: object) -> Strings:
    """Runs whose risk (labels and teacher alike) is a function of the step index."""
    strings = strings_of([(0,) * n for n in lengths], 1)
    value = np.array([risk(t) for t in strings.index.tolist()], dtype=np.float32)  # type: ignore[operator]
    both = np.stack((value, value), axis=1)
    return replace(strings, labels=both, teacher=both)


def test_a_jump_is_found_at_its_step() -> None:
    strings = runs_of([30] * 20, lambda t: 0.9 if t >= 21 else 0.1)
    assert fit_clock(strings) == (21,)
    columns = columns_of((21,), strings)
    assert (columns == (strings.index >= 21)).all()


def test_no_column_where_the_risk_is_the_same_throughout_or_few_steps_are_there() -> None:
    assert fit_clock(runs_of([30] * 20, lambda t: 0.3)) == ()
    assert fit_clock(runs_of([9] * 11, lambda t: t / 10)) == ()  # 99 steps: no two columns of 50
    assert columns_of((), runs_of([3, 2], lambda t: 0.1)).tolist() == [0] * 5


def test_columns_rise_are_few_and_hold_enough() -> None:
    strings = runs_of([60] * 40, lambda t: (t / 60) ** 3)
    clock = fit_clock(strings)
    assert len(clock) == 11
    assert all(a < b for a, b in pairwise(clock)) and clock[0] >= 2
    assert np.bincount(columns_of(clock, strings)).min() >= 50
    widths = [b - a for a, b in pairwise((1, *clock, 61))]
    assert widths[0] > widths[-1]  # wide where little changes


def test_every_run_counts_alike() -> None:
    """A few long runs whose risk climbs in many steps do not use up the columns that many short ones need."""
    short = runs_of([10] * 300, lambda t: 0.1 if t >= 6 else 0.0)
    long = runs_of([1000] * 60, lambda t: (t // 20) / 50 if t > 20 else 0.0)
    both = strings_of([*short.words(), *long.words()], 1)
    values = np.concatenate((short.labels, long.labels))
    assert 6 in fit_clock(replace(both, labels=values, teacher=values))
